/* Simulated device memory: who may access what, exact bounds, and when a block may
 * be reused. */
#include <signal.h>
#include "sim_check.h"

__global__ void put(float *x, long n, float value)
{
    for (long i = 0; i < n; i++)
        x[i] = value;
}
__global__ void put_at(char *x, long where)
{
    x[where] = 1;
}
__global__ void copy_from(const float *x, float *y, long where)
{
    y[0] = x[where];
}

static const int kAddress = cudaErrorIllegalAddress;
static cudaStream_t s, s2;

static void sync_tells(const char *words)
{
    EQUAL((int)cudaDeviceSynchronize(), kAddress);
    CHECK(said(words));
    cudaGetLastError();
}

static bool killed_by(int status, int signal)
{
    /* AddressSanitizer turns the signal into an exit. */
    return sanitized ? WIFEXITED(status) && WEXITSTATUS(status) != 0
                     : WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

static void host_cannot_touch()
{
    float *x = on_device<float>(4);
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, x, 4, 7.0f));
    EQUAL(fetch(x, 4)[3], 7);
    CHECK(killed_by(in_child([x] { *(volatile float *)x = 1; }), SIGSEGV));
    CHECK(killed_by(in_child([x] { exit((int)*(volatile float *)x); }), SIGSEGV));
    EQUAL(fetch(x, 4)[0], 7);
    GOOD(cudaFree(x));
}

static void sizes()
{
    size_t left, total, again;
    GOOD(cudaMemGetInfo(&left, &total));
    EQUAL(total, 64u << 20);
    EQUAL(left, total);
    void *p[4] = {}, *q = nullptr, *none;
    for (void *&each : p) {
        GOOD(cudaMalloc(&each, 16u << 20));
        CHECK(((size_t)each & 511) == 0);
    }
    GOOD(cudaMemGetInfo(&left, &total));
    EQUAL(left, 0);
    EQUAL((int)cudaMalloc(&q, 1), (int)cudaErrorMemoryAllocation);
    CHECK(!q);
    EQUAL((int)cudaGetLastError(), (int)cudaErrorMemoryAllocation);
    GOOD(cudaGetLastError());
    GOOD(cudaFree(p[1]));
    EQUAL((int)cudaMalloc(&q, (16u << 20) + 1), (int)cudaErrorMemoryAllocation);
    EQUAL((int)cudaMalloc(&q, (size_t)-1), (int)cudaErrorMemoryAllocation);
    GOOD(cudaMalloc(&q, 16u << 20));
    CHECK(q == p[1]);
    /* A card maps pages wherever they are free: parts make room for a whole. */
    GOOD(cudaFree(p[0]));
    GOOD(cudaFree(p[2]));
    GOOD(cudaMalloc(&q, 32u << 20));
    GOOD(cudaMemsetAsync(q, 0, 32u << 20, nullptr));
    GOOD(cudaDeviceSynchronize());
    EQUAL((int)cudaMalloc(&none, 1), (int)cudaErrorMemoryAllocation);
    GOOD(cudaFree(q));
    GOOD(cudaFree(p[1]));
    GOOD(cudaFree(p[3]));
    EQUAL((int)cudaFree(p[0]), (int)cudaErrorInvalidValue);
    EQUAL((int)cudaFree(&q), (int)cudaErrorInvalidValue);
    GOOD(cudaFree(nullptr));
    GOOD(cudaMalloc(&q, 0));
    CHECK(!q);
    GOOD(cudaMemGetInfo(&again, &total));
    EQUAL(again, total);
    cudaGetLastError();
}

/* Fresh memory holds NaN, also after it was freed and allocated again. */
static void poison()
{
    for (int turn = 0; turn < 3; turn++) {
        float *x = on_device<float>(3);
        CHECK(fetch(x, 3)[2] != fetch(x, 3)[2]);
        GOOD(LAUNCH(put, 1, 1, 0, nullptr, x, 3, 1.0f));
        EQUAL(fetch(x, 3)[2], 1);
        GOOD(cudaFree(x));
    }
}

/* cudaMalloc without an allocator on top: bounds to the byte. */
static void raw_bounds()
{
    char *x = on_device<char>(100), host[200];
    GOOD(cudaMemcpyAsync(x, host, 101, cudaMemcpyHostToDevice, nullptr));
    sync_tells("the target of a copy of 101 bytes");
    GOOD(cudaMemcpyAsync(host, x + 50, 51, cudaMemcpyDeviceToHost, nullptr));
    sync_tells("51 bytes at offset 50");
    GOOD(cudaMemsetAsync(x + 1, 0, 100, nullptr));
    sync_tells("memset");
    GOOD(cudaMemcpyAsync(x, host, 100, cudaMemcpyHostToDevice, nullptr));
    GOOD(cudaMemcpyAsync(host, x, 100, cudaMemcpyDeviceToDevice, nullptr));
    sync_tells("not an address in device memory");
    GOOD(cudaMemcpyAsync(x, x, 100, cudaMemcpyHostToDevice, nullptr));
    sync_tells("direction");
    if (!sanitized) {
        GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, 100));
        sync_tells("put_at wrote past the end of a block of 100 bytes");
        GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, 99));
        GOOD(cudaDeviceSynchronize());
    }
    GOOD(cudaFree(x));
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, x, 0));
    sync_tells("not allocated");
    GOOD(LAUNCH(put_at, 1, 1, 0, nullptr, host, 0));
    sync_tells("pointer 1 of put_at is");
    EQUAL((int)cudaMemsetAsync(nullptr, 0, 4, nullptr), (int)cudaErrorInvalidValue);
    cudaGetLastError();
}

static void pinned()
{
    float *h = nullptr, *x = on_device<float>(4);
    GOOD(cudaHostAlloc(&h, 16, cudaHostAllocPortable));
    h[1] = 5;
    GOOD(LAUNCH(copy_from, 1, 1, 0, nullptr, h, x,
                1)); /* kernels can access page-locked memory */
    EQUAL(fetch(x, 1)[0], 5);
    EQUAL((int)cudaFreeHost(x), (int)cudaErrorInvalidValue);
    cudaGetLastError();
    GOOD(cudaFreeHost(h));
    GOOD(LAUNCH(copy_from, 1, 1, 0, nullptr, h, x, 1));
    sync_tells("not an address in device memory");
    GOOD(cudaFree(x));
    cudaGetLastError();
}

/* --- an allocator's blocks --- */

static void canary()
{
    char *segment = on_device<char>(1 << 20);
    char *a = segment, *b = segment + 512, host[512];
    SIM_BLOCK_TAKEN(a, 100, 512, s);
    SIM_BLOCK_TAKEN(b, 512, 512, s);
    GOOD(LAUNCH(put_at, 1, 1, 0, s, a, 99));
    GOOD(LAUNCH(put_at, 1, 1, 0, s, b, 511));
    GOOD(cudaStreamSynchronize(s));
    if (!sanitized) {
        for (long where : {100L, 300L, 511L}) {
            GOOD(LAUNCH(put_at, 1, 1, 0, s, a + 50, where - 50));
            sync_tells("past the end of a block of 100 bytes");
            char words[64];
            snprintf(words, sizeof words, "offset %ld", where);
            CHECK(said(words));
        }
    }
    GOOD(cudaMemcpyAsync(host, a, 101, cudaMemcpyDeviceToHost, s));
    sync_tells("101 bytes at offset 0");
    GOOD(cudaMemcpyAsync(host, segment + 4096, 1, cudaMemcpyDeviceToHost, s));
    sync_tells("released to the allocator");
    SIM_BLOCK_GIVEN_BACK(a, 512);
    GOOD(LAUNCH(put_at, 1, 1, 0, s, a, 0));
    sync_tells("pointer 1 of put_at points into a block");
    SIM_BLOCK_TAKEN(b, 100, 512, s);
    sync_tells("overlaps a live one");
    SIM_BLOCK_GIVEN_BACK(a, 512);
    sync_tells("had not allocated");
    SIM_BLOCK_TAKEN(segment + (1 << 20) - 512, 512, 1024, s);
    sync_tells("leaves its segment");
    GOOD(cudaFree(segment));
}

/* AddressSanitizer ends the program when a kernel reads outside of its blocks, so
 * each case is a process of its own, started before this one uses a device. */
static bool peek_survives(long where)
{
    return in_child([where] {
               dt_sim_set("memory", "64M");
               float *segment = nullptr, host[128] = {};
               cudaMalloc(&segment, 1 << 20);
               float *a = segment, *b = segment + 128, *c = segment + 256;
               SIM_BLOCK_TAKEN(a, 400, 512, nullptr);
               SIM_BLOCK_TAKEN(b, 512, 512, nullptr);
               SIM_BLOCK_TAKEN(c, 512, 512, nullptr);
               LAUNCH(copy_from, 1, 1, 0, nullptr, a, c, where);
               if (copy_now(host, c, 512, cudaMemcpyDeviceToHost))
                   _exit(1);
           }) == 0;
}

static void reads_out_of_bounds()
{
    CHECK(peek_survives(0) && peek_survives(99));
    CHECK(peek_survives(256)); /* the other block that it was given */
    CHECK(!peek_survives(-1)); /* unmapped, so every build detects it */
    if (!sanitized)
        return;
    CHECK(!peek_survives(100)); /* slack */
    CHECK(!peek_survives(128)); /* a live block that it was not given */
    CHECK(!peek_survives(400)); /* not allocated */
}

/* A block is freed while queued work uses it, and allocated again on the same
 * stream: valid. */
static void reuse_in_order(const char *when)
{
    schedule(when);
    float *segment = on_device<float>(1 << 18), host[2] = {};
    for (int turn = 0; turn < 20; turn++) {
        SIM_BLOCK_TAKEN(segment, 40, 512, s);
        GOOD(LAUNCH(put, 1, 1, 0, s, segment, 10, (float)turn));
        GOOD(cudaMemcpyAsync(host, segment + 9, 4, cudaMemcpyDeviceToHost, s));
        SIM_BLOCK_GIVEN_BACK(segment, 512);
        SIM_BLOCK_TAKEN(segment, 1000, 1024, s); /* grown over its neighbour */
        GOOD(LAUNCH(put, 1, 1, 0, s, segment, 250, -1.0f));
        SIM_BLOCK_GIVEN_BACK(segment, 1024);
        SIM_BLOCK_TAKEN(segment + 128, 512, 512, s); /* the upper half */
        GOOD(cudaMemcpyAsync(host + 1, segment + 128, 4, cudaMemcpyDeviceToHost, s));
        SIM_BLOCK_GIVEN_BACK(segment + 128, 512);
        if (turn % 7 == 6) {
            GOOD(cudaStreamSynchronize(s));
            EQUAL(host[0], turn);
            CHECK(host[1] != host[1]); /* laid out again: no old contents */
        }
    }
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaFree(segment));
    schedule("eager");
}

/* Used on another stream and released without waiting for it: detected when it
 * matters. */
static void reuse_too_early()
{
    schedule("lazy");
    float *segment = on_device<float>(1 << 18);
    SIM_BLOCK_TAKEN(segment, 512, 512, s);
    GOOD(cudaStreamSynchronize(s));
    GOOD(LAUNCH(put, 1, 1, 0, s2, segment, 128, 1.0f));
    SIM_BLOCK_GIVEN_BACK(segment, 512);
    SIM_BLOCK_TAKEN(segment, 512, 512, s);
    GOOD(LAUNCH(put, 1, 1, 0, s, segment, 128, 2.0f));
    GOOD(cudaStreamSynchronize(s));
    EQUAL((int)cudaStreamSynchronize(s2), kAddress);
    CHECK(said("after the memory was reused"));
    cudaGetLastError();
    /* With an event between them it is correct. */
    cudaEvent_t used;
    GOOD(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
    GOOD(LAUNCH(put, 1, 1, 0, s2, segment, 128, 1.0f));
    GOOD(cudaEventRecord(used, s2));
    GOOD(cudaStreamWaitEvent(s, used));
    SIM_BLOCK_GIVEN_BACK(segment, 512);
    SIM_BLOCK_TAKEN(segment, 512, 512, s);
    GOOD(LAUNCH(put, 1, 1, 0, s, segment, 128, 2.0f));
    GOOD(cudaStreamSynchronize(s));
    GOOD(cudaStreamSynchronize(s2));
    EQUAL(fetch(segment, 128)[127], 2);
    GOOD(cudaEventDestroy(used));
    GOOD(cudaFree(segment));
    schedule("eager");
}

/* Used on another stream before the memory has become this block: a race, but the write is
 * inside of the block, so nothing has written past the end of the smaller one before. */
static void use_too_early()
{
    schedule("lazy");
    float *segment = on_device<float>(1 << 18);
    for (size_t between : {0, 32}) {
        SIM_BLOCK_TAKEN(segment, 64, 512, s);
        GOOD(LAUNCH(put, 1, 1, 0, s, segment, 16, 1.0f));
        SIM_BLOCK_GIVEN_BACK(segment, 512);
        if (between) {
            SIM_BLOCK_TAKEN(segment, between, 512, s);
            SIM_BLOCK_GIVEN_BACK(segment, 512);
        }
        SIM_BLOCK_TAKEN(segment, 512, 512, s);
        GOOD(LAUNCH(put, 1, 1, 0, s2, segment, 128, 2.0f));
        GOOD(cudaStreamSynchronize(s2));
        GOOD(cudaStreamSynchronize(s));
        SIM_BLOCK_GIVEN_BACK(segment, 512);
    }
    GOOD(cudaFree(segment));
    schedule("eager");
}

/* cudaFree synchronizes, like CUDA's. */
static void free_waits()
{
    schedule("lazy");
    float *x = on_device<float>(4), host = 0;
    GOOD(LAUNCH(put, 1, 1, 0, s, x, 4, 3.0f));
    GOOD(cudaMemcpyAsync(&host, x, 4, cudaMemcpyDeviceToHost, s));
    EQUAL(host, 0);
    GOOD(cudaFree(x));
    EQUAL(host, 3);
    GOOD(cudaDeviceSynchronize());
    schedule("eager");
}

static void peers()
{
    float *here = on_device<float>(4), *there = nullptr;
    GOOD(cudaSetDevice(1));
    there = on_device<float>(4);
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, there, 4, 6.0f));
    GOOD(cudaSetDevice(0));
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, there, 4, 1.0f));
    sync_tells("pointer 1 of put is on simulated cuda:1");
    CHECK(said("without peer access"));
    /* A copy needs no peer access. */
    GOOD(cudaMemcpyPeerAsync(here, 0, there, 1, 16, nullptr));
    EQUAL(fetch(here, 4)[3], 6);
    GOOD(cudaMemcpyPeerAsync(here, 1, there, 1, 16, nullptr));
    sync_tells("not on cuda:1");
    int can = 0;
    GOOD(cudaDeviceCanAccessPeer(&can, 0, 1));
    EQUAL(can, 1);
    GOOD(cudaDeviceCanAccessPeer(&can, 0, 0));
    EQUAL(can, 0);
    EQUAL((int)cudaDeviceCanAccessPeer(&can, 0, 2), (int)cudaErrorInvalidDevice);
    GOOD(cudaDeviceEnablePeerAccess(1, 0));
    EQUAL((int)cudaDeviceEnablePeerAccess(1, 0),
          (int)cudaErrorPeerAccessAlreadyEnabled);
    cudaGetLastError();
    GOOD(LAUNCH(put, 1, 1, 0, nullptr, there, 4, 1.0f));
    GOOD(cudaDeviceSynchronize());
    EQUAL(fetch(there, 4)[0], 1);
    EQUAL(dt_sim_set("peer", "0"), 0);
    GOOD(cudaDeviceCanAccessPeer(&can, 0, 1));
    EQUAL(can, 0);
    EQUAL((int)cudaDeviceEnablePeerAccess(1, 0), (int)cudaErrorPeerAccessUnsupported);
    EQUAL(dt_sim_set("peer", "1"), 0);
    GOOD(cudaFree(there));
    GOOD(cudaFree(here));
    cudaGetLastError();
}

int main()
{
    reads_out_of_bounds();
    EQUAL(dt_sim_set("devices", "2"), 0);
    EQUAL(dt_sim_set("memory", "64M"), 0);
    sizes();
    GOOD(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0));
    GOOD(cudaStreamCreateWithPriority(&s2, cudaStreamNonBlocking, 0));
    host_cannot_touch();
    poison();
    for (const char *when : {"eager", "lazy", "random:3"}) {
        schedule(when);
        raw_bounds();
        pinned();
        canary();
        schedule("eager");
    }
    for (const char *when : {"eager", "lazy", "random:1", "random:2", "random:3"})
        reuse_in_order(when);
    reuse_too_early();
    use_too_early();
    free_waits();
    peers();
    return finish();
}
