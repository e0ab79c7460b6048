/* Streams, events and schedules of simulated GPUs. */
#include <pthread.h>
#include "sim_check.h"

__global__ void append(int *log, int *length, int what)
{
    log[*length] = what;
    *length += 1;
}
__global__ void set(int *x, int value)
{
    *x = value;
}
__global__ void bump(int *x)
{
    *x += 1;
}

static cudaStream_t make()
{
    cudaStream_t stream = nullptr;
    GOOD(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
    return stream;
}
static cudaEvent_t mark(unsigned flags = cudaEventDisableTiming)
{
    cudaEvent_t event = nullptr;
    GOOD(cudaEventCreateWithFlags(&event, flags));
    return event;
}

/* What a program sees that forgets to synchronize. */
static void lazy()
{
    schedule("lazy");
    cudaStream_t s = make(), t = make();
    int *x = on_device<int>(1), *y = on_device<int>(1), h = -1, k = -1;
    GOOD(LAUNCH(set, 1, 1, 0, s, x, 5));
    GOOD(cudaMemcpyAsync(&h, x, 4, cudaMemcpyDeviceToHost, s));
    GOOD(LAUNCH(set, 1, 1, 0, t, y, 6));
    GOOD(cudaMemcpyAsync(&k, y, 4, cudaMemcpyDeviceToHost, t));
    EQUAL(h, -1);
    EQUAL(dt_sim_pending(0), 4);
    EQUAL(dt_sim_pending(1), 0);
    GOOD(cudaStreamSynchronize(s));
    EQUAL(h, 5);
    EQUAL(k, -1); /* other streams are independent */
    GOOD(cudaDeviceSynchronize());
    EQUAL(k, 6);
    /* A copy reads its source when it runs. */
    h = 1;
    GOOD(cudaMemcpyAsync(x, &h, 4, cudaMemcpyHostToDevice, s));
    h = 2;
    GOOD(cudaStreamSynchronize(s));
    EQUAL(fetch(x, 1)[0], 2);
    /* A query runs one unit of work. */
    for (int i = 0; i < 3; i++)
        GOOD(LAUNCH(bump, 1, 1, 0, s, x));
    for (int i = 0; i < 3; i++)
        EQUAL((int)cudaStreamQuery(s), (int)cudaErrorNotReady);
    GOOD(cudaStreamQuery(s));
    cudaGetLastError();
    /* A stream's queue is bounded. */
    for (int i = 0; i < 3000; i++)
        GOOD(LAUNCH(bump, 1, 1, 0, s, x));
    EQUAL(dt_sim_pending(0), DT_SIM_QUEUE_LIMIT);
    EQUAL(fetch(x, 1)[0],
          5 + 3000 - DT_SIM_QUEUE_LIMIT); /* the default stream waits for no other */
    GOOD(cudaStreamSynchronize(s));
    EQUAL(fetch(x, 1)[0], 3005);
    /* Work on a destroyed stream still runs. */
    GOOD(LAUNCH(bump, 1, 1, 0, s, x));
    GOOD(cudaStreamDestroy(s));
    EQUAL((int)cudaStreamSynchronize(s), (int)cudaErrorInvalidResourceHandle);
    EQUAL(dt_sim_pending(0), 1);
    GOOD(cudaDeviceSynchronize());
    EQUAL(fetch(x, 1)[0], 3006);
    GOOD(cudaStreamDestroy(t));
    GOOD(cudaFree(x));
    GOOD(cudaFree(y));
    cudaGetLastError();
    schedule("eager");
}

static void events()
{
    schedule("lazy");
    cudaStream_t s = make(), t = make();
    cudaEvent_t e = mark();
    int *log = on_device<int>(10), *length = on_device<int>(1);
    GOOD(fill_now(length, 0, 4));
    GOOD(cudaEventQuery(e)); /* never recorded: nothing to wait for */
    GOOD(cudaEventSynchronize(e));
    GOOD(cudaStreamWaitEvent(t, e));
    GOOD(LAUNCH(append, 1, 1, 0, s, log, length, 1));
    GOOD(LAUNCH(append, 1, 1, 0, s, log, length, 2));
    GOOD(cudaEventRecord(e, s));
    GOOD(LAUNCH(append, 1, 1, 0, s, log, length, 4));
    GOOD(cudaStreamWaitEvent(t, e));
    GOOD(LAUNCH(append, 1, 1, 0, t, log, length, 3));
    /* Recorded again: earlier waits still refer to the first recording. */
    GOOD(cudaEventRecord(e, s));
    GOOD(cudaStreamSynchronize(t));
    EQUAL(fetch(length, 1)[0], 3);
    EQUAL(fetch(log, 3)[2], 3);
    EQUAL((int)cudaEventQuery(e), (int)cudaErrorNotReady);
    GOOD(cudaEventSynchronize(e));
    GOOD(cudaEventQuery(e));
    EQUAL(fetch(log, 4)[3], 4);
    GOOD(cudaEventDestroy(e));
    EQUAL((int)cudaEventDestroy(e), (int)cudaErrorInvalidResourceHandle);
    EQUAL((int)cudaEventRecord(e, s), (int)cudaErrorInvalidResourceHandle);
    GOOD(cudaStreamDestroy(s));
    GOOD(cudaStreamDestroy(t));
    GOOD(cudaFree(log));
    GOOD(cudaFree(length));
    cudaGetLastError();
    schedule("eager");
}

static void elapsed()
{
    cudaEvent_t a = mark(cudaEventDefault), b = mark(cudaEventDefault), c = mark();
    float ms = -1;
    EQUAL((int)cudaEventElapsedTime(&ms, a, b), (int)cudaErrorInvalidResourceHandle);
    schedule("lazy");
    GOOD(cudaEventRecord(a, nullptr));
    GOOD(cudaLaunchHostFunc(nullptr, [](void *) { usleep(20000); }, nullptr));
    GOOD(cudaEventRecord(b, nullptr));
    GOOD(cudaEventRecord(c, nullptr));
    EQUAL((int)cudaEventElapsedTime(&ms, a, b), (int)cudaErrorNotReady);
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaEventElapsedTime(&ms, a, b));
    CHECK(ms >= 20 && ms < 2000);
    EQUAL((int)cudaEventElapsedTime(&ms, a, c), (int)cudaErrorInvalidResourceHandle);
    for (cudaEvent_t e : {a, b, c})
        GOOD(cudaEventDestroy(e));
    cudaGetLastError();
    schedule("eager");
}

/* A chain over two devices: each step waits for the one before. */
static void devices(const char *when)
{
    schedule(when);
    cudaStream_t s[2];
    int *x[2], host = 0;
    for (int d = 0; d < 2; d++) {
        GOOD(cudaSetDevice(d));
        s[d] = make();
        x[d] = on_device<int>(1);
    }
    GOOD(cudaSetDevice(0));
    GOOD(LAUNCH(set, 1, 1, 0, s[0], x[0], 0));
    for (int step = 0; step < 50; step++) {
        int from = step % 2, to = 1 - from;
        GOOD(cudaSetDevice(from));
        GOOD(LAUNCH(bump, 1, 1, 0, s[from], x[from]));
        cudaEvent_t ready = mark();
        GOOD(cudaEventRecord(ready, s[from]));
        GOOD(cudaStreamWaitEvent(s[to], ready));
        GOOD(cudaEventDestroy(ready)); /* existing waits are unaffected */
        GOOD(cudaMemcpyPeerAsync(x[to], to, x[from], from, 4, s[to]));
    }
    GOOD(cudaMemcpyAsync(&host, x[0], 4, cudaMemcpyDeviceToHost, s[0]));
    GOOD(cudaStreamSynchronize(s[0]));
    EQUAL(host, 50);
    GOOD(cudaSetDevice(0));
    EQUAL((int)LAUNCH(bump, 1, 1, 0, s[1], x[1]), (int)cudaErrorInvalidResourceHandle);
    cudaEvent_t e = mark();
    EQUAL((int)cudaEventRecord(e, s[1]), (int)cudaErrorInvalidResourceHandle);
    GOOD(cudaEventDestroy(e));
    for (int d = 0; d < 2; d++) {
        GOOD(cudaStreamDestroy(s[d]));
        GOOD(cudaFree(x[d]));
    }
    cudaGetLastError();
    schedule("eager");
}

/* Two unordered streams: a seed always gives the same order, and the seeds cover
 * both. */
static std::vector<int> race(int seed)
{
    char text[32];
    snprintf(text, sizeof text, "random:%d", seed);
    cudaStream_t s[2] = {make(), make()};
    int *log = on_device<int>(20), *length = on_device<int>(1);
    GOOD(fill_now(length, 0, 4));
    schedule(text);
    for (int i = 0; i < 20; i++)
        GOOD(LAUNCH(append, 1, 1, 0, s[i % 2], log, length, i));
    schedule("eager");
    GOOD(cudaDeviceSynchronize());
    std::vector<int> got = fetch(log, 20);
    for (cudaStream_t each : s)
        GOOD(cudaStreamDestroy(each));
    GOOD(cudaFree(log));
    GOOD(cudaFree(length));
    return got;
}

static void chance()
{
    int different = 0;
    std::vector<int> first = race(0);
    for (int seed = 0; seed < 10; seed++) {
        std::vector<int> got = race(seed);
        CHECK(got == race(seed));
        different += got != first;
        std::vector<int> at(20, -1);
        for (int i = 0; i < 20; i++)
            at[(size_t)got[(size_t)i]] = i;
        for (int i = 2; i < 20; i++) /* a stream runs in order */
            CHECK(at[(size_t)i] > at[(size_t)i - 2]);
    }
    CHECK(different > 0);
}

static void host_functions()
{
    static cudaError_t inside;
    schedule("lazy");
    int calls = 0;
    GOOD(cudaLaunchHostFunc(nullptr, [](void *n) { ++*(int *)n; }, &calls));
    EQUAL(calls, 0);
    GOOD(cudaDeviceSynchronize());
    EQUAL(calls, 1);
    /* Calling CUDA from a host function is not permitted; it must not hang. */
    GOOD(cudaLaunchHostFunc(
        nullptr, [](void *) { inside = cudaDeviceSynchronize(); }, nullptr));
    GOOD(cudaDeviceSynchronize());
    EQUAL((int)inside, (int)cudaErrorNotPermitted);
    cudaGetLastError();
    schedule("eager");
}

/* How library stand-ins queue work. */
static void queue()
{
    schedule("lazy");
    cudaStream_t s = make();
    int *x = on_device<int>(4), sum = 0;
    GOOD(LAUNCH(set, 1, 1, 0, s, x + 3, 41));
    GOOD(sim::enqueue(s, "stand-in", {{x, 16}, {nullptr, 0}, {x + 3, 0}},
                      [&sum](void *const *seen) {
                          ((int *)seen[0])[3] += 1;
                          sum = *(int *)seen[2] + (seen[1] == nullptr);
                      }));
    EQUAL(sum, 0);
    GOOD(cudaStreamSynchronize(s));
    EQUAL(sum, 43);
    GOOD(sim::enqueue(s, "stand-in", {{x, 20}}, [&sum](void *const *) { sum = 0; }));
    EQUAL((int)cudaStreamSynchronize(s), (int)cudaErrorIllegalAddress);
    CHECK(said("operand 1 of stand-in: 20 bytes"));
    EQUAL(sum, 43);
    GOOD(sim::enqueue(s, "stand-in", {{&sum, 0}}, [&sum](void *const *) { sum = 0; }));
    EQUAL((int)cudaStreamSynchronize(s), (int)cudaErrorIllegalAddress);
    EQUAL(sum, 43);
    GOOD(cudaStreamDestroy(s));
    GOOD(cudaFree(x));
    cudaGetLastError();
    schedule("eager");
}

/* An error is reported once, to the caller that waits for it, and names its device's
 * work. */
static void told_once()
{
    int no_device_memory;
    schedule("lazy");
    cudaStream_t s = make(), t = nullptr;
    GOOD(cudaSetDevice(1));
    t = make();
    int *y = on_device<int>(1);
    GOOD(cudaSetDevice(0));
    int *x = on_device<int>(1);
    GOOD(LAUNCH(set, 1, 1, 0, s, &no_device_memory, 1));
    GOOD(LAUNCH(set, 1, 1, 0, s, x, 9));
    GOOD(cudaStreamSynchronize(t)); /* another device's stream */
    EQUAL((int)cudaStreamSynchronize(s), (int)cudaErrorIllegalAddress);
    GOOD(cudaStreamSynchronize(s));
    EQUAL(fetch(x, 1)[0], 9); /* the rest has run */
    EQUAL((int)cudaGetLastError(), (int)cudaErrorIllegalAddress);
    GOOD(cudaGetLastError());
    /* Found while waiting for a device that depends on it. */
    cudaEvent_t e = mark();
    GOOD(LAUNCH(set, 1, 1, 0, s, &no_device_memory, 1));
    GOOD(cudaEventRecord(e, s));
    GOOD(cudaStreamWaitEvent(t, e));
    EQUAL((int)cudaStreamSynchronize(t), (int)cudaErrorIllegalAddress);
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaEventDestroy(e));
    GOOD(cudaFree(x));
    GOOD(cudaFree(y));
    GOOD(cudaStreamDestroy(s));
    GOOD(cudaStreamDestroy(t));
    cudaGetLastError();
    schedule("eager");
}

static void *work(void *argument)
{
    int device = *(int *)argument % 2, host = 0;
    GOOD(cudaSetDevice(device));
    cudaStream_t s = make();
    for (int round = 0; round < 20; round++) {
        int *x = on_device<int>(1);
        GOOD(LAUNCH(set, 1, 1, 0, s, x, 0));
        for (int i = 0; i < 20; i++)
            GOOD(LAUNCH(bump, 1, 1, 0, s, x));
        GOOD(cudaMemcpyAsync(&host, x, 4, cudaMemcpyDeviceToHost, s));
        GOOD(cudaStreamSynchronize(s));
        EQUAL(host, 20);
        GOOD(cudaFree(x));
    }
    GOOD(cudaStreamDestroy(s));
    return nullptr;
}

static void threads(const char *when)
{
    schedule(when);
    pthread_t all[6];
    int numbers[6];
    for (int i = 0; i < 6; i++) {
        numbers[i] = i;
        pthread_create(&all[i], nullptr, work, &numbers[i]);
    }
    for (pthread_t each : all)
        pthread_join(each, nullptr);
    schedule("eager");
}

int main()
{
    EQUAL(dt_sim_set("devices", "2"), 0);
    lazy();
    events();
    elapsed();
    for (const char *when : {"eager", "lazy", "random:1", "random:2", "random:99"}) {
        devices(when);
        threads(when);
    }
    chance();
    host_functions();
    queue();
    told_once();
    EQUAL(dt_sim_pending(-1), 0);
    return finish();
}
