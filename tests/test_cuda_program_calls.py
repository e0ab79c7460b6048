"""Functions of CUDA's runtime in whole programs: kernels, streams, copies of peers."""

from test_cuda_programs import program, pytestmark  # noqa: F401

CHECK = """
#include <cstdio>
#define SHOW(call) printf("%s\\n", cudaGetErrorName(call))
"""


def test_shared_memory_of_each_kernel(program):  # noqa: F811
    ran = program(
        CHECK
        + """
template <class T> __global__ void both(T *p)
{
    __shared__ T fixed[64];
    extern __shared__ T moving[];
    fixed[threadIdx.x] = moving[threadIdx.x] = 1;
    __syncthreads();
    p[threadIdx.x] = fixed[63 - threadIdx.x] + moving[threadIdx.x];
}
__global__ void other(float *p) { p[0] = 1; }
int main()
{
    float *p;
    cudaMalloc(&p, 4096);
    both<<<1, 64, 49152 - 256>>>(p);
    SHOW(cudaGetLastError());
    both<<<1, 64, 49152>>>(p);
    SHOW(cudaGetLastError());
    SHOW(cudaFuncSetAttribute(both<float>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    cudaGetLastError();
    SHOW(cudaFuncSetAttribute((const void *)both<float>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize, 65536 - 256));
    both<float><<<1, 64, 65536 - 256>>>(p);
    SHOW(cudaGetLastError());
    other<<<1, 1, 60000>>>(p);
    SHOW(cudaPeekAtLastError());
    printf("%s\\n", cudaGetErrorString(cudaGetLastError()));
    cudaFuncAttributes facts;
    SHOW(cudaFuncGetAttributes(&facts, both<float>));
    printf("%zu %d %d\\n", facts.sharedSizeBytes, facts.maxDynamicSharedSizeBytes,
           facts.maxThreadsPerBlock);
    int blocks;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, other, 32, 16384);
    printf("%d", blocks);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, both<float>, 32, 16384);
    printf(" %d\\n", blocks);
    SHOW(cudaDeviceSynchronize());
}"""
    )
    ok, wrong = "cudaSuccess", "cudaErrorInvalidValue"
    lines = ran()[1].splitlines()
    assert lines[:6] == [ok, wrong, wrong, ok, ok, wrong]
    assert "other may have 49152 bytes of dynamic" in lines[6]
    assert lines[7:] == [ok, "256 65280 1024", "4 3", ok]


def test_streams_say_what_they_are(program):  # noqa: F811
    ran = program(
        CHECK
        + """
static void CUDART_CB called(cudaStream_t, cudaError_t status, void *data)
{
    *(int *)data += 1 + status;
}
int main()
{
    cudaStream_t s, plain;
    int least, greatest, priority, calls = 0;
    unsigned flags;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest);
    cudaStreamCreate(&plain);
    SHOW(cudaStreamGetPriority(s, &priority));
    SHOW(cudaStreamGetFlags(s, &flags));
    printf("%d %u", priority == greatest, flags);
    cudaStreamGetFlags(plain, &flags);
    printf(" %u\\n", flags);
    SHOW(cudaStreamAddCallback(s, called, &calls, 0));
    SHOW(cudaStreamAddCallback(s, nullptr, &calls, 0));
    cudaStreamSynchronize(s);
    float *p, value = 5;
    SHOW(cudaMallocAsync(&p, 4, s));
    SHOW(cudaMemset2DAsync(p, 4, 0, 4, 1, s));
    SHOW(cudaMemcpyAsync(&value, p, 4, cudaMemcpyDeviceToHost, s));
    SHOW(cudaFreeAsync(p, s));
    int bits, rate;
    cudaDeviceGetAttribute(&bits, cudaDevAttrMaxBlockDimZ, 0);
    SHOW(cudaDeviceGetAttribute(&rate, cudaDevAttrClockRate, 0));
    SHOW(cudaDeviceGetAttribute(&rate, (cudaDeviceAttr)9999, 0));
    printf("%d %g %d %s\\n", calls, value, bits,
           cudaGetErrorString(cudaErrorMisalignedAddress));
}"""
    )
    ok, wrong = "cudaSuccess", "cudaErrorInvalidValue"
    assert ran()[1].splitlines() == [
        *(ok, ok, "1 1 0", ok, wrong, ok, ok, ok, ok, ok, wrong),
        "1 0 64 misaligned address",
    ]


def test_a_copy_between_devices_waits_for_both(program):  # noqa: F811
    """In the default stream: for all that either was given before, and later work waits."""
    ran = program(
        """
#include <cstdio>
__global__ void add(int *p, int n, int by)
{
    static __shared__ int one;
    if (threadIdx.x == 0) one = by;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] += one;
}
int main()
{
    const int n = 1000;
    int *a, *b, sums[3] = {0, 0, 0}, *host = new int[n];
    cudaStream_t s;
    cudaMalloc(&a, n * 4);
    cudaMemset(a, 0, n * 4);
    cudaStreamCreate(&s);
    add<<<1, 128, 0, s>>>(a, n, 1);
    cudaSetDevice(1);
    cudaMalloc(&b, n * 4);
    cudaMemcpyPeer(b, 1, a, 0, n * 4); /* 1 */
    add<<<1, 128>>>(b, n, 10);
    cudaSetDevice(0);
    cudaMemcpyAsync(a, b, n * 4, cudaMemcpyDeviceToDevice); /* 11 */
    add<<<1, 128, 0, s>>>(a, n, 100);
    cudaSetDevice(1);
    cudaMemcpyPeerAsync(b, 1, a, 0, n * 4, 0); /* 111 */
    cudaSetDevice(0);
    add<<<1, 128>>>(a, n, 1000);
    int *both[] = {a, b};
    for (int *each : both) {
        cudaMemcpy(host, each, n * 4, cudaMemcpyDefault);
        for (int i = 0; i < n; i++) sums[each == b] += host[i];
    }
    printf("%d %d %s\\n", sums[0], sums[1], cudaGetErrorName(cudaGetLastError()));
}"""
    )
    assert ran(PYDEVTENSOR_SIM_GPUS="2")[1] == "1111000 111000 cudaSuccess\n"


def test_launch_bounds(program):  # noqa: F811
    ran = program(
        CHECK
        + """
#define WIDE 128
constexpr int least = 64;
namespace apart {
__global__ void __launch_bounds__(2 * WIDE, 2) twice(int *p) { p[threadIdx.x] = 1; }
}
__launch_bounds__(least) __global__ void few(int *p) { p[threadIdx.x] = 1; }
template <class T, int N> __global__ void __launch_bounds__(N) of(T *p) { *p = N; }
__global__ void any(int *p) { p[threadIdx.x] = 1; }
int main()
{
    int *p, grid, block;
    cudaMalloc(&p, 4096);
    apart::twice<<<1, 256>>>(p);
    SHOW(cudaGetLastError());
    apart::twice<<<1, dim3(16, 17)>>>(p);
    printf("%s\\n", cudaGetErrorString(cudaGetLastError()));
    few<<<1, least + 1>>>(p);
    SHOW(cudaGetLastError());
    few<<<1, 2000>>>(p);
    SHOW(cudaGetLastError());
    of<int, 96><<<1, 96>>>(p);
    SHOW(cudaGetLastError());
    of<int, 96><<<1, 97>>>(p);
    SHOW(cudaGetLastError());
    any<<<1, 1024>>>(p);
    SHOW(cudaDeviceSynchronize());
    cudaFuncAttributes facts;
    cudaFuncGetAttributes(&facts, few);
    printf("%d", facts.maxThreadsPerBlock);
    cudaFuncGetAttributes(&facts, any);
    cudaOccupancyMaxPotentialBlockSize(&grid, &block, few);
    printf(" %d %d\\n", facts.maxThreadsPerBlock, block);
    void *values[] = {&p};
    SHOW(cudaLaunchKernel(few, dim3(1), dim3(65), values));
}"""
    )
    ok, wrong = "cudaSuccess", "cudaErrorInvalidValue"
    text = "apart::twice may have 256 threads in a block, as its __launch_bounds__ says"
    assert ran()[1].splitlines() == [
        *(ok, f"invalid argument: {text}, and is to have 272", wrong),
        *("cudaErrorInvalidConfiguration", ok, wrong, ok, "64 1024 64", wrong),
    ]


def test_the_text_of_an_error_is_not_that_of_an_earlier_one(program):  # noqa: F811
    ran = program(
        CHECK
        + """
int main()
{
    int *p, host[2];
    cudaMalloc(&p, 8);
    puts(cudaGetErrorString(cudaMemcpy(host, p, 9, cudaMemcpyDeviceToHost)));
    puts(cudaGetErrorString(cudaGetLastError()));
    cudaStream_t none;
    puts(cudaGetErrorString(cudaStreamCreateWithPriority(&none, 77, 0)));
    puts(cudaGetErrorString(cudaMemset(p, 0, 99)));
}"""
    )
    far, again, other, fill = ran()[1].splitlines()
    assert far.startswith("invalid argument: the source of a copy of 9 bytes")
    assert again == far
    assert other == "invalid argument"
    assert fill.startswith("invalid argument: the target of a memset of 99 bytes")


def test_boxes(program):  # noqa: F811
    """Copies and fills in three dimensions, by pitched pointers."""
    ran = program(
        CHECK
        + """
__global__ void add(cudaPitchedPtr box, cudaExtent size)
{
    char *slice = (char *)box.ptr + blockIdx.x * box.pitch * size.height;
    float *row = (float *)(slice + threadIdx.y * box.pitch);
    row[threadIdx.x] += 100 * blockIdx.x + 10 * threadIdx.y + threadIdx.x;
}
int main()
{
    const int w = 5, h = 4, d = 3;
    float host[d][h][w], part[2][2][2];
    cudaExtent size = make_cudaExtent(w * sizeof(float), h, d);
    cudaPitchedPtr box;
    SHOW(cudaMalloc3D(&box, size));
    printf("%zu %zu %zu\\n", box.pitch, box.xsize, box.ysize);
    SHOW(cudaMemset3D(box, 0, size));
    add<<<d, dim3(w, h)>>>(box, size);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = box;
    copy.dstPtr = make_cudaPitchedPtr(host, w * sizeof(float), w, h);
    copy.extent = size;
    copy.kind = cudaMemcpyDeviceToHost;
    SHOW(cudaMemcpy3D(&copy));
    printf("%g %g %g\\n", host[0][0][1], host[1][2][3], host[2][3][4]);
    copy.srcPos = make_cudaPos(2 * sizeof(float), 1, 1);
    copy.dstPtr = make_cudaPitchedPtr(part, 2 * sizeof(float), 2, 2);
    copy.extent = make_cudaExtent(2 * sizeof(float), 2, 2);
    SHOW(cudaMemcpy3DAsync(&copy));
    cudaDeviceSynchronize();
    printf("%g %g\\n", part[0][0][0], part[1][1][1]);
    copy.extent.width = 3 * sizeof(float);
    SHOW(cudaMemcpy3D(&copy));
}"""
    )
    ok = "cudaSuccess"
    assert ran()[1].splitlines() == [
        *(ok, "512 20 4", ok, ok, "1 123 234", ok, "112 223", "cudaErrorInvalidValue")
    ]


def test_the_memory_of_a_multiprocessor(program):  # noqa: F811
    """The figures of CUDA's table of compute capabilities."""
    ran = program(
        """
#include <cstdio>
int main()
{
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    printf("%zu %zu %d\\n", p.sharedMemPerMultiprocessor >> 10,
           p.sharedMemPerBlockOptin >> 10, p.maxBlocksPerMultiProcessor);
}"""
    )
    for card, facts in {
        "t4": "64 64 16",
        "v100": "96 96 32",
        "a10": "100 99 16",
        "l4": "100 99 24",
        "a100": "164 163 32",
        "h100": "228 227 32",
    }.items():
        assert ran(PYDEVTENSOR_SIM_CARD=card)[1] == f"{facts}\n"
