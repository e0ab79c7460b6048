"""Whole CUDA programs, compiled by `python -m pydevtensor nvcc`, on simulated GPUs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pydevtensor.cuda import _program_source

FOLDER = Path(__file__).parent / "cuda_programs"
# What each program prints, and the files that it has beside NAME.cu.
PROGRAMS = {
    "vector_add": "0 of 100000 elements are wrong",
    "tiled_matmul": "the largest error is 0, with tiles of 16",
    "reduction": "tree 29987, shuffles 29987, last block 29987, expected 29987",
    "histogram": "right",
    "scan": "0 wrong, the last is 39990",
    "stencil": "the largest error is below 1e-4: yes",
    "two_gpus": "3498500, expected 3498500; 1 and 1 calls",
    "streams": "0 wrong, four streams are faster: yes",
    "constant_filter": "0 wrong, 6988 reads",
    "managed": "0 wrong, the longest list has 19",
    "pieces": "0 wrong",
}
MORE = {"pieces": ["pieces_more"]}
# What the others do too, and test_options_of_nvcc with tiled_matmul.
ALIKE = {"tiled_matmul", "scan", "histogram", "stencil", "vector_add"}
pytestmark = pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
    reason="a program has no sanitizer, which the library would need",
)
HOST = {"PYDEVTENSOR_SIM_HOST": "fixed"}


def nvcc(*words, folder=None):
    """Exit status, output and errors of pydevtensor's nvcc."""
    command = [sys.executable, "-P", "-m", "pydevtensor", "nvcc", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def run(program, *arguments, **environment):
    """Exit status, output and errors of a program."""
    chosen = {k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")}
    chosen |= {**HOST, **environment}
    command = [program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=chosen)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def program(tmp_path):
    """Compiles a source, and gives what runs it."""

    def made(source, *options):
        (tmp_path / "program.cu").write_text(source)
        found = nvcc("program.cu", "-o", "program", *options, folder=tmp_path)
        assert found == (0, "", "")
        return lambda *arguments, **chosen: run(
            tmp_path / "program", *arguments, **chosen
        )

    return made


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ())
        for name in PROGRAMS
    ],
)
def test_a_program_of_a_course(name, tmp_path):
    sources = [FOLDER / f"{each}.cu" for each in (name, *MORE.get(name, ()))]
    assert nvcc(*sources, "-o", tmp_path / name) == (0, "", "")
    expected = (0, f"{name}: {PROGRAMS[name]}\n", "")
    assert run(tmp_path / name, PYDEVTENSOR_SIM_GPUS="2") == expected


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.cu")), ids=lambda p: p.stem)
def test_nvidias_compiler_takes_the_program(path, tmp_path):
    command = ["nvcc", "-c", "-Werror", "all-warnings", "-o", tmp_path / "out.o", path]
    # Where descriptor 0 is closed, nvcc opens a file of its own there, and fails.
    done = subprocess.run(command, input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_options_of_nvcc(tmp_path):
    words = [FOLDER / "tiled_matmul.cu", "-DTILE=8", "-O3", "-std=c++14", "-arch=sm_80"]
    words += ["-gencode", "arch=compute_90,code=sm_90", "-lineinfo", "-Xptxas", "-v"]
    words += ["-Xcompiler", "-Wall,-DUNUSED", "-lcudart", "-L", tmp_path, "-lm"]
    assert nvcc(*words, "-run") == (
        0,
        "tiled_matmul: the largest error is 0, with tiles of 8\n",
        "",
    )


@pytest.mark.parametrize("name", ["N", "T"])
def test_macros_do_not_reach_the_headers(program, tmp_path, name):
    """Of options, and of a file beside the source."""
    (tmp_path / "own.cuh").write_text("#define value 3\n#include <cuda_fp16.h>\n")
    ran = program(
        """#include <cooperative_groups.h>
        #include "own.cuh"
        #include <cstdio>
        int main() { printf("%d %d %d\\n", NAME, MORE, value); }""".replace(
            "NAME", name
        ),
        *(f"-D{name}=4", "-DMORE", "-DGONE", "-UGONE", "-D_GNU_SOURCE"),
    )
    assert ran() == (0, "4 1 3\n", "")


@pytest.mark.slow
def test_objects_are_linked(tmp_path):
    for name in ("pieces", "pieces_more"):
        found = nvcc("-dc", FOLDER / f"{name}.cu", "-o", f"{name}.o", folder=tmp_path)
        assert found == (0, "", "")
    assert nvcc("pieces.o", "pieces_more.o", folder=tmp_path) == (0, "", "")
    assert run(tmp_path / "a.out") == (0, "pieces: 0 wrong\n", "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "usage:"),
        (["-o", "x"], "no source is given"),
        (["none-such.cu"], "none-such.cu is not a file"),
        (["x.cu", "-ptx"], "simulated GPUs have programs alone"),
        (["x.cu", "--frobnicate"], "'--frobnicate' is not known"),
        (["x.cu", "-lcublas"], "-lcublas: simulated GPUs do not have this library"),
        (["x.cu", "-std=latin"], "give such as -std=c++17"),
        (["x.cu", "-o"], "-o needs a value"),
    ],
)
def test_a_wrong_command(words, reason):
    status, out, error = nvcc(*words)
    assert (status, reason in out + error) == (1 if words else 0, True), error


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x = 1;", "program.cu:5:5: error: 'x' was not declared in this scope"),
        ("k<<<1>>>(0);", "program.cu:5: error: this launch is not understood"),
        (
            "k<<<1, 1>>>(1, 2);",
            "program.cu:5: error: too many arguments to function 'void k(int)'",
        ),
        ("y<<<1, 1>>>();", "program.cu:5: error: 'y' was not declared in this scope"),
        ('asm("nop");', "program.cu:5: error: simulated GPUs do not have PTX"),
        ("cudaStreamCreate(5);", "program.cu:5:22: error:"),  # notes are of our header
        ("cudaMemPoolTrimTo(0, 4);", "do not have memory pools; use cudaMalloc"),
        ("cudaLaunchCooperativeKernel(0);", "do not have cooperative launches; end"),
    ],
)
def test_an_error_of_the_source(line, reason, tmp_path):
    source = f"__global__ void k(int n)\n{{\n}}\nint main() {{\n    {line}\n}}\n"
    if "<<<1>>>" in line:
        source = source.replace("<<<1>>>(0)", "<<<1, 1>>>")
    (tmp_path / "program.cu").write_text(source)
    status, _, error = nvcc("program.cu", folder=tmp_path)
    assert status == 1 and "sim::" not in error
    assert reason in error


# --- what a GPU would do


def test_host_code_does_not_read_a_gpus_memory(program):
    status, out, error = program("""#include <cstdio>
        __device__ int variable;
        int main(int count, char **)
        {
            int *x;
            cudaMalloc(&x, 4);
            printf("before\\n");
            if (count == 1)
                printf("%d\\n", *x);
            else
                variable = 1;
        }""")()
    assert (status, out) == (-11, "before\n")
    assert re.match(
        r"program.cu:9: host code touches 0x\w+, memory of simulated cuda:0", error
    )
    assert "copy it with cudaMemcpy, or allocate it with cudaMallocManaged" in error


@pytest.mark.slow
def test_host_code_does_not_write_a_device_variable(program):
    ran = program("""
        __device__ int variable;
        int main()
        {
            variable = 1;
        }""")
    assert ran()[0] == -11
    assert ran()[2] == (
        "program.cu:5: host code touches a __device__ or __constant__ variable; copy it "
        "with cudaMemcpyToSymbol or cudaMemcpyFromSymbol\n"
    )


@pytest.mark.slow
def test_a_forgotten_synchronization_shows_old_data(program):
    ran = program("""#include <cstdio>
        __global__ void put(int *x, int value) { *x = value; }
        int main()
        {
            int *x, *y, copied = 1;
            cudaMallocManaged(&x, sizeof(int));
            cudaMalloc(&y, sizeof(int));
            *x = 1;
            put<<<1, 1>>>(x, 2);
            put<<<1, 1>>>(y, 2);
            cudaMemcpyAsync(&copied, y, sizeof(int), cudaMemcpyDeviceToHost);
            printf("%d %d, ", *x, copied);
            cudaDeviceSynchronize();
            printf("%d %d\\n", *x, copied);
        }""")
    assert ran() == (0, "1 1, 2 2\n", "")


@pytest.mark.slow
def test_errors_of_a_call_are_its_own(program):
    ran = program("""#include <cstdio>
        #define SAY(call) printf("%s\\n", cudaGetErrorString(call))
        __global__ void nothing(const float *) {}
        int main()
        {
            float *x, host[10];
            cudaMalloc(&x, sizeof(host));
            nothing<<<1, 2048>>>(x);
            SAY(cudaPeekAtLastError());
            SAY(cudaGetLastError());
            SAY(cudaGetLastError());
            nothing<<<1, 1, 50000>>>(NULL);
            SAY(cudaGetLastError());
            SAY(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000));
            nothing<<<1, 1, 50000>>>(0);
            SAY(cudaGetLastError());
            SAY(cudaMemcpy(host, x, sizeof(host), cudaMemcpyHostToDevice));
            SAY(cudaMemcpy(host, x, 44, cudaMemcpyDeviceToHost));
            SAY(cudaSetDevice(7));
            SAY(cudaDeviceSynchronize());
        }""")
    status, out, error = ran()
    assert (status, error) == (0, "")
    lines = out.splitlines()
    configuration = "invalid configuration argument"
    assert lines[:3] + lines[4:6] == [configuration] * 2 + ["no error"] * 3
    assert lines[3].startswith("invalid argument: nothing may have 49152 bytes of dyn")
    assert re.fullmatch(
        r"invalid argument: the target of a copy of 40 bytes is 0x\w+, not an address in "
        "device memory",
        lines[6],
    )
    assert lines[7] == (
        "invalid argument: the source of a copy of 44 bytes: 44 bytes at offset 0 go past "
        "the end of a block of 40 bytes of simulated cuda:0"
    )
    assert lines[8:] == ["invalid device ordinal", "no error"]


@pytest.mark.slow
def test_an_error_of_a_kernel_comes_later_and_stays(program):
    status, out, _ = program("""#include <cstdio>
        #define SAY(call) printf("%s\\n", cudaGetErrorString(call))
        __global__ void far_away(float *x)
        {
            x[threadIdx.x] = 1;
            x[threadIdx.x + (1 << 24)] = 2;
        }
        int main()
        {
            float *x;
            cudaMalloc(&x, 4000);
            far_away<<<1, 32>>>(x);
            SAY(cudaGetLastError());
            SAY(cudaDeviceSynchronize());
            SAY(cudaMalloc(&x, 4));
            SAY(cudaMemset(x, 0, 4));
        }""")()
    first, *others = out.splitlines()
    assert (status, first) == (0, "no error")
    assert re.fullmatch(
        r"an illegal memory access was encountered: far_away block \(0, 0, 0\), thread "
        r"\(\d+, 0, 0\) touched 0x\w+, not allocated on simulated cuda:0 \(program.cu:6\)",
        others[0],
    )
    assert others == [others[0]] * 3


def test_assert_in_host_code_and_kernels(program):
    ran = program("""#include <cassert>
        #include <cstdio>
        __global__ void check(int n) { assert(n > (int)threadIdx.x); }
        int main(int count, char **)
        {
            assert(count == 1);
            check<<<1, 2>>>(1);
            printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
        }""")
    assert ran()[1].endswith(
        "thread (1, 0, 0): assert(n > (int)threadIdx.x) failed (program.cu:3)\n"
    )
    status, _, error = ran("more")
    assert status == -6
    assert error.endswith(
        "program.cu:6: int main(int, char**): assert(count == 1) failed\n"
    )


def test_a_structs_pointer_and_a_pointer_in_memory(program):
    ran = program("""#include <cstdio>
        struct Row { const int *values; int n; };
        __global__ void sum(const Row *rows, int *out)
        {
            const Row row = rows[threadIdx.x];
            for (int i = 0; i < row.n; i++)
                out[threadIdx.x] += row.values[i];
        }
        int main()
        {
            int values[] = {1, 2, 3, 4}, *d_values[2], *out, got[2];
            Row rows[2], *d_rows;
            cudaMalloc(&out, sizeof(got));
            cudaMemset(out, 0, sizeof(got));
            for (int i = 0; i < 2; i++) {
                cudaMalloc(&d_values[i], sizeof(values));
                cudaMemcpy(d_values[i], values, sizeof(values), cudaMemcpyHostToDevice);
                rows[i] = {d_values[i], 3 + i};
            }
            cudaMalloc(&d_rows, sizeof(rows));
            cudaMemcpy(d_rows, rows, sizeof(rows), cudaMemcpyHostToDevice);
            sum<<<1, 2>>>(d_rows, out);
            cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost);
            printf("%d %d\\n", got[0], got[1]);
            return *d_values[0];
        }""")
    status, out, error = ran()
    assert (status, out) == (-11, "6 10\n")
    assert "host code touches" in error


@pytest.mark.slow
def test_the_default_stream_waits_for_others_and_they_for_it(program):
    ran = program("""#include <cstdio>
        __global__ void add(int *x, int by) { *x = 10 * *x + by; }
        int main()
        {
            int *x, got;
            cudaStream_t blocking, free_one;
            cudaStreamCreate(&blocking);
            cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking);
            cudaMalloc(&x, sizeof(int));
            cudaMemset(x, 0, sizeof(int));
            add<<<1, 1, 0, blocking>>>(x, 1);
            add<<<1, 1>>>(x, 2);
            add<<<1, 1, 0, blocking>>>(x, 3);
            cudaMemcpy(&got, x, sizeof(int), cudaMemcpyDeviceToHost);
            add<<<1, 1, 0, free_one>>>(x, 4);
            printf("%d, ", got);
            cudaMemcpy(&got, x, sizeof(int), cudaMemcpyDeviceToHost);
            printf("%d\\n", got);
        }""")
    assert ran() == (0, "123, 123\n", "")


@pytest.mark.slow
def test_memory_of_the_hosts_is_registered(program):
    ran = program("""#include <cstdio>
        #include <cstdlib>
        #define SAY(call) printf("%s, ", cudaGetErrorName(call))
        __global__ void add(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
        int main()
        {
            int *x = (int *)calloc(4, sizeof(int)), *there;
            SAY(cudaHostUnregister(x));
            SAY(cudaHostRegister(x, 4 * sizeof(int), cudaHostRegisterDefault));
            SAY(cudaHostRegister(x, 4 * sizeof(int), cudaHostRegisterDefault));
            SAY(cudaHostGetDevicePointer(&there, x, 0));
            add<<<1, 4>>>(there, 4);
            SAY(cudaHostUnregister(x));
            printf("%d, ", x[3]);
            add<<<1, 4>>>(x, 4);
            SAY(cudaDeviceSynchronize());
            free(x);
        }""")
    wrong, right = "cudaErrorInvalidValue, ", "cudaSuccess, "
    expected = wrong + right + wrong + right * 2 + "1, cudaErrorIllegalAddress, "
    assert ran() == (0, expected, "")


@pytest.mark.slow
def test_a_graph_takes_a_kernels_first_launch(program):
    ran = program("""#include <cstdio>
        __global__ void add(int *x, int by = 5) { *x += by; }
        int main()
        {
            int *x;
            cudaStream_t stream;
            cudaGraph_t graph;
            cudaGraphExec_t ready;
            cudaMallocManaged(&x, sizeof(int));
            *x = 0;
            cudaStreamCreate(&stream);
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
            add<<<1, 1, 0, stream>>>(x);
            add<<<1, 1, 0, stream>>>(x, 1);
            cudaStreamEndCapture(stream, &graph);
            cudaGraphInstantiate(&ready, graph, 0);
            cudaGraphInstantiate(&ready, graph, nullptr, nullptr, 0);
            for (int i = 0; i < 3; i++)
                cudaGraphLaunch(ready, stream);
            printf("%d ", *x);
            printf("%s ", cudaGetErrorString(cudaStreamSynchronize(stream)));
            printf("%d\\n", *x);
        }""")
    assert ran() == (0, "0 no error 18\n", "")


@pytest.mark.slow
def test_headers_of_cuda_and_of_the_cpp_library(program):
    ran = program("""#include <memory>
        #include <thread>
        #include <vector>
        #include <cooperative_groups.h>
        #include <cuda_fp16.h>
        #include <iostream>
        using namespace std;
        namespace cg = cooperative_groups;
        __device__ __noinline__ __half twice(__half x) { return __hadd(x, x); }
        void CUDART_CB done(void *flag) { *(int *)flag = 1; }
        __global__ void sum(__half *x, int *all)
        {
            auto warp = cg::tiled_partition<32>(cg::this_thread_block());
            x[warp.thread_rank()] = twice(x[warp.thread_rank()]);
            int value = (int)__half2float(x[warp.thread_rank()]);
            for (int offset = 16; offset > 0; offset /= 2)
                value += warp.shfl_down(value, offset);
            if (warp.thread_rank() == 0)
                *all = max(value, 0);
        }
        int main()
        {
            vector<thread> threads;
            vector<int> sums(2);
            for (int gpu = 0; gpu < 2; gpu++)
                threads.emplace_back([gpu, &sums] {
                    vector<__half> x(32, __float2half(1.5f + gpu));
                    __half *d_x;
                    int *all;
                    cudaSetDevice(gpu);
                    cudaMalloc(&d_x, 64);
                    cudaMalloc(&all, 4);
                    cudaMemcpy(d_x, x.data(), 64, cudaMemcpyHostToDevice);
                    sum<<<1, 32>>>(d_x, all);
                    cudaMemcpy(&sums[gpu], all, 4, cudaMemcpyDeviceToHost);
                });
            for (auto &each : threads)
                each.join();
            int flag = 0; cudaLaunchHostFunc(0, done, &flag), cudaDeviceSynchronize();
            cout << sums[0] << " " << sums[1] << " " << flag << endl;
        }""")
    assert ran(PYDEVTENSOR_SIM_GPUS="2") == (0, "96 160 1\n", "")


def test_the_card_is_chosen_when_the_program_runs(program):
    ran = program("""#include <cstdio>
        int main()
        {
            int n;
            cudaGetDeviceCount(&n);
            cudaDeviceProp facts;
            cudaGetDeviceProperties(&facts, 0);
            printf("%d x %s, %d.%d, %d SMs\\n", n, facts.name, facts.major, facts.minor,
                   facts.multiProcessorCount);
        }""")
    assert ran()[1] == "1 x NVIDIA T4 (simulated), 7.5, 40 SMs\n"
    chosen = {"PYDEVTENSOR_SIM_CARD": "h100", "PYDEVTENSOR_SIM_GPUS": "4"}
    assert ran(**chosen)[1] == "4 x NVIDIA H100 SXM (simulated), 9.0, 132 SMs\n"


@pytest.mark.slow
def test_events_tell_the_cards_time(program):
    ran = program("""#include <cstdio>
        __global__ void copy(const float *from, float *to)
        {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            to[i] = from[i];
        }
        int main()
        {
            const int n = 1 << 20;
            float *x, *y, milliseconds;
            cudaMalloc(&x, n * sizeof(float));
            cudaMalloc(&y, n * sizeof(float));
            cudaEvent_t start, stop;
            cudaEventCreate(&start);
            cudaEventCreate(&stop);
            cudaEventRecord(start);
            for (int i = 0; i < 4; i++)
                copy<<<n / 256, 256>>>(x, y);
            cudaEventRecord(stop);
            cudaEventSynchronize(stop);
            cudaEventElapsedTime(&milliseconds, start, stop);
            printf("%.4f\\n", milliseconds);
        }""")
    slow = float(ran(PYDEVTENSOR_SIM_CARD="t4")[1])
    fast = float(ran(PYDEVTENSOR_SIM_CARD="h200")[1])
    # 32 MiB by 320 GB/s are 0.105 ms.
    assert 0.1 < slow < 0.2 and fast < slow / 3


# --- the rewritten source


def rewritten(text):
    return _program_source.rewritten(f'# 1 "a.cu"\n{text}', ()).partition('"a.cu"\n')[2]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("__device__ int x;", "__device_variable__ int x;"),
        (
            "static __device__ float x[3] = {1};",
            "static __device_variable__ float x[3] = {1};",
        ),
        ("__constant__ float4 c[2];", "__device_variable__ float4 c[2];"),
        ("__device__ int (*f)(int);", "__device_variable__ int (*f)(int);"),
        ("__device__ const int *p;", "__device_variable__ const int *p;"),
        ("__constant__ const int n = 3;", None),
        ("__device__ int f(int);", None),
        ("__host__ __device__ T operator()(T a) const;", None),
        ("auto f = [=] __device__ (int i) { return i; };", None),
        ("__managed__ int m;", None),
        ("int x = a <<b>> c;", None),
        ('const char *s = "k<<<1, 1>>>()";', None),
    ],
)
def test_variables_of_devices(source, expected):
    assert rewritten(source) == (expected or source)


@pytest.mark.parametrize(
    ("launch", "callee", "configuration"),
    [
        ("k<<<1, 2>>>(x)", "k", "1, 2"),
        ("k <<< g, dim3(3, 4) >>> (x)", "k", " g, dim3(3, 4) "),
        ("a::k<T, f<3>><<<1, n >> 2, 0, s>>>(x)", "a::k<T, f<3>>", "1, n >> 2, 0, s"),
        ("(*p)<<<1, 1>>>()", "(*p)", "1, 1"),
        ("table[i]<<<1, 1>>>()", "table[i]", "1, 1"),
    ],
)
def test_launches(launch, callee, configuration):
    text = rewritten(f"void f() {{ {launch}; }}")
    assert f'"{callee}", 1, 1, {configuration})' in text
    assert f"{callee}(sim_a...)" in text


def test_lines_stay():
    text = rewritten("void f()\n{\n    k<<<1,\n       2>>>(x);\n    g();\n}\n")
    assert text.splitlines()[4] == "    g();"


def test_a_kernel_without_barriers_runs_without_fibers():
    source = "__global__ void a(int n) {}\n__global__ void b() { __syncthreads(); }\n"
    text = rewritten(source + "void f() { a<<<1, 1>>>(1); b<<<1, 1>>>(); }")
    assert 'launching("a", 0, 0, 1, 1).with(&a)' in text
    assert 'launching("b", 1, 0, 1, 1).with(&b)' in text
