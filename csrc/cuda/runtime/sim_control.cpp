/* The simulator's controls as text, for Python. csrc/sim/sim.h describes them. */
#ifdef DT_SIMULATED

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

/* A reply under construction; truncated to size. */
typedef struct Reply {
    char *text;
    size_t size, used;
    int entries;
} Reply;

static void put(Reply *reply, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (reply->used < reply->size) {
        int n = vsnprintf(reply->text + reply->used, reply->size - reply->used, format,
                          args);
        reply->used += n > 0 ? (size_t)n : 0;
    }
    va_end(args);
}

static void put_kernel(void *context, const char *kernel, int64_t launches)
{
    Reply *reply = (Reply *)context;
    put(reply, "%s\"", reply->entries++ ? ", " : "");
    for (const char *c = kernel; *c; c++)
        put(reply, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    put(reply, "\": %lld", (long long)launches);
}

static void put_counters(Reply *reply, int device)
{
    dt_sim_counters counters;
    dt_sim_count(device, &counters);
    put(reply, "{");
#define COUNTER(name) put(reply, "\"" #name "\": %lld, ", (long long)counters.name);
    DT_SIM_COUNTERS(COUNTER)
#undef COUNTER
    put(reply, "\"pending\": %lld}", (long long)dt_sim_pending(device));
}

/* Commands: "schedule lazy", "failures malloc:3", "peer 0", "memory 1000000", "count
 * -1", "kernels", "reset", "violation". Writes the reply into text, as JSON for
 * count and kernels. 0, or -1 with the reason as the reply. */
extern "C" __attribute__((visibility("default"))) int
dt_sim_control(const char *command, char *text, size_t size)
{
    Reply reply = {text, size, 0, 0};
    const char *space = strchr(command, ' ');
    const char *value = space ? space + 1 : "";
    size_t length = space ? (size_t)(space - command) : strlen(command);
    auto is = [&](const char *word) {
        return strlen(word) == length && !strncmp(command, word, length);
    };
    int status = 0;
    if (size)
        text[0] = '\0';
    if (is("schedule"))
        status = dt_sim_set_schedule(value);
    else if (is("failures"))
        status = dt_sim_set_failures(value);
    else if (is("peer"))
        status = dt_sim_set_peer(atoi(value));
    else if (is("memory"))
        status = dt_sim_set_memory((size_t)strtoull(value, nullptr, 10));
    else if (is("count"))
        put_counters(&reply, atoi(value));
    else if (is("kernels")) {
        put(&reply, "{");
        dt_sim_count_kernels(put_kernel, &reply);
        put(&reply, "}");
    } else if (is("reset"))
        dt_sim_count_reset();
    else if (is("violation"))
        dt_sim_violation(text, size);
    else {
        put(&reply, "'%.40s' is not a command of the simulator", command);
        return -1;
    }
    if (status)
        put(&reply, "%s", dt_sim_complaint());
    return status ? -1 : 0;
}

#endif
