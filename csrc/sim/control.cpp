/* Counters, and the text interface of settings and counters. */
#include "check.h"
#include "count.h"
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int64_t dt_sim_pending(int device)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return 0;
    int64_t pending = 0;
    each_stream([&](const Stream &stream) {
        for (auto &work : stream.queue)
            pending += (device < 0 || device == stream.device) &&
                       work.kind != Work::kHousekeeping;
    });
    return pending;
}

static std::string counts(int device)
{
    dt_sim_counters counters;
    dt_sim_count(device, &counters);
    std::string text = "{";
#define COUNTER(name) text += "\"" #name "\": " + std::to_string(counters.name) + ", ";
    DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
    return text + "\"pending\": " + std::to_string(dt_sim_pending(device)) + "}";
}

static std::string kernels()
{
    Entry in(Entry::kNothing);
    std::string text;
    for (const std::string &line : state().kernels)
        text += line;
    return text;
}

static std::string schedule()
{
    Entry in(Entry::kNothing);
    return state().options.schedule_name;
}

bool sim_program_records()
{
    Entry in(Entry::kNothing);
    return state().options.manual;
}

/* "" without a card. */
static std::string clocks()
{
    Entry in(Entry::kNothing);
    if (in.error || state().options.cards.empty() || open_devices())
        return "";
    return clock_report();
}

/* "ready DEVICE STREAM" and "meet DEVICE STREAM TIME": see clock_ready and clock_meet; device
 * -1 is the host. */
static std::string meeting(bool meets, const char *text)
{
    int device = -1;
    unsigned long long handle = 0;
    long long time = 0;
    sscanf(text, "%d %llu %lld", &device, &handle, &time);
    Entry in(Entry::kNothing);
    if (in.error || state().options.cards.empty() || open_devices() || !clock_runs())
        return "";
    Stream *stream = nullptr;
    if (device >= 0 && (size_t)device < state().devices.size())
        stream = handle ? stream_of((cudaStream_t)handle)
                        : device_at(device).own_stream.get();
    return std::to_string(meets ? clock_meet(stream, time) : clock_ready(stream));
}

/* Whether the clock was hidden before. */
static int hide(bool hidden)
{
    const bool before = clock_hidden;
    clock_hidden = hidden;
    return before;
}

static const char *checked_module(const char *text)
{
    Entry in(Entry::kNothing);
    const char *wrong = check_module_add(text);
    return wrong ? wrong : "";
}

int dt_sim_control(const char *command, char *reply, size_t size)
{
    const char *space = strchrnul(command, ' ');
    const char *value = *space ? space + 1 : space;
    const std::string name(command, space);
    int status = 0;
    *reply = 0;
    if (name == "count")
        snprintf(reply, size, "%s", counts(atoi(value)).c_str());
    else if (name == "kernels")
        snprintf(reply, size, "%s", kernels().c_str());
    else if (name == "schedule" && !*value)
        snprintf(reply, size, "%s", schedule().c_str());
    else if (name == "record_stream" && !*value)
        snprintf(reply, size, "%s", sim_program_records() ? "manual" : "automatic");
    else if (name == "checks" && !check_set(value))
        status = -1, snprintf(reply, size, "give off, warn or error");
    else if (name == "checked")
        snprintf(reply, size, "%s", checked_module(value));
    else if (name == "finding")
        snprintf(reply, size, "%s", check_finding(atol(value)).c_str());
    else if (name == "count_accesses")
        count_begin();
    else if (name == "counted")
        snprintf(reply, size, "%s", count_rows((size_t)atol(value)).c_str());
    else if (name == "clock")
        snprintf(reply, size, "%s", clocks().c_str());
    else if (name == "ready" || name == "meet")
        snprintf(reply, size, "%s", meeting(name == "meet", value).c_str());
    else if (name == "hide")
        snprintf(reply, size, "%d", hide(*value == '1'));
    else if (name != "checks" && (status = dt_sim_set(name.c_str(), value)))
        snprintf(reply, size, "%s", dt_sim_complaint());
    return status;
}
