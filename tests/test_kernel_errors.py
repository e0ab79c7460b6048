"""Wrong launches and wrong kernels in CUDA C: what the messages say."""

import pytest
from kernel_programs import ADD, compiled, simulated

import pydevtensor as torch

# --- wrong arguments -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (
            {"args": ()},
            TypeError,
            r"add\(\): 0 arguments .* 4 parameters: \(const float \*a",
        ),
        ({"args": 3}, TypeError, "args is a int; give a tuple"),
        (
            {0: torch.ones(8)},
            ValueError,
            r"argument 1, const float \*a, .* on cpu; pass .to",
        ),
        (
            {1: 5},
            TypeError,
            r"argument 2, const float \*b, .* was given a int; give a tensor",
        ),
        (
            {1: "double"},
            TypeError,
            r"tensor of torch.float32, .*float64; pass .to\(torch.fl",
        ),
        ({3: 8.0}, TypeError, "argument 4, int n, takes an integer, and was given 8.0"),
        (
            {3: 1 << 31},
            OverflowError,
            "argument 4, int n, .* to 2147483647.* long long",
        ),
        ({3: None}, TypeError, "argument 4, int n, takes an integer"),
        ({3: torch.ones(1)}, TypeError, r"takes a number, .* pass .item\(\)"),
        ({"grid": (0,)}, ValueError, r"grid is \(0,\); its dimensions"),
        ({"grid": (1, 1 << 16)}, ValueError, "grid is"),
        ({"grid": "4"}, TypeError, "grid is '4'; give one to three ints"),
        ({"grid": (1, 1, 1, 1)}, TypeError, "grid is"),
        ({"block": (1025,)}, ValueError, "block is"),
        ({"block": (64, 32)}, ValueError, "2048 threads, and a block has at most 1024"),
        (
            {"shared_mem": 1 << 20},
            ValueError,
            "shared_mem is 1048576; a block has at most",
        ),
        ({"shared_mem": -1}, ValueError, "shared_mem is -1"),
        ({"shared_mem": "a"}, TypeError, "give a number of bytes"),
        ({"stream": 5}, TypeError, "give a torch.cuda.Stream"),
    ],
)
def test_a_wrong_launch_says_what_to_do(here, change, kind, words):
    x = torch.ones(8, device=here)
    call = {"grid": (1,), "block": (8,), "args": [x, x, x, 8]}
    for key, value in change.items():
        if isinstance(key, str):
            call[key] = value
        else:
            call["args"][key] = x.double() if value == "double" else value
    with pytest.raises(kind, match=words):
        compiled(ADD)(**call)


def test_a_tensor_of_another_gpu(two_gpus):
    x, y = (torch.ones(8, device=name) for name in two_gpus)
    with pytest.raises(
        ValueError, match=r"on cuda:1; pass .to\('cuda:0'\), or launch under"
    ):
        compiled(ADD)(1, 8, (x, y, x, 8))
    with torch.cuda.device(1):
        compiled(ADD)(1, 8, (y, y, y, 8))
    assert y.tolist() == [2.0] * 8


def test_views_null_and_strides(here):
    add = compiled(ADD)
    x, out = torch.arange(8.0, device=here), torch.zeros(8, device=here)
    add(1, 2, (x[2:], x[4:], out[6:], 2))
    assert out.tolist() == [0] * 6 + [6, 8]
    with pytest.warns(
        UserWarning, match=r"not contiguous, of strides \(2,\); pass .contig"
    ):
        add(1, 4, (x[::2], x, out, 4))
    null = compiled("__global__ void f(const int *p, bool *out) { *out = !p; }")
    seen = torch.zeros(1, dtype=torch.bool, device=here)
    null(args=(None, seen))
    assert seen.item()
    wide = compiled("__global__ void f(float4 *x) { x->y = 5; }")
    wide(args=(x,))
    assert x[1].item() == 5
    with pytest.raises(ValueError, match=r"a multiple of 16.*pass .clone"):
        wide(args=(x[1:],))


def test_numbers_of_numpy(here):
    np = pytest.importorskip("numpy")
    put = compiled(
        "__global__ void put(double *x, float a, long long b, unsigned char c)"
        "{ x[0] = a; x[1] = b; x[2] = c; }"
    )
    x = torch.zeros(3, dtype=torch.float64, device=here)
    put(args=(x, np.float32(0.5), np.int64(-7), np.uint8(200)))
    assert x.tolist() == [0.5, -7, 200]
    put(args=(x, np.float64(2), np.bool_(True), np.bool_(False)))
    assert x.tolist() == [2, 1, 0]
    with pytest.raises(
        OverflowError, match=r"argument 4, unsigned char c, .* from 0 to 255"
    ):
        put(args=(x, 1, 2, 256))
    with pytest.raises(OverflowError, match=r"32 bits, which 1e[+]300 does not fit"):
        put(args=(x, 1e300, 2, 3))


def test_a_block_is_as_large_as_launch_bounds_allow(here):
    small = compiled(
        "__global__ void __launch_bounds__(64, 2) small(int *x) { *x = 1; }"
    )
    assert small.max_threads_per_block == 64
    with pytest.raises(ValueError, match=r"a block has at most 64"):
        small(1, 65, (None,))


# --- wrong kernels -------------------------------------------------------------------


@simulated
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "x[1L << 40] = 1;",
            "illegal memory access.*block .0, 0, 0., thread .0, 0, 0. touched",
        ),
        ("x[2] = 1;", "wrote past the end of a block of 8 bytes"),
        ("float *p = nullptr; *p = 1;", "illegal memory|undefined behaviour"),
        ("if (threadIdx.x < 3) __syncthreads();", "must all reach the same one"),
        ("__trap();", "__trap was called"),
        ("assert(x == nullptr);", r"line 1: assert\(x == nullptr\) failed"),
        ("int n = *x; *x = 7 / n;", "divided an integer by zero"),
    ],
)
def test_a_fault_shows_at_the_next_synchronization(here, body, words):
    x = torch.zeros(2, device=here)
    with torch.cuda.kernel_checks("off"):
        bad = compiled("__global__ void bad(float *x) { " + body + " }")
    with pytest.raises(torch.cuda.AcceleratorError, match=words):
        bad(1, 4, (x,))
        torch.cuda.synchronize()
    assert torch.ones(2, device=here).tolist() == [1, 1]


@simulated
def test_a_compile_error_is_at_the_programs_line(here):
    source = (
        ADD.replace("b[i];", "d[i];")
        + "\n__global__ void g(short *x) { atomicAdd(x, 1); }"
    )
    with pytest.raises(torch.cuda.CompileError) as caught:
        compiled(source, "add")
    text = str(caught.value)
    assert "line 5, column 30: 'd' was not declared" in text
    assert "    if (i < n) c[i] = a[i] + d[i];\n" + " " * 33 + "^" in text
    assert (
        "line 7, column 40: static assertion failed: atomicAdd takes a pointer to int"
        in text
    )
    assert "_module.h" not in text and "sim::" not in text
    with pytest.raises(
        torch.cuda.CompileError, match=r"helper is declared, and nothing defines"
    ):
        compiled("__device__ void helper(); __global__ void f() { helper(); }")
    with pytest.raises(torch.cuda.CompileError, match=r"line 1, column"):
        compiled("__global__ void f() { if (1) {")
    with pytest.raises(
        torch.cuda.CompileError, match=r"f: it names no function that returns void"
    ):
        compiled("__global__ int f() { return 1; }", "f")
    with pytest.raises(torch.cuda.CompileError, match=r"f: .*a reference: pass a poi"):
        compiled("__global__ void f(float &x) { x = 1; }", "f")


@simulated
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('asm("mov.u32 %0, 1;" : "=r"(y));', "line 3: simulated GPUs do not have PTX"),
        ("wmma::fill_fragment(y, 0);", "tensor cores .wmma."),
        ("y = tex2D<float>(t, 0, 0);", "textures and surfaces; read a pointer"),
        ("f<<<1, 1>>>(x);", "launches in the source"),
        ("cudaMalloc(&x, 4);", "the CUDA runtime's functions; allocate"),
        ("y = __shfl_down(y, 1);", "end in _sync"),
        ("cooperative_groups::this_cluster().sync();", "clusters of blocks"),
        ("cooperative_groups::this_multi_grid().sync();", "grids of several GPUs"),
        ("__pipeline_memcpy_async(x, x + 4, 4);", "memcpy_async.. of cooperative"),
        ("if (y) throw 5;", "exceptions.*give an error back"),
        ("int *p = (int *)malloc(40); x[0] = p[0];", "memory that a kernel allocates"),
        ("int *p = new int[10]; x[0] = p[0];", "memory that a kernel allocates"),
        ("if (!y) abort();", "abort.. and exit..; return, or call __trap"),
    ],
)
def test_what_simulated_gpus_lack_is_named(here, line, words):
    source = "// asm(\n__global__ void f(int *x) { int y = 0;\n" + line + "\n}"
    with pytest.raises(torch.cuda.CompileError, match=words):
        compiled(source)
    with pytest.raises(torch.cuda.CompileError, match=r"line 1: .* the header cub/cub"):
        compiled("#include <cub/cub.cuh>\n" + ADD)


@simulated
def test_wrong_names_and_options(here):
    for name, words in (
        ("sub", "has no kernel sub; it has add"),
        ("a b", "name is 'a b'"),
    ):
        with pytest.raises(ValueError, match=words):
            compiled(ADD, name)
    with pytest.raises(ValueError, match=r"has no kernel, a function that is declared"):
        compiled("int x;")
    with pytest.raises(ValueError, match=r"option '-wrapper' is not known"):
        compiled(ADD, options=["-wrapper"])
    with pytest.raises(TypeError, match=r"options is '-DN=1'; give a list"):
        compiled(ADD, options="-DN=1")
    with pytest.raises(TypeError, match=r"source is a int"):
        compiled(5)
    with pytest.raises(ValueError, match=r"source has a surrogate"):
        compiled(ADD + "// \udcff")
    assert (
        compiled(ADD, options=["--use_fast_math", "-arch=sm_90", "-lineinfo"]).name
        == "add"
    )


def test_the_name_of_pytorch(here):
    add = torch.cuda._compile_kernel(ADD, "add", nvcc_options=["-O3"])
    x = torch.ones(8, device=here)
    add(grid=(1, 1, 1), block=(8, 1, 1), args=[x, x, x, 8])
    assert x.tolist() == [2.0] * 8
