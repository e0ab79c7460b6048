/* Races through the CUDA backend on the simulated runtime: what its allocator may hand
 * out, whose uses it was told of. */
#include "base/lock.h"
#include "device/race.h"
#include "device/activity.h"
#include "sim_check.h"

extern "C" const dt_backend *dt_backend_open(const dt_host *host);

static const dt_backend *gpu;
static std::vector<dt_race> told;
static int all_told;

static dt_error *slot()
{
    static thread_local dt_error error;
    return &error;
}

/* n floats set to 1 on the stream. */
static void fill(dt_stream stream, void *data, int64_t n)
{
    dt_plan plan = {};
    plan.ndim = 1;
    plan.noperands = 2;
    plan.numel = plan.shape[0] = n;
    plan.contiguous = true;
    plan.operands[0].data = data;
    plan.operands[0].dtype = plan.operands[1].dtype = DT_FLOAT32;
    plan.operands[0].strides[0] = 4;
    plan.operands[1].scalar = true;
    const float one = 1;
    memcpy(&plan.operands[1].value, &one, sizeof one);
    EQUAL(gpu->fill(stream, &plan), 0);
}

/* A block that another stream still fills is freed and handed out again. */
static void reuse(dt_stream other, bool recorded, int64_t n)
{
    const dt_stream own = {0, nullptr};
    const size_t bytes = (size_t)n * 4;
    void *first, *second;
    EQUAL(gpu->allocate(own, bytes, &first), 0);
    fill(other, first, n);
    if (recorded)
        EQUAL(gpu->record_use(other, first), 0);
    gpu->release(0, first, bytes);
    EQUAL(gpu->allocate(own, bytes, &second), 0);
    fill(own, second, n);
    const bool raced = first == second && !recorded;
    EQUAL(told.size(), raced);
    all_told += raced;
    if (raced) {
        CHECK(told[0].reused && told[0].first.stream == other.handle);
        CHECK(told[0].first.writes && !told[0].second.stream);
    }
    told.clear();
    gpu->release(0, second, bytes);
    (void)gpu->device_synchronize(
        0); /* which tells of the reuse too, where it did harm */
    dt_error_clear();
}

/* The allocator reuses pinned memory when its copies are over. */
static void pinned(dt_stream stream)
{
    void *data, *here = nullptr;
    EQUAL(gpu->allocate(stream, 4096, &data), 0);
    fill(stream, data, 1024);
    for (int i = 0; i < 4; i++) {
        EQUAL(gpu->pinned_allocate(0, 4096, &here), 0);
        EQUAL(gpu->pinned_copy(stream, here, data, 4096, true), 0);
        EQUAL(gpu->record_use(stream, here), 0);
        gpu->pinned_release(here);
        if (i % 2)
            EQUAL(gpu->stream_synchronize(stream), 0);
    }
    EQUAL(told.size(), 0);
    gpu->release(0, data, 4096);
}

int main()
{
    dt_host host = {};
    host.version = DT_BACKEND_VERSION;
    host.error_slot = slot;
    host.locks = dt_locks;
    host.simulated_devices = 1;
    host.library_directories = "";
    host.line = [] { return -1; };
    host.race = [](const dt_race *race) { return told.push_back(*race), 0; };
    dt_sim_set("memory", "64M");
    dt_sim_set("races", "error");
    gpu = dt_backend_open(&host);
    CHECK(gpu && gpu->observers[1] && gpu->observers[1]->kernels);
    for (const char *name : {"eager", "lazy", "random:1", "random:7"}) {
        schedule(name);
        dt_stream stream = {0, nullptr};
        EQUAL(gpu->stream_new(0, 0, &stream.handle), 0);
        for (int64_t n : {100, 1 << 20})
            for (bool recorded : {false, true})
                reuse(stream, recorded, n);
        pinned(stream);
        EQUAL(gpu->device_synchronize(0), 0);
    }
    EQUAL(all_told, 4 * 2); /* the allocator hands out what was freed last */
    return finish();
}
