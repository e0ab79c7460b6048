/* Reads and resets the counters. */
#include "internal.h"

using namespace sim;

void dt_sim_count(int device, dt_sim_counters *out)
{
    *out = dt_sim_counters();
    Entry in(Entry::kNothing);
    if (in.error)
        return;
    for (auto &each : state().devices) {
        if (device >= 0 && device != each->index)
            continue;
#define COUNTER(name) out->name += each->counted.name;
        DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
    }
}

void dt_sim_count_reset(void)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return;
    for (auto &device : state().devices) {
        device->counted = dt_sim_counters();
        device->kernels.clear();
    }
}

void dt_sim_count_kernels(void (*visit)(void *context, const char *kernel,
                                        int64_t launches),
                          void *context)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return;
    std::map<std::string, int64_t> all;
    for (auto &device : state().devices)
        for (auto &kernel : device->kernels)
            all[kernel.first] += kernel.second;
    for (auto &kernel : all)
        visit(context, kernel.first.c_str(), kernel.second);
}

int64_t dt_sim_pending(int device)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return 0;
    int64_t pending = 0;
    auto add = [&](const Stream &stream) {
        for (auto &work : stream.queue)
            pending += (device < 0 || device == stream.device) &&
                       work.kind != Work::kHousekeeping;
    };
    for (auto &each : state().devices)
        add(*each->own_stream);
    for (auto &stream : state().streams)
        add(*stream);
    return pending;
}
