/* The purpose of the simulator: a small program over two streams passes under all
 * schedules; with any one of its waits, barriers and bounds checks removed, some
 * schedule fails. */
#include "sim_check.h"

enum Part {
    kBoundsCheck,
    kBarrier,
    kWarpBarrier,
    kWaitForUpload,
    kWaitForKernels,
    kWaitOfHost,
    kWaitBeforeReuse,
    kWaitOfPeer,
    kNothing
};
static const char *const names[] = {"the bounds check of a kernel",
                                    "the barrier of a block",
                                    "the barrier of a warp",
                                    "the wait of kernels for the upload",
                                    "the wait of the download for them",
                                    "the wait of the host",
                                    "the wait before memory is reused",
                                    "the wait of the other device",
                                    "nothing"};

static const int kN = 1000, kBlock = 128;

template <bool Check>
__global__ void twice(const float *x, float *y, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (!Check || i < n)
        y[i] = i < n ? 2 * x[i] : 0;
}
/* Reverses each block of kBlock elements; the last one is shorter. */
template <bool Barrier>
__global__ void turn(float *x, int n)
{
    __shared__ float part[kBlock];
    int first = (int)(blockIdx.x * blockDim.x), t = (int)threadIdx.x;
    int count = n - first < kBlock ? n - first : kBlock;
    if (t < count)
        part[t] = x[first + t];
    if (Barrier)
        __syncthreads();
    if (t < count)
        x[first + t] = part[count - 1 - t];
}
/* Adds to each element its neighbour within the warp. */
template <bool Barrier>
__global__ void pairs(float *x, int n)
{
    __shared__ float part[kBlock];
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), t = (int)threadIdx.x;
    part[t] = i < n ? x[i] : 0;
    if (Barrier)
        __syncwarp();
    float sum = part[t] + part[t ^ 1];
    if (i < n)
        x[i] = sum;
}

static float expected(int i)
{
    auto turned = [](int j) {
        int first = j / kBlock * kBlock;
        int count = kN - first < kBlock ? kN - first : kBlock;
        return 2.0f * (float)(1 + first + count - 1 - (j - first));
    };
    return turned(i) + turned(i ^ 1);
}

struct Run {
    cudaStream_t copies, kernels, other;
    char *segment;
    float *there;
};

/* True if the program's result is right. */
static bool program(const Run &run, Part without)
{
    const unsigned blocks = (kN + kBlock - 1) / kBlock;
    const size_t bytes = kN * sizeof(float), rounded = 4096;
    float *x = (float *)run.segment, *y = (float *)(run.segment + rounded);
    std::vector<float> host(kN), out(kN), far(kN);
    bool good = true;
    cudaEvent_t uploaded, computed, used, sent;
    for (cudaEvent_t *e : {&uploaded, &computed, &used, &sent})
        GOOD(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    for (int i = 0; i < kN; i++)
        host[(size_t)i] = (float)(1 + i);

    SIM_BLOCK_TAKEN(x, bytes, rounded, run.copies);
    GOOD(cudaMemcpyAsync(x, host.data(), bytes, cudaMemcpyHostToDevice, run.copies));
    SIM_BLOCK_TAKEN(y, bytes, rounded, run.kernels);
    GOOD(cudaEventRecord(uploaded, run.copies));
    if (without != kWaitForUpload)
        GOOD(cudaStreamWaitEvent(run.kernels, uploaded));
    auto first = without == kBoundsCheck ? twice<false> : twice<true>;
    auto second = without == kBarrier ? turn<false> : turn<true>;
    auto third = without == kWarpBarrier ? pairs<false> : pairs<true>;
    GOOD(LAUNCH(first, blocks, kBlock, 0, run.kernels, x, y, kN));
    /* x is released on the stream that it was allocated on, and the memory is reused
     * there. */
    GOOD(cudaEventRecord(used, run.kernels));
    if (without != kWaitBeforeReuse)
        GOOD(cudaStreamWaitEvent(run.copies, used));
    SIM_BLOCK_GIVEN_BACK(x, rounded);
    SIM_BLOCK_TAKEN(x, bytes, rounded, run.copies);
    GOOD(cudaMemsetAsync(x, 0, bytes, run.copies));
    GOOD(LAUNCH_BARRIERS(second, blocks, kBlock, 0, run.kernels, y, kN));
    GOOD(LAUNCH_BARRIERS(third, blocks, kBlock, 0, run.kernels, y, kN));
    GOOD(cudaEventRecord(computed, run.kernels));
    if (without != kWaitForKernels)
        GOOD(cudaStreamWaitEvent(run.copies, computed));
    GOOD(cudaMemcpyAsync(out.data(), y, bytes, cudaMemcpyDeviceToHost, run.copies));
    GOOD(cudaMemcpyPeerAsync(run.there, 1, y, 0, bytes, run.copies));
    GOOD(cudaEventRecord(sent, run.copies));
    if (without != kWaitOfPeer)
        GOOD(cudaStreamWaitEvent(run.other, sent));
    GOOD(cudaMemcpyAsync(far.data(), run.there, bytes, cudaMemcpyDeviceToHost,
                         run.other));
    if (without != kWaitOfHost)
        good &= cudaStreamSynchronize(run.other) == cudaSuccess;
    for (int i = 0; i < kN; i++)
        good &= far[(size_t)i] == expected(i);
    /* Even without the waits the work must end before its memory is freed. */
    good &= cudaDeviceSynchronize() == cudaSuccess;
    good &= cudaStreamSynchronize(run.other) == cudaSuccess;
    cudaGetLastError();
    for (int i = 0; i < kN; i++)
        good &= out[(size_t)i] == expected(i);
    GOOD(cudaSetDevice(1));
    GOOD(fill_now(run.there, 0, bytes));
    GOOD(cudaSetDevice(0));
    SIM_BLOCK_GIVEN_BACK(x, rounded);
    SIM_BLOCK_GIVEN_BACK(y, rounded);
    for (cudaEvent_t e : {uploaded, computed, used, sent})
        GOOD(cudaEventDestroy(e));
    cudaGetLastError();
    return good;
}

int main()
{
    Run run;
    EQUAL(dt_sim_set("devices", "2"), 0);
    GOOD(cudaSetDevice(1));
    GOOD(cudaStreamCreateWithPriority(&run.other, cudaStreamNonBlocking, 0));
    run.there = on_device<float>(kN);
    GOOD(cudaSetDevice(0));
    GOOD(cudaStreamCreateWithPriority(&run.copies, cudaStreamNonBlocking, 0));
    GOOD(cudaStreamCreateWithPriority(&run.kernels, cudaStreamNonBlocking, 0));
    run.segment = on_device<char>(1 << 20);
    for (int part = 0; part <= kNothing; part++) {
        int seen = 0;
        /* AddressSanitizer ends the program at the first byte out of bounds. */
        if (part == kBoundsCheck && sanitized)
            continue;
        for (const char *when :
             {"eager", "lazy", "random:1", "random:2", "random:3", "random:4",
              "random:5", "random:6", "random:7", "random:8"}) {
            schedule(when);
            bool good = program(run, (Part)part);
            seen += !good;
            if (part == kNothing && !good)
                printf("under %s\n", when);
        }
        if ((seen > 0) != (part != kNothing)) {
            failed++;
        }
        printf("left out: %s; noticed by %d of 10 schedules\n", names[part], seen);
        schedule("eager");
        GOOD(cudaDeviceSynchronize());
    }
    return finish();
}
