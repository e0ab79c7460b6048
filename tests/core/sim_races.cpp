/* Races at the level of CUDA's runtime: what counts as an access, and what as order. */
#include "device/race.h"
#include "sim/core.h"
#include "sim/race.h"
#include "sim_check.h"

static std::vector<dt_race> told;

static int tell(const dt_race *race)
{
    told.push_back(*race);
    return 0;
}

/* How many races the calls so far completed. */
static int races()
{
    sim::race_answer(0);
    int count = (int)told.size();
    told.clear();
    return count;
}

__global__ void copy_one(const int *from, int *to)
{
    *to = *from;
}
__global__ void write_one(int *to)
{
    *to = 1;
}

static cudaStream_t s, t;

static cudaEvent_t mark(cudaStream_t stream)
{
    cudaEvent_t event = nullptr;
    GOOD(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GOOD(cudaEventRecord(event, stream));
    return event;
}

static int *fresh(int n)
{
    int *p = nullptr;
    GOOD(cudaMalloc(&p, (size_t)n * sizeof *p));
    return p;
}

static void kernels()
{
    int *x = fresh(4), *y = fresh(4), *z = fresh(4);
    GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
    EQUAL(races(), 0);
    GOOD(LAUNCH(copy_one, 1, 1, 0, t, x, y)); /* reads what s writes */
    sim::race_answer(0);
    EQUAL(told.size(), 1);
    CHECK(!strcmp(told[0].first.name, "write_one") && told[0].first.stream == s);
    CHECK(told[0].first.writes && !told[0].second.writes && told[0].second.stream == t);
    CHECK(told[0].device == 0 && told[0].offset == 0 && told[0].bytes == 16);
    CHECK(!told[0].reused && told[0].fatal);
    told.clear();
    /* It is told once: t has waited for s, as it were. */
    GOOD(LAUNCH(copy_one, 1, 1, 0, t, x, y));
    EQUAL(races(), 0);
    /* Two readers do not race with each other; a later writer races with each. */
    GOOD(LAUNCH(copy_one, 1, 1, 0, s, x, z));
    EQUAL(races(), 0);
    GOOD(LAUNCH(write_one, 1, 1, 0, nullptr, x));
    EQUAL(races(), 1);
    GOOD(cudaDeviceSynchronize());
    GOOD(LAUNCH(write_one, 1, 1, 0, t, z));
    EQUAL(races(), 0);
}

static void events()
{
    int *x = fresh(4), *y = fresh(4);
    GOOD(cudaDeviceSynchronize());
    GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
    cudaEvent_t event = mark(s);
    GOOD(cudaStreamWaitEvent(t, event));
    GOOD(LAUNCH(copy_one, 1, 1, 0, t, x, y));
    EQUAL(races(), 0);
    /* What s does after the event is not covered, also if the event is over. */
    GOOD(LAUNCH(write_one, 1, 1, 0, s, y));
    EQUAL(races(), 1);
    GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
    GOOD(cudaEventSynchronize(event));
    GOOD(cudaStreamWaitEvent(t, event));
    GOOD(LAUNCH(copy_one, 1, 1, 0, t, x, y));
    EQUAL(races(), 1);
    GOOD(cudaDeviceSynchronize());
    /* By way of a third stream, and of the host. */
    GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
    GOOD(cudaStreamWaitEvent(nullptr, mark(s)));
    GOOD(cudaStreamWaitEvent(t, mark(nullptr)));
    GOOD(LAUNCH(write_one, 1, 1, 0, t, x));
    GOOD(cudaStreamSynchronize(t));
    GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
    EQUAL(races(), 0);
}

/* Copies and fills touch the bytes that they say. */
static void ranges()
{
    int *x = fresh(100), h = 0;
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaMemsetAsync(x, 0, 200, s));
    GOOD(cudaMemsetAsync(x + 50, 0, 200, t));
    EQUAL(races(), 0);
    GOOD(cudaMemcpyAsync(&h, x + 50, 4, cudaMemcpyDeviceToHost, s));
    EQUAL(races(), 1);
    GOOD(cudaMemcpyAsync(x + 10, x + 20, 4, cudaMemcpyDeviceToDevice, t));
    sim::race_answer(0);
    EQUAL(told.size(), 1);
    EQUAL(told[0].offset, 80);
    EQUAL(told[0].bytes, 4);
    CHECK(told[0].first.writes && told[0].second.reads);
    told.clear();
    GOOD(cudaDeviceSynchronize());
}

/* An allocator's block that is another tensor's too early. */
static void reuse()
{
    char *p = nullptr;
    GOOD(cudaMalloc(&p, 4096));
    for (bool awaited : {false, true}) {
        SIM_BLOCK_TAKEN(p, 1000, 1024, nullptr);
        GOOD(cudaMemsetAsync(p, 0, 1000, s));
        SIM_BLOCK_GIVEN_BACK(p, 1024);
        if (awaited) {
            SIM_OWN_WAIT;
            SIM_BLOCK_AWAITS(p, 1024, 0, s);
            GOOD(cudaStreamSynchronize(s));
        }
        SIM_BLOCK_TAKEN(p, 500, 512, nullptr);
        GOOD(cudaMemsetAsync(p, 1, 500, nullptr));
        sim::race_answer(0);
        EQUAL(told.size(), awaited ? 0 : 1);
        if (!awaited)
            CHECK(told[0].reused && told[0].block == 500 && told[0].first.stream == s);
        told.clear();
        SIM_BLOCK_GIVEN_BACK(p, 512);
        /* Where s came too late, the schedule has shown it. */
        EQUAL((int)cudaDeviceSynchronize() != cudaSuccess && awaited, 0);
        cudaGetLastError();
    }
}

/* The library's own waits order nothing. */
static void own_waits()
{
    int *x = fresh(4);
    GOOD(cudaDeviceSynchronize());
    for (bool own : {true, false}) {
        GOOD(LAUNCH(write_one, 1, 1, 0, s, x));
        if (own) {
            SIM_OWN_WAIT;
            GOOD(cudaStreamSynchronize(s));
        } else {
            GOOD(cudaStreamSynchronize(s));
        }
        GOOD(LAUNCH(write_one, 1, 1, 0, t, x));
        EQUAL(races(), own);
        GOOD(cudaDeviceSynchronize());
    }
}

int main()
{
    dt_host host = {};
    host.race = tell;
    host.line = [] { return -1; };
    EQUAL(dt_sim_set("races", "nowhere"), -1);
    EQUAL(dt_sim_set("races", "error"), 0);
    sim::core = host;
    CHECK(sim::race_observer() != nullptr);
    for (const char *name : {"eager", "lazy", "random:1", "random:2"}) {
        schedule(name);
        GOOD(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, 0));
        GOOD(cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, 0));
        kernels();
        events();
        ranges();
        reuse();
        own_waits();
        GOOD(cudaDeviceSynchronize());
    }
    EQUAL(dt_sim_set("races", "off"), 0);
    EQUAL(dt_sim_set("races", "warn"), -1); /* too late */
    return finish();
}
