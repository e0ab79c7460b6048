/* Grids whose blocks run on several threads of the host: shared memory, the order of
 * atomics, and the error that is reported. */
#include <atomic>
#include <thread>
#include "sim/core.h"
#include "sim_check.h"

namespace {

enum { kThreads = 4, kBlocks = 300, kBlock = 64 };
std::atomic<int> started;

void on_threads(void (*task)(void *, int64_t, int64_t), void *context, int64_t count)
{
    std::atomic<int64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++) {
        started++;
        threads.emplace_back([&] {
            for (int64_t i; (i = next++) < count;)
                task(context, i, i + 1);
        });
    }
    for (std::thread &each : threads)
        each.join();
}

/* Each thread leaves its number to its neighbour, through both kinds of shared memory. */
__global__ void hand_on(int *out)
{
    STATIC_SHARED(int[kBlock], fixed);
    DYNAMIC_SHARED(int, dynamic);
    const int block = (int)(blockIdx.x + gridDim.x * blockIdx.y), me = (int)threadIdx.x;
    fixed[me] = block * kBlock + me;
    __syncthreads();
    dynamic[me] = fixed[(me + 1) % kBlock];
    __syncthreads();
    out[block * kBlock + me] += dynamic[(me + kBlock - 1) % kBlock];
}
__global__ void take_tickets(int *order, int *count)
{
    if (threadIdx.x == 0)
        order[atomicAdd(count, 1)] = (int)blockIdx.x;
}
/* The last block to come sees what all others have written. */
__global__ void last_of_all(int *parts, unsigned *count, int *sum)
{
    STATIC_SHARED(bool, last);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = (int)blockIdx.x;
        __threadfence_system();
        last = atomicAdd(count, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last || threadIdx.x)
        return;
    for (unsigned i = 0; i < gridDim.x; i++)
        *sum += parts[i];
}
__global__ void fail_from(int *out, int first)
{
    if (blockIdx.x >= (unsigned)first && threadIdx.x == 5)
        *(volatile int *)(sizeof(int) * blockDim.x) = 1;
    if (threadIdx.x == 0)
        out[blockIdx.x] = 1;
}
__global__ void lose_a_thread(int first)
{
    if (blockIdx.x < (unsigned)first || threadIdx.x)
        __syncthreads();
}

struct Memory {
    int *device;
    std::vector<int> host;

    explicit Memory(size_t n) : host(n)
    {
        GOOD(cudaMalloc((void **)&device, n * sizeof(int)));
        GOOD(cudaMemsetAsync(device, 0, n * sizeof(int)));
    }
    ~Memory() { cudaFree(device); }
    const std::vector<int> &read()
    {
        GOOD(copy_now(host.data(), device, host.size() * sizeof(int),
                      cudaMemcpyDeviceToHost));
        return host;
    }
};

void each_block_has_its_own()
{
    Memory out(kBlocks * kBlock);
    GOOD(LAUNCH_BARRIERS(hand_on, dim3(kBlocks / 3, 3), kBlock, kBlock * sizeof(int),
                         nullptr, out.device));
    int wrong = 0;
    for (int i = 0; i < kBlocks * kBlock; i++)
        wrong += out.read()[(size_t)i] != i;
    EQUAL(wrong, 0);
}

void atomics_come_in_order(bool barriers)
{
    Memory order(kBlocks), count(1);
    GOOD(barriers ? LAUNCH_BARRIERS(take_tickets, kBlocks, kBlock, 0, nullptr,
                                    order.device, count.device)
                  : LAUNCH(take_tickets, kBlocks, kBlock, 0, nullptr, order.device,
                           count.device));
    const std::vector<int> found = order.read();
    bool all = true;
    for (int i = 0; i < kBlocks; i++)
        all = all && found[(size_t)i] == i;
    CHECK(all);
}

void order_of_a_seed()
{
    std::vector<int> before;
    for (int time = 0; time < 2; time++) {
        Memory order(kBlocks), count(1);
        schedule("random:7");
        GOOD(LAUNCH(take_tickets, kBlocks, kBlock, 0, nullptr, order.device,
                    count.device));
        const std::vector<int> found = order.read();
        schedule("eager");
        CHECK(time == 0 || found == before);
        before = found;
    }
    bool sorted = true;
    for (int i = 0; i < kBlocks; i++)
        sorted = sorted && before[(size_t)i] == i;
    CHECK(!sorted);
}

void a_last_block_sees_all()
{
    Memory parts(kBlocks), count(1), sum(1);
    GOOD(LAUNCH_BARRIERS(last_of_all, kBlocks, kBlock, 0, nullptr, parts.device,
                         (unsigned *)count.device, sum.device));
    EQUAL(sum.read()[0], kBlocks * (kBlocks - 1) / 2);
}

void the_first_error_counts()
{
    Memory out(kBlocks);
    GOOD(LAUNCH(fail_from, kBlocks, kBlock, 0, nullptr, out.device, 41));
    EQUAL((int)cudaDeviceSynchronize(), (int)cudaErrorIllegalAddress);
    CHECK(said("block (41, 0, 0), thread (5, 0, 0)"));
    (void)cudaGetLastError();
    bool all = true;
    for (int i = 0; i < 41; i++)
        all = all && out.read()[(size_t)i] == 1;
    CHECK(all);
    GOOD(LAUNCH_BARRIERS(lose_a_thread, kBlocks, kBlock, 0, nullptr, 17));
    EQUAL((int)cudaDeviceSynchronize(), (int)cudaErrorLaunchFailure);
    CHECK(said("block (17, 0, 0)"));
    (void)cudaGetLastError();
}

} /* namespace */

int main()
{
    EQUAL(dt_sim_set("devices", "1"), 0);
    sim::core.cpu_parallel = on_threads;
    for (int time = 0; time < 3; time++) { /* faults leave nothing behind */
        each_block_has_its_own();
        atomics_come_in_order(false);
        atomics_come_in_order(true);
        order_of_a_seed();
        a_last_block_sees_all();
        the_first_error_counts();
    }
    CHECK(sanitized || started > 0);
    return finish();
}
