"""Shared memory of fixed and of dynamic size together, and variables that a kernel
cannot have."""

import copy
import pickle

import pytest
from kernel_programs import compiled, simulated

import pydevtensor as torch

BOTH = """
__device__ int first(int v)
{
    __shared__ int copy[64];
    copy[threadIdx.x] = v;
    __syncthreads();
    return copy[0];
}
template <class T> __global__ void both(T *x)
{
    __shared__ T fixed[64];
    extern __shared__ int moving[];
    moving[threadIdx.x] = 1;
    fixed[threadIdx.x] = first(2);
    __syncthreads();
    x[threadIdx.x] = fixed[63 - threadIdx.x] + moving[63 - threadIdx.x];
}
__global__ void apart(int *x)
{
    __shared__ int more[1000];
    more[threadIdx.x] = 1;
    x[threadIdx.x] = more[threadIdx.x];
}"""


@pytest.mark.parametrize("mode", ["error", "off"])
def test_fixed_and_dynamic_memory_share_a_limit(here, mode):
    with torch.cuda.kernel_checks(mode):
        both = compiled(BOTH, "both<double>")
        apart = compiled(BOTH, "apart")
    x = torch.zeros(64, dtype=torch.float64, device=here)
    fixed = 64 * 8 + 64 * 4  # its own and the function's
    assert both.shared_size_bytes == fixed
    assert apart.attributes["shared_size_bytes"] == 4000
    assert both.max_dynamic_shared_size_bytes == (48 << 10) - fixed
    both(1, 64, (x,), shared_mem=(48 << 10) - fixed)
    assert x.tolist() == [3.0] * 64
    with pytest.raises(
        RuntimeError, match=r"48384 bytes .* beside its 768 bytes of fixed arrays; call"
    ):
        both(1, 64, (x,), shared_mem=(48 << 10) - fixed + 1)
    most = torch.cuda.get_device_properties(here).shared_memory_per_block_optin
    with pytest.raises(RuntimeError, match=f"more than the {most - fixed} that"):
        both.set_shared_memory_config(most)
    both.set_shared_memory_config(most - fixed)
    both(1, 64, (x,), shared_mem=most - fixed)
    with pytest.raises(ValueError, match=f"at most {most - fixed} bytes"):
        both(1, 64, (x,), shared_mem=most)
    assert apart.max_dynamic_shared_size_bytes == (48 << 10) - 4000


@simulated
def test_a_report_counts_the_arrays_of_the_instance(here):
    both = compiled(BOTH, "both<float>")
    compiled(BOTH, "both<double>")
    x = torch.zeros(64, device=here)
    assert both.report(1, 64, (x,), shared_mem=256).shared_memory == 256 + 2 * 256


def test_kernels_are_copied_and_pickled(here):
    x = torch.zeros(64, device=here)
    for make in (copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))):
        make(compiled(BOTH, "both<float>"))(1, 64, (x,), shared_mem=256)
        assert x.tolist() == [3.0] * 64
        x.zero_()


def test_static_shared_memory(here):
    turn = compiled("""
        __global__ void turn(int *x)
        {
            static __shared__ int s[32];
            __shared__ static int more[2];
            s[threadIdx.x] = x[threadIdx.x];
            if (threadIdx.x == 0) more[1] = 100;
            __syncthreads();
            x[threadIdx.x] = s[31 - threadIdx.x] + more[1];
        }""")
    x = torch.arange(32, dtype=torch.int32, device=here)
    turn(1, 32, (x,))
    assert x.tolist() == [131 - i for i in range(32)]


# --- what no GPU has ------------------------------------------------------------------


@simulated
@pytest.mark.parametrize("mode", ["error", "off"])
@pytest.mark.parametrize(
    ("before", "declared", "words"),
    [
        # They would run when the library is loaded, and could end the process.
        (
            "int f() { volatile int *p = 0; return *p; }\nint v = f();",
            "",
            "line [12], ",
        ),
        ("struct A { int v; A(); };\nA::A() : v(3) {}\nA v;", "", "line [23], "),
        (
            "__attribute__((constructor)) void f() { volatile int *p = 0; *p = 1; }",
            "",
            "line 1, ",
        ),
        ("struct A { int v; A(); };\nA::A() {}", "__shared__ A a;", "line 4, "),
        ("int f(int n) { return n; }", "static int n = f(x[0]);", "line 3, "),
    ],
)
def test_values_that_code_computes_are_refused(here, mode, before, declared, words):
    source = (
        f"{before}\n__global__ void k(int *x) {{\n{declared} x[0] = sizeof(int); }}"
    )
    with (
        torch.cuda.kernel_checks(mode),
        pytest.raises(torch.cuda.CompileError, match=words) as caught,
    ):
        compiled(source)
    assert "code computes the first value of a variable" in str(caught.value)


@simulated
def test_constant_tables_and_headers_are_not_refused(here):
    compiled("""
        #include <iostream>
        struct A { int v; constexpr A(int n) : v(n) {} };
        __device__ A a(3);
        __global__ void k(int *x)
        {
            static const int table[] = {1, 2, 3};
            x[0] = table[x[1]] + a.v;
        }""")


@simulated
@pytest.mark.parametrize(
    "declared",
    ["int s = 3", "int s[2] = {1, 2}", "int s{3}"],
)
def test_shared_memory_has_no_first_value(here, declared):
    with pytest.raises(
        torch.cuda.CompileError, match=r"line 3: .* values of __shared__ variables, nor"
    ):
        compiled(f"__global__ void k(int *x)\n{{\n    __shared__ {declared};\n}}")
    compiled("__global__ void k() { __shared__ union { int v[4 == 4]; } s; s.v[0]=1; }")


@simulated
@pytest.mark.parametrize("mode", ["error", "off"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("int v = 3;", "the type of a gives it a first value"),
        ("int v, w; constexpr A() : v(3), w(4) {}", "the type of a gives it a first"),
        ("int v = 3, w;", "code computes the first value"),
    ],
)
def test_shared_memory_has_no_first_value_of_its_type(here, mode, body, words):
    source = f"""
        struct A {{ {body} }};
        __global__ void k(int *x)
        {{
            __shared__ A a[2];
            a[threadIdx.x].v += x[0];
            x[0] = a[1].v;
        }}"""
    with torch.cuda.kernel_checks(mode):
        with pytest.raises(torch.cuda.CompileError, match=rf"line 5, .*{words}"):
            compiled(source)
        compiled(source.replace("__shared__ ", ""))


@simulated
def test_macros_may_have_the_word_shared(here):
    kernel = compiled("""
        #define SHARED __shared__
        #define TILE(name, n) __shared__ float name[n]
        enum { N = 32 };
        __global__ void turn(float *x)
        {
            SHARED float s[N];
            TILE(t, N);
            s[threadIdx.x] = t[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = s[N - 1 - threadIdx.x] + t[threadIdx.x];
        }""")
    x = torch.arange(32.0, device=here)
    kernel(1, 32, (x,))
    assert x.tolist() == [31.0] * 32
    assert kernel.shared_size_bytes == 2 * 32 * 4


@simulated
@pytest.mark.parametrize(
    ("declared", "line", "words"),
    [
        ("__constant__ int v[2];", "v[1] = 3;", r"writes to v, which is __constant__"),
        ("int v[2];", "v[1] = 3;", r"writes to v, a variable of the host"),
        ("unsigned long v = 4;", "x[0] = v;", r"reads v, a variable of the host"),
    ],
)
def test_a_variable_that_a_kernel_cannot_use(here, declared, line, words):
    kernel = compiled(f"{declared}\n__global__ void k(int *x)\n{{\n    {line}\n}}")
    kernel(args=(torch.zeros(1, dtype=torch.int32, device=here),))
    with pytest.raises(torch.cuda.KernelError, match=words) as caught:
        torch.cuda.synchronize()
    assert (caught.value.kind, caught.value.line) == ("wrong_memory", 4)


def test_headers_include_those_of_cuda(here):
    """Which are empty, or find that a GPU's compiler has defined what it defines."""
    twice = compiled(
        """
        #include "lib/own.h"
        #define HALVES <cuda_fp16.h>
        #include HALVES
        __global__ void k(int *x)
        {
            assert(x[0] == 1);
            x[0] = own(x[0]) + (int)__half2float(__float2half(0.5f) * __int2half_rn(4));
        #if !defined __CUDACC__ || __CUDA_ARCH__ < 700
        #error not a compiler of CUDA C
        #endif
        }""",
        headers={
            "lib/own.h": "#include <cuda_runtime.h>\n#include <cassert>\n"
            "__device__ int own(int n) { assert(n < 3); return 2 * n; }\n"
        },
    )
    x = torch.ones(1, dtype=torch.int32, device=here)
    twice(args=(x,))
    assert x.item() == 4
    twice(args=(x,))
    with pytest.raises(
        torch.cuda.AcceleratorError, match=r"assert\(x\[0\] == 1\) failed"
    ):
        torch.cuda.synchronize()


@simulated
def test_errors_of_headers_are_at_their_lines(here):
    with pytest.raises(
        torch.cuda.CompileError, match=r"lib/sizes.h, line 2, column \d+: .*zz"
    ):
        compiled(
            '#include "lib/sizes.h"\n__global__ void k(int *x) { x[0] = g(); }',
            headers={"lib/sizes.h": "__device__ int g()\n{ int n = 3; n = zz; }\n"},
        )
