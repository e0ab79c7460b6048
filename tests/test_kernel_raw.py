"""Kernels by CuPy's names, variables, shared memory on request, and NVRTC."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_programs import ADD, compiled

import pydevtensor as torch
from pydevtensor.cuda._kernel_nvrtc import Cubin

ROOT = Path(__file__).parents[1]


def test_a_raw_kernel_takes_cupys_order(here):
    add = torch.cuda.RawKernel(ADD, "add", ("-DUNUSED",))
    x, out = torch.ones(8, device=here), torch.zeros(8, device=here)
    add((1,), (8,), (x, x, out, 8), shared_mem=0)
    assert out.tolist() == [2.0] * 8
    assert isinstance(add, torch.cuda.Kernel) and add.name == "add"
    with pytest.raises(TypeError, match=r"RawKernel\(\): source is a int"):
        torch.cuda.RawKernel(5, "add")


def test_options_of_cupys(here, tmp_path):
    """Those that change nothing are accepted, and the others named."""
    add = torch.cuda.RawKernel(ADD, "add", (), "nvcc", False, jitify=False)
    add.compile()
    add.max_dynamic_shared_size_bytes = 64 << 10
    assert add.attributes["max_dynamic_shared_size_bytes"] == 64 << 10
    (tmp_path / "add.cu").write_text(ADD)
    module = torch.cuda.RawModule(path=str(tmp_path / "add.cu"), backend="nvcc")
    module.compile()
    x, out = torch.ones(8, device=here), torch.zeros(8, device=here)
    for kernel in (add, module.get_function("add")):
        kernel((1,), (8,), (x, out, out, 8))
    assert out.tolist() == [2.0] * 8
    for wrong, words in (
        ({"backend": "gcc"}, "backend is 'gcc'; give 'nvrtc' or 'nvcc'"),
        ({"translate_cucomplex": True}, "write cuComplex.h's functions"),
        ({"enable_cooperative_groups": True}, "needs cooperative launches"),
    ):
        with pytest.raises(ValueError, match=words):
            torch.cuda.RawKernel(ADD, "add", **wrong)
        with pytest.raises(ValueError, match=words):
            torch.cuda.RawModule(code=ADD, **wrong)
    with pytest.raises(TypeError, match="give either code or path"):
        torch.cuda.RawModule()


def test_mangled_names(here):
    module = torch.cuda.RawModule(
        code="""
        __global__ void fill(float *x, unsigned n) { x[0] = n; }
        template <class T, int N> __global__ void number(T *x) { x[0] = N; }
        struct Pair { float a, b; };
        template <class T> __global__ void pairs(float *x) { x[0] = sizeof(T); }
        namespace own { __global__ void last(float *x) { x[0] = 9; } }
        """,
        name_expressions=[
            *("number<float, 3>", "number<unsigned, -2>", "pairs<Pair>", "own::last"),
            "pairs<unsigned long long>",
        ],
    )
    x = torch.zeros(1, device=here)
    for name, more, value in (
        ("_Z4fillPfj", (5,), 5),
        ("_Z6numberIfLi3EEvPT_", (), 3),
        ("_Z5pairsI4PairEvPf", (), 8),
        ("_Z5pairsIyEvPf", (), 8),
        ("_ZN3own4lastEPf", (), 9),
    ):
        module.get_function(name)((1,), (1,), (x, *more))
        assert x.item() == value, name
    n = x.to(torch.int32)
    assert module.get_function("_Z6numberIjLin2EEvPT_").name == "number<unsigned, -2>"
    with pytest.raises(ValueError, match="the module has no kernel _Z5otherPf; it has"):
        module.get_function("_Z5otherPf")
    with pytest.raises(ValueError, match="the module has no kernel _Znonsense; it has"):
        module.get_function("_Znonsense")
    scale = compiled(
        "template <class T> __global__ void scale(T *x, T by) { x[0] *= by; }",
        "_Z5scaleIiEvPT_S0_",
    )
    assert scale.name == "scale<int>"
    n.fill_(4)
    scale(1, 1, (n, 3))
    assert n.item() == 12


SOURCE = """
__constant__ float weights[3], bias = 1;
__device__ int counter = 5;
__device__ __forceinline__ float twice(float x) { return 2 * x; }
template <class T> __global__ void weigh(T *x)
{
    x[threadIdx.x] = x[threadIdx.x] * (T)weights[threadIdx.x] + (T)bias;
}
__global__ void count() { atomicAdd(&counter, 1); }
"""


def test_a_module_has_functions_and_variables(two_gpus):
    source = f"{SOURCE}// {os.urandom(8).hex()}: variables of this test's own\n"
    module = torch.cuda.RawModule(
        code=source, name_expressions=["weigh<float>", "weigh<double>"]
    )
    for number, gpu in enumerate(two_gpus):
        with torch.cuda.device(gpu):
            counter = module.get_global("counter")
            assert (counter.nbytes, counter.name) == (4, "counter")
            module.get_function("count")((2,), (3 + number,))
            assert counter.read(torch.int32).tolist() == [11 + 2 * number]
            counter.write(struct.pack("<i", 7))
            assert counter.read(torch.int32).tolist() == [7]
            module.get_global("bias").write(torch.tensor([0.5]))
            weights = torch.tensor([1.0, 2.0, 3.0 + number], device=gpu)
            with pytest.raises(
                ValueError, match=r"no variable weight; it has weights, b"
            ):
                module.get_global("weight")
    with pytest.raises(ValueError, match=r"counter has 4 bytes, and was given 8"):
        counter.write(torch.zeros(2))
    with pytest.raises(
        ValueError, match=r"no kernel weigh<int>; it has count, weigh<f"
    ):
        module.get_function("weigh<int>")
    x = torch.ones(3, dtype=torch.float64, device=two_gpus[0])
    module.get_function("weigh<double>")((1,), (3,), (x,))
    assert x.tolist() == [0.5] * 3 and weights.is_cuda


def test_a_variable_is_written_after_the_launches_before(here):
    module = torch.cuda.RawModule(
        code=f"""
        __constant__ float by[2];
        __global__ void scale(float *x) {{ x[threadIdx.x] *= by[threadIdx.x]; }}
        // {os.urandom(8).hex()}"""
    )
    scale, by = module.get_function("scale"), module.get_global("by")
    x = torch.ones(2, device=here)
    for factor in (2.0, 5.0):
        by.write(torch.tensor([factor, factor], device=here))
        scale((1,), (2,), (x,))
    assert x.tolist() == [10.0, 10.0]


def test_shared_memory_above_48_kb_is_asked_for(here):
    last = compiled("""
        __global__ void last(int *out, int n)
        {
            extern __shared__ int memory[];
            for (int i = threadIdx.x; i < n; i += blockDim.x) memory[i] = i;
            __syncthreads();
            if (threadIdx.x == 0) *out = memory[n - 1];
        }""")
    out = torch.zeros(1, dtype=torch.int32, device=here)
    size = 64 << 10
    with pytest.raises(RuntimeError, match=r"call set_shared_memory_config\(65536\)"):
        last(1, 32, (out, size // 4), shared_mem=size)
    last.set_shared_memory_config(size)
    last(1, 32, (out, size // 4), shared_mem=size)
    assert out.item() == size // 4 - 1
    assert last.max_dynamic_shared_size_bytes == size
    most = torch.cuda.get_device_properties(here).shared_memory_per_block_optin
    with pytest.raises(RuntimeError, match=rf"more than the {most} that a block"):
        last.set_shared_memory_config(most + 1)
    last.set_shared_memory_config(0)
    assert last.max_dynamic_shared_size_bytes == 48 << 10


def test_attributes(here):
    kernel = compiled("__global__ void __launch_bounds__(128) f(int *x) {}")
    assert kernel.attributes["max_threads_per_block"] == 128
    assert kernel.attributes["max_dynamic_shared_size_bytes"] == 48 << 10
    simulated = torch.cuda.is_simulated()
    for name in ("num_regs", "local_size_bytes", "const_size_bytes"):
        assert (getattr(kernel, name) is None) == simulated
    assert kernel.shared_size_bytes == 0


# --- NVRTC: compiles without a GPU, where the package is installed -------------------

NVRTC = """
import pydevtensor as torch
from pydevtensor.cuda._kernel_nvrtc import Cubin
torch.cuda.simulate(1)
torch.cuda.device_count()
def cubin(source, *names, options=(), headers={}, gpu="90"):
    return Cubin(gpu, source, names[0], names, options, headers)
"""


def nvrtc(program):
    """A program that compiles for real GPUs: its output."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", NVRTC + program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYDEVTENSOR_KERNEL_CACHE": ""},
    )
    if "NVRTC" in (said := done.stdout + done.stderr) and "was not found" in said:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.slow
def test_nvrtc_compiles_and_describes_kernels():
    """As the simulator's header describes them: the same templates do."""
    out = nvrtc(r"""
import struct
source = r'''
#include <stdio.h>
#include <assert.h>
#include "sizes.h"
struct Step { float by, start; int n; };
struct Later;
__constant__ float weights[3];
__device__ int counter;
template <class T> __global__ void scale(const T *a, T by, float4 v, Step s, Later *p,
                                         const char **names, volatile bool *q)
{
    assert(a != nullptr);
    printf("%d\n", SIZE + (int)weights[0]);
}
extern "C" __global__ void plain(const float2 *__restrict__ x, unsigned long long n, void *v) {}
'''
names = ("scale<double>", "plain")
made = cubin(source, *names, headers={"sizes.h": "#define SIZE 7"}, options=["-O3", "-lineinfo"])
code = made.code(made.compile())
print(code[:4] == b"\x7fELF", made.variables, made.symbol("weights"), made.symbol("plain"))
library = torch.cuda.compile_kernel(source, "scale<double>", headers={"sizes.h": "#define SIZE 7"})
for name in names:
    _, rows = made.described(name)
    row = lambda r: (chr(r & 255), bool(r >> 8 & 1), bool(r >> 9 & 1), r >> 16 & 255, r >> 40, r >> 24 & 65535)
    _, types = library._library.kernel(0, name)
    print([row(r) for r in rows] == [tuple(t[:1]) + tuple(t[1:]) if isinstance(t[0], str) else
          (t[0].decode(), *t[1:]) for t in types], len(rows))
""")
    assert out.split("\n")[:3] == [
        "True ['weights', 'counter'] weights plain",
        "True 7",
        "True 3",
    ]


@pytest.mark.slow
def test_nvrtc_errors_are_at_the_programs_line():
    out = nvrtc("""
source = '''__device__ int twice(int x) { return 2 * x; }
template <class T> __global__ void f(T *x) { x[0] = twice(y); }
'''
for options, gpu in (((), "90"), ((), "12")):
    try:
        cubin(source, "f<int>", options=options, gpu=gpu).compile()
    except RuntimeError as error:
        print(type(error).__name__, error)
""")
    assert "CompileError compile_kernel(): the source does not compile\n" in out
    assert 'line 2, column 59: identifier "y" is undefined' in out
    assert "\n    template <class T>" in out and "\n" + " " * 62 + "^" in out
    assert "has no code for GPUs of compute capability 12; install a newer" in out


@pytest.mark.slow
def test_nvrtc_compiles_what_simulated_gpus_do():
    """16-bit floats and cooperative groups, where a toolkit's headers are."""
    out = nvrtc("""
source = r'''
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
struct Matrix { float *data; int rows; };
struct Pair { Matrix a, b; };
__device__ double total = 2.5;
__device__ __align__(16) int four[4], five;
__constant__ Matrix held;
__global__ void f(half *sum, const __nv_bfloat16 *x, half2 *both, int *out, Pair p, Matrix *q)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto part = cg::labeled_partition(warp, out[threadIdx.x] % 3);
    auto of_part = cg::binary_partition(cg::labeled_partition(part, out[0]), out[1] > 2);
    total += cg::binary_partition(warp, out[2] > 2).size() + of_part.meta_group_rank();
    four[1] = p.b.rows + q->rows + held.rows + (int)p.a.data[five];
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    atomicAdd(sum, __float2half(x[0])), atomicAdd(both, __floats2half2_rn(1, 2));
    out[threadIdx.x] = cg::reduce(tile, (int)threadIdx.x, cg::plus<int>()) +
                       cg::exclusive_scan(tile, 1) + cg::coalesced_threads().size();
    half2 v = __hfma2(*both, *both, *both);
    sum[1] = __hadd(__low2half(v), hexp(__high2half(v)));
}'''
made = cubin(source, "f")
if made.folders():
    made.code(made.compile())
    print([chr(row & 255) for row in made.described("f")[1]], made.variables)
torch.cuda.compile_kernel(source)
""")
    if not out:
        pytest.skip("CUDA's headers are not installed")
    names = ["total", "four", "five", "held"]
    assert out == f"{['h', 'g', 'h', 'i', 's', 's']} {names}\n"


@pytest.mark.slow
def test_nvrtc_keeps_each_instance_of_a_template():
    out = nvrtc("""
source = "template <class T> __global__ void f(T *x) {}"
for kind in ("float", "int"):
    made = cubin(source, f"f<{kind}>")
    print(made.key[:8], chr(made.described(f"f<{kind}>")[1][0] & 255))
""")
    (one, first), (other, second) = map(str.split, out.splitlines())
    assert one != other and (first, second) == ("f", "i")


def test_headers_of_cuda_and_of_its_libraries_in_two_folders(tmp_path, monkeypatch):
    """The packages of NVIDIA have them apart."""
    for home, header in (("one", "cuda_fp16.h"), ("two", "cccl/nv/target")):
        for name in ("cuda_fp16.h", header):
            path = tmp_path / home / "include" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "one"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "two"))
    made = object.__new__(Cubin)
    made.compiler = Path("libnvrtc.so")
    folders = ["one/include", "two/include/cccl"]
    assert made.folders() == [f"-I{tmp_path / each}" for each in folders]


@pytest.mark.slow
def test_nvrtc_compiles_for_several_architectures():
    out = nvrtc(f"""
source = r'''{ADD}'''
for gpu in ("75", "80", "90", "100"):
    made = cubin(source, "add", gpu=gpu)
    print(len(made.code(made.compile())) > 500, made.key[:8])
""")
    rows = [row.split() for row in out.splitlines()]
    assert [row[0] for row in rows] == ["True"] * 4
    assert len({row[1] for row in rows}) == 4
