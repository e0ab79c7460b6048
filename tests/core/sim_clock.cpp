/* The clock of simulated cards, by the calls of the runtime alone. */
#include "sim_check.h"
#include "sim/clock.h"

__global__ void touch(char *x)
{
    *x = 1;
}

static const double kCopy = 2000, kLaunch = 3000, kLatency = 3000, kLeast = 1500;

static float between(cudaEvent_t from, cudaEvent_t to)
{
    float ms = -1;
    GOOD(cudaEventSynchronize(to));
    GOOD(cudaEventElapsedTime(&ms, from, to));
    return ms * 1e6f;
}

static bool near(double got, double wanted)
{
    if (got > wanted * 0.99 && got < wanted * 1.01)
        return true;
    printf("%g, not %g\n", got, wanted);
    return false;
}

static cudaEvent_t mark(cudaStream_t stream)
{
    cudaEvent_t event = nullptr;
    GOOD(cudaEventCreateWithFlags(&event, cudaEventDefault));
    GOOD(cudaEventRecord(event, stream));
    return event;
}

static cudaStream_t make()
{
    cudaStream_t stream = nullptr;
    GOOD(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
    return stream;
}

enum { kBytes = 32 << 20 };

static void copies()
{
    char *pinned = nullptr, *page = (char *)malloc(kBytes);
    GOOD(cudaHostAlloc(&pinned, kBytes, 0));
    memset(pinned, 0, kBytes);
    memset(page, 0, kBytes);
    char *x = on_device<char>(kBytes), *y = on_device<char>(kBytes);
    cudaStream_t s = make(), t = make();
    const double call = kLaunch + kLatency;

    cudaEvent_t a = mark(s);
    GOOD(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, s));
    cudaEvent_t b = mark(s);
    CHECK(near(between(a, b), call + kCopy + kBytes / 12.5));

    a = mark(s);
    GOOD(cudaMemcpyAsync(x, page, kBytes, cudaMemcpyHostToDevice, s));
    b = mark(s);
    CHECK(near(between(a, b), call + kCopy + kBytes / 5.));

    a = mark(s);
    GOOD(cudaMemcpyAsync(y, x, kBytes, cudaMemcpyDeviceToDevice, s));
    b = mark(s);
    CHECK(near(between(a, b), call + kLeast + 2. * kBytes / (320 * .85)));

    a = mark(s);
    GOOD(cudaMemsetAsync(y, 0, kBytes, s));
    b = mark(s);
    CHECK(near(between(a, b), call + kLeast + kBytes / (320 * .85)));

    /* Two directions at a time, two of one direction in turn. */
    a = mark(s);
    GOOD(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, s));
    GOOD(cudaMemcpyAsync(page, y, kBytes, cudaMemcpyDeviceToHost, t));
    b = mark(t);
    CHECK(near(between(a, b), 2 * kLaunch + kLatency + kCopy + kBytes / 5.));
    GOOD(cudaDeviceSynchronize());
    a = mark(s);
    GOOD(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, s));
    GOOD(cudaMemcpyAsync(y, pinned, kBytes, cudaMemcpyHostToDevice, t));
    b = mark(t);
    CHECK(near(between(a, b), call + 2 * (kCopy + kBytes / 12.5)));

    /* A copy that is queued later fills a gap: t waits for s, u does not. */
    cudaStream_t u = make();
    a = mark(s);
    GOOD(cudaMemsetAsync(y, 0, kBytes, s));
    cudaEvent_t done = mark(s);
    GOOD(cudaStreamWaitEvent(t, done));
    GOOD(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, t));
    GOOD(cudaMemcpyAsync(y, pinned, 1000, cudaMemcpyHostToDevice, u));
    CHECK(between(a, mark(u)) < kBytes / (320 * .85));
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaFree(x));
    GOOD(cudaFree(y));
    GOOD(cudaFreeHost(pinned));
    free(page);
}

static void kernels()
{
    /* Nothing is said of it: it moves all of its block, from few multiprocessors. */
    char *x = on_device<char>(kBytes);
    const double call = kLaunch + kLatency;
    cudaEvent_t a = mark(nullptr);
    GOOD(LAUNCH(touch, 40, 1, 0, nullptr, x));
    cudaEvent_t b = mark(nullptr);
    CHECK(near(between(a, b), call + kLeast + kBytes / (320 * .85)));
    GOOD(LAUNCH(touch, 4, 1, 0, nullptr, x));
    cudaEvent_t c = mark(nullptr);
    CHECK(between(b, c) > 9.9 * kBytes / (320 * .85));
    GOOD(cudaFree(x));
}

static void peers(bool reach)
{
    char *x = on_device<char>(kBytes), *y = nullptr;
    GOOD(cudaSetDevice(1));
    y = on_device<char>(kBytes);
    if (reach)
        GOOD(cudaDeviceEnablePeerAccess(0, 0));
    cudaEvent_t a = mark(nullptr);
    GOOD(cudaMemcpyPeerAsync(y, 1, x, 0, kBytes, nullptr));
    cudaEvent_t b = mark(nullptr);
    const double call = kLaunch + kLatency + kCopy;
    CHECK(near(between(a, b), call + kBytes / (reach ? 12.5 : 6.25)));
    GOOD(cudaFree(y));
    GOOD(cudaSetDevice(0));
    GOOD(cudaFree(x));
}

/* A query is answered by the clock, whatever has run. */
static void queries()
{
    char *x = on_device<char>(kBytes);
    GOOD(cudaMemsetAsync(x, 0, kBytes, nullptr));
    int asked = 0;
    while (cudaStreamQuery(nullptr) == cudaErrorNotReady)
        asked++;
    cudaGetLastError();
    CHECK(asked > 200 && asked < 300);
    EQUAL(dt_sim_pending(0), 0);
    GOOD(cudaFree(x));
}

static void settings()
{
    EQUAL(dt_sim_set("card", "t5"), -1);
    CHECK(strstr(dt_sim_complaint(), "'t5' is not a card: give one of T4"));
    EQUAL(dt_sim_set("card", "t4,,h200"), -1);
    EQUAL(dt_sim_set("card", "t4,t4,t4,t4,t4,t4,t4,t4,t4"), -1);
    EQUAL(dt_sim_set("host", "slow"), -1);
    char reply[4096];
    EQUAL(dt_sim_control("clock", reply, sizeof reply), 0);
    EQUAL(dt_sim_set("card", "t4"), 0);
    EQUAL(dt_sim_set("host", "fixed"), 0);
    EQUAL(dt_sim_set("memory", "256M"), 0);
    EQUAL(dt_sim_set("devices", "2"), 0);
}

int main()
{
    settings();
    for (const char *name : {"eager", "lazy", "random:1"}) {
        schedule(name);
        copies();
        kernels();
        queries();
    }
    peers(false);
    peers(true);
    EQUAL(dt_sim_set("card", "h200"), -1);
    EQUAL(dt_sim_set("card", "T4"), 0);
    EQUAL(dt_sim_set("host", "measured"), -1);
    schedule("eager");
    return finish();
}
