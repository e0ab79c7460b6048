"""Kernels in CUDA C of the program's own: programs of a first course, and what launches do."""

import os
import shutil
import sys

import pytest
from kernel_programs import ADD, compiled, run, simulated

import pydevtensor as torch


def test_vector_add(here):
    a, b = torch.rand(1000, device=here), torch.rand(1000, device=here)
    c = torch.empty(1000, device=here)
    add = compiled(ADD, "add")
    add(grid=(4,), block=(256,), args=(a, b, c, 1000))
    assert torch.equal(c, a + b)
    add((4, 1, 1), (256, 1, 1), [a, a, c, 1000], shared_mem=0, stream=None)
    assert torch.equal(c, a + a)


def test_saxpy(here):
    saxpy = compiled("""
        __global__ void saxpy(int n, float a, const float *__restrict__ x, float *y)
        {
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
                 i += gridDim.x * blockDim.x)
                y[i] = a * x[i] + y[i];
        }""")
    x, y = torch.rand(777, device=here), torch.rand(777, device=here)
    expected = 1.5 * x + y
    saxpy(3, 64, (777, 1.5, x, y))
    torch.testing.assert_close(y, expected)


def test_tiled_matmul(here):
    matmul = compiled(
        """
        __global__ void __launch_bounds__(TILE * TILE)
        matmul(const float *a, const float *b, float *c, int n)
        {
            __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
            int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
            float sum = 0;
            for (int t = 0; t < n; t += TILE) {
                left[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
                right[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
                __syncthreads();
        #pragma unroll
                for (int k = 0; k < TILE; k++)
                    sum += left[threadIdx.y][k] * right[k][threadIdx.x];
                __syncthreads();
            }
            c[row * n + col] = sum;
        }""",
        options=["-DTILE=8"],
    )
    a, b = torch.rand(32, 32, device=here), torch.rand(32, 32, device=here)
    c = torch.empty(32, 32, device=here)
    matmul((4, 4), (8, 8), (a, b, c, 32))
    torch.testing.assert_close(c, a @ b)


@pytest.mark.parametrize("name", ["N", "T", "I", "U", "F", "K", "TILE", "Op"])
def test_macros_do_not_reach_the_headers(here, name):
    if name == "T" and not torch.cuda.is_simulated():
        pytest.skip("CUDA's headers have parameters of this name")
    source = """
        #include <cooperative_groups.h>
        #include <cuda_fp16.h>
        #include "more.h"
        __global__ void fill(int *x)
        {
            half one = __float2half(1.0f);
            x[cooperative_groups::this_thread_block().thread_rank()] = NAME + MORE + (int)one;
        }""".replace("NAME", name)
    options = [f"-D{name}=4", "-DMORE", "-DGONE=2", "-UGONE", "-std=c++17"]
    headers = {"more.h": "#ifdef GONE\n#error a macro\n#endif\n"}
    fill = compiled(source, options=options, headers=headers)
    x = torch.zeros(3, dtype=torch.int32, device=here)
    fill(1, 3, (x,))
    assert x.tolist() == [6, 6, 6]


@simulated  # CUDA's own headers have these names
def test_macros_of_included_files_do_not_reach_the_headers(here, tmp_path):
    """Of files in a folder that -I names, and of files that those include."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "own.h").write_text(
        '#pragma once\n#define T 3\n#include "deep/more.h"\n'
    )
    (tmp_path / "deep" / "more.h").write_text('#define F 2\n#include "last.h"\n')
    (tmp_path / "deep" / "last.h").write_text(
        "#define value 1\n#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n"
    )
    fill = compiled(
        """
        #define H 4
        #include "own.h"
        __global__ void fill(float *x) { x[0] = __half2float(__float2half(T + F + value + H)); }
        """,
        options=[f"-I{tmp_path}"],
    )
    x = torch.zeros(1, device=here)
    fill(1, 1, (x,))
    assert x.item() == 10


def test_reduction_in_dynamic_shared_memory(here):
    total = compiled("""
        __global__ void total(const float *x, float *out, int n)
        {
            extern __shared__ __align__(16) float part[];
            int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
            part[t] = i < n ? x[i] : 0.0f;
            __syncthreads();
            for (int step = blockDim.x / 2; step > 0; step /= 2) {
                if (t < step) part[t] += part[t + step];
                __syncthreads();
            }
            if (t == 0) atomicAdd(out, part[0]);
        }""")
    x, out = torch.rand(1000, device=here), torch.zeros(1, device=here)
    total((8,), (128,), (x, out, 1000), shared_mem=128 * 4)
    torch.testing.assert_close(out[0], x.sum())


def test_histogram_of_bytes(here):
    histogram = compiled("""
        __global__ void histogram(const unsigned char *x, unsigned int *bins, int n)
        {
            __shared__ unsigned int own[256];
            own[threadIdx.x] = 0;
            __syncthreads();
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
                 i += blockDim.x * gridDim.x)
                atomicAdd(&own[x[i]], 1);
            __syncthreads();
            atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
        }""")
    x = torch.randint(0, 256, (5000,), dtype=torch.uint8, device=here)
    bins = torch.zeros(256, dtype=torch.int32, device=here)
    histogram((3,), (256,), (x, bins, 5000))
    assert torch.equal(bins.long(), torch.bincount(x.long(), minlength=256))


def test_scan_of_a_block(here):
    scan = compiled("""
        __global__ void scan(const int *x, int *out, int n)
        {
            extern __shared__ char memory[];
            int *now = (int *)memory, t = threadIdx.x;
            now[t] = t < n ? x[t] : 0;
            for (int step = 1; step < blockDim.x; step *= 2) {
                __syncthreads();
                int before = t >= step ? now[t - step] : 0;
                __syncthreads();
                now[t] += before;
            }
            if (t < n) out[t] = now[t];
        }""")
    x = torch.arange(100, dtype=torch.int32, device=here)
    out = torch.empty_like(x)
    scan(1, 128, (x, out, 100), shared_mem=4 * 128)
    assert torch.equal(out.long(), x.cumsum(0))


def test_stencil_with_constant_weights(here):
    stencil = compiled("""
        __constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
        __device__ __forceinline__ float at(const float *x, int i, int n)
        {
            return x[min(max(i, 0), n - 1)];
        }
        __global__ void stencil(const float *x, float *y, int n)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            float sum = 0;
            for (int k = -1; k <= 1; k++) sum += weights[k + 1] * at(x, i + k, n);
            y[i] = sum;
        }""")
    x = torch.rand(50, device=here)
    y = torch.empty_like(x)
    stencil(2, 32, (x, y, 50))
    wide = torch.cat([x[:1], x, x[-1:]])
    torch.testing.assert_close(y, wide[:-2] / 4 + wide[1:-1] / 2 + wide[2:] / 4)


def test_transpose_of_vectors(here):
    transpose = compiled("""
        __global__ void transpose(const float4 *x, float *y, int rows)
        {
            int row = blockIdx.x * blockDim.x + threadIdx.x;
            if (row >= rows) return;
            float4 v = x[row];
            float4 twice = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
            y[row] = twice.x, y[rows + row] = twice.y;
            y[2 * rows + row] = twice.z, y[3 * rows + row] = twice.w;
        }""")
    x = torch.rand(40, 4, device=here)
    y = torch.empty(4, 40, device=here)
    transpose(2, 32, (x, y, 40))
    assert torch.equal(y, 2 * x.T)


def test_shuffles_and_votes(here):
    warp = compiled("""
        __global__ void warp(const int *x, int *sum, unsigned *even)
        {
            int v = x[threadIdx.x];
            unsigned mask = __ballot_sync(0xffffffff, v % 2 == 0);
            for (int step = warpSize / 2; step; step /= 2)
                v += __shfl_down_sync(0xffffffff, v, step);
            __syncwarp();
            if (threadIdx.x % warpSize == 0) {
                sum[threadIdx.x / warpSize] = v;
                even[threadIdx.x / warpSize] = __popc(mask);
            }
        }""")
    x = torch.randint(0, 100, (64,), dtype=torch.int32, device=here)
    total = torch.empty(2, dtype=torch.int32, device=here)
    even = torch.empty(2, dtype=torch.int32, device=here)
    warp(1, 64, (x, total, even))
    assert torch.equal(total.long(), x.view(2, 32).sum(1))
    assert torch.equal(even.long(), (x.view(2, 32) % 2 == 0).sum(1))


def test_atomics(here):
    atomics = compiled("""
        __global__ void atomics(int *most, int *least, unsigned long long *n, unsigned *turn,
                                float *last)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            atomicMax(most, i), atomicMin(least, i), atomicAdd(n, 1ull);
            atomicInc(turn, 9), atomicExch(last, 2);
            atomicCAS(most + 1, 0, 7), atomicOr(most + 2, 1 << (i % 4));
        }""")
    most, least = (torch.zeros(3, dtype=torch.int32, device=here) for _ in range(2))
    n = torch.zeros(1, dtype=torch.int64, device=here)
    turn = torch.zeros(1, dtype=torch.int32, device=here)
    last = torch.zeros(1, device=here)
    atomics(2, 64, (most, least, n, turn, last))
    assert most.tolist() == [127, 7, 15]
    assert (least[0].item(), n.item(), turn.item(), last.item()) == (0, 128, 8, 2.0)


def test_templates_by_name_expressions(here):
    source = """
        template <typename T, int BY>
        __global__ void scale(T *x, T add, int n)
        {
            int i = threadIdx.x;
            if (i < n) x[i] = x[i] * BY + add;
        }"""
    for dtype, kind in ((torch.float64, "double"), (torch.int64, "long long")):
        x = torch.arange(10, dtype=dtype, device=here)
        expected = x * 3 + 1
        compiled(source, f"scale<{kind}, 3>")(1, 32, (x, 1, 10))
        assert torch.equal(x, expected)
    with pytest.raises(ValueError, match=r"is a template.*'scale<float>'"):
        compiled(source)


def test_several_kernels_share_a_variable_of_their_gpu(two_gpus):
    source = """
        __device__ int counter;
        __global__ void count() { atomicAdd(&counter, 1); }
        __global__ void read(int *out) { *out = counter; }
        """
    source += f"// {os.urandom(8).hex()}: a module of this test's own\n"
    count, read = compiled(source, "count"), compiled(source, "read")
    for gpu, expected in zip(two_gpus, (5, 3), strict=True):
        with torch.cuda.device(gpu):
            count(1, expected)
            out = torch.zeros(1, dtype=torch.int32, device=gpu)
            read(args=(out,))
            assert out.item() == expected
    with pytest.raises(ValueError, match=r"has the kernels count, read; name one"):
        compiled(source)


def test_printf_and_math(here, capfd):
    show = compiled(r"""
        #include <stdio.h>
        #include <cuda_runtime.h>
        __global__ void show(double *x, bool b, char c)
        {
            if (b) printf("thread %d has %.2f %d\n", threadIdx.x, x[threadIdx.x], c);
            x[threadIdx.x] = rsqrt(x[threadIdx.x]) + fmaf(1, 2, 3) + abs(-1.5f);
        }""")
    x = torch.tensor([4.0, 16.0], dtype=torch.float64, device=here)
    show(1, 2, (x, True, 5))
    torch.cuda.synchronize()
    assert {*capfd.readouterr().out.splitlines()} == {
        "thread 0 has 4.00 5",
        "thread 1 has 16.00 5",
    }
    assert x.tolist() == [7.0, 6.75]


def test_headers_are_given_as_texts(here):
    head = {"lib/sizes.h": "#pragma once\n#define SIZE 7\n"}
    source = '#include "lib/sizes.h"\n__global__ void f(int *x) { *x = SIZE; }'
    x = torch.zeros(1, dtype=torch.int32, device=here)
    compiled(source, headers=head)(args=(x,))
    assert x.item() == 7
    with pytest.raises(ValueError, match=r"'../a.h' is not one below"):
        compiled(source, headers={"../a.h": ""})


# --- what the rest of the library sees -----------------------------------------------


def test_current_and_given_streams(here):
    add, x = compiled(ADD), torch.ones(8, device=here)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    y = torch.empty(8, device=here)
    add(1, 8, (x, x, y, 8), stream=stream)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.profiler.profile() as prof, torch.cuda.stream(stream):
        add(1, 8, (y, y, x, 8))
    assert [e.name for e in prof.events()] == ["add"]
    torch.cuda.synchronize()
    assert x.tolist() == [4.0] * 8


def test_a_graph_captures_and_replays(here):
    add = compiled(ADD)
    x, y = torch.ones(8, device=here), torch.zeros(8, device=here)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(1, 8, (x, y, y, 8))
    assert y.tolist() == [0.0] * 8
    for _ in range(3):
        graph.replay()
    assert y.tolist() == [3.0] * 8


def test_the_profile_has_line_name_and_bytes(here):
    add, x = compiled(ADD), torch.ones(100, device=here)
    line = sys._getframe().f_lineno
    with torch.profiler.profile() as prof:
        add(1, 100, (x, x, x, 100))
    (event,) = prof.events()
    assert (event.kind, event.name, event.bytes) == ("kernel", "add", 1200)
    assert event.place.line == line + 2


@pytest.mark.slow
def test_the_clock_prices_bytes():
    out, err = run(
        """
torch.cuda.simulate(1, card="t4", host="fixed")
add = torch.cuda.compile_kernel(ADD)
times = []
for n in (1000, 10_000_000):
    x = torch.ones(n, device="cuda")
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    add(((n + 255) // 256,), (256,), (x, x, x, n))
    end.record()
    torch.cuda.synchronize()
    times.append(start.elapsed_time(end))
print(times[0] > 0, times[1] > 10_000_000 * 8 / 320e9 * 1e3, times[1] < 2)
"""
    )
    assert out.split() == ["True", "True", "True"], err


def test_races_between_streams_are_found():
    out, err = run(
        """
add = torch.cuda.compile_kernel(ADD)
x, y = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")
torch.cuda.synchronize()
add(2, 256, (x, x, y[:500], 500))
with torch.cuda.stream(torch.cuda.Stream()):
    add(2, 256, (x, x, y[500:], 500))  # other elements
    try:
        z = y + 1
    except RuntimeError as error:
        print(error)
""",
        PYDEVTENSOR_SIM_RACES="error",
    )
    assert "add" in out, err
    assert out.count("<string>") >= 2, out


def test_a_write_is_noticed_by_autograd(here):
    add = compiled(ADD)
    x = torch.ones(4, device=here)
    w = torch.ones(4, device=here, requires_grad=True)
    y = w * x
    add(1, 4, (x, x, x, 4))
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation since"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match=r"leaf Variable that requires grad"):
        add(1, 4, (x, x, w, 4))
    with pytest.raises(RuntimeError, match=r"add: .*has no derivative"):
        add(1, 4, (x, x, w * 2, 4))
    version = x._version
    add(1, 4, (x, x, torch.empty_like(x), 4))
    assert x._version == version
    with torch.no_grad():
        add(1, 4, (x, x, w, 4))
    assert w.tolist() == [4.0] * 4


# --- the cache -----------------------------------------------------------------------


@pytest.mark.slow
def test_the_cache_serves_other_processes(tmp_path):
    program = """
import subprocess
real, calls = subprocess.run, []
subprocess.run = lambda *a, **k: calls.extend({"-c"}.intersection(a[0])) or real(*a, **k)
for text in ADD, "__global__ void f() { nothing; }":
    try:
        torch.cuda.compile_kernel(text)
    except torch.cuda.CompileError:
        pass
print(len(calls))
"""
    variables = {"PYDEVTENSOR_KERNEL_CACHE": str(tmp_path / "own")}
    assert run(program, **variables)[0].strip() == "2"
    assert run(program, **variables)[0].strip() == "1"  # failures are not kept
    (kept,) = (tmp_path / "own").iterdir()
    assert kept.suffix == ".so"
    for harm in (b"damaged", kept.read_bytes()[:-100]):
        kept.write_bytes(harm)
        assert run(program, **variables)[0].strip() == "2"


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    program = "torch.cuda.compile_kernel(ADD)\nprint('done')"
    out, err = run(program, PYDEVTENSOR_KERNEL_CACHE=str(tmp_path / "open"))
    assert out == "done\n", err
    assert not [*(tmp_path / "open").iterdir()]


def test_without_a_compiler(tmp_path):
    program = (
        "import sys\nsys.modules['ziglang'] = None  # is not installed\n"
        "torch.cuda.compile_kernel(ADD)"
    )
    own = str(tmp_path / "own")
    away = {"PATH": str(tmp_path), "CXX": "", "PYDEVTENSOR_KERNEL_CACHE": own}
    assert "sudo apt-get install g++" in run(program, **away)[1]
    assert "CXX is none-such" in run(program, CXX="none-such")[1]
    away = {"CXX": "false", "PYDEVTENSOR_KERNEL_CACHE": own}
    assert "is CXX a C++ compiler?" in run(program, **away)[1]


@pytest.mark.parametrize("name", ["f\n", " f", "f;", "f<int,\nint>"])
def test_a_name_is_one_line_of_a_name(here, name):
    with pytest.raises(ValueError, match="give a kernel's name, such as 'add'"):
        compiled("__global__ void f(int *x) {}", name)


def test_the_compiler_of_the_package_ziglang(tmp_path):
    (tmp_path / "ziglang").mkdir()
    zig = tmp_path / "ziglang" / "zig"
    words = f'PATH={os.environ["PATH"]} exec {shutil.which("c++")} "$@"'
    zig.write_text(
        f'#!{shutil.which("sh")}\n[ "$1" = c++ ] || [ "$1" = cc ] || exit\nshift\n{words}\n'
    )
    zig.chmod(0o700)
    program = f"import sys\nsys.path.append({str(tmp_path)!r})\n"
    program += "print(torch.cuda.compile_kernel(ADD).name)"
    own = str(tmp_path / "own")
    away = {"PATH": "/none-such", "CXX": "", "PYDEVTENSOR_KERNEL_CACHE": own}
    assert run(program, **away) == ("add\n", "")


def test_nothing_is_loaded_before_a_kernel_is_wanted():
    out, _ = run("import sys; print([n for n in sys.modules if '_kernel_' in n])")
    assert out == "[]\n"
