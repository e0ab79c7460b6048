/* Settings, from the environment and from setters. */
#include "internal.h"
#include "reductions.h"
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace sim {

static int complain(const std::string &text)
{
    snprintf(thread().complaint, sizeof thread().complaint, "%s", text.c_str());
    return -1;
}

static int content()
{
    thread().complaint[0] = 0;
    return 0;
}

static bool whole_number(const char *text, const char **end, unsigned long long *out)
{
    if (*text < '0' || *text > '9')
        return false;
    char *after;
    *out = strtoull(text, &after, 10);
    *end = after;
    return true;
}

static int set_devices(const char *text)
{
    const char *end;
    unsigned long long count;
    if (!whole_number(text, &end, &count) || *end || count > DT_MAX_SIMULATED)
        return complain(format("'%.40s' is not a number of GPUs: give 0 to %d", text,
                               DT_MAX_SIMULATED));
    if (state().open && (int)count != state().options.devices)
        return complain(format("%d simulated GPUs are already in use: choose their "
                               "number before the first use",
                               state().options.devices));
    state().options.devices = (int)count;
    return content();
}

static int set_memory(const char *text)
{
    const char *end;
    unsigned long long n = 0;
    const char *units = "KMGT";
    int shift = 0;
    if (!whole_number(text, &end, &n))
        end = text;
    else if (*end && strchr(units, *end & ~0x20))
        shift = 10 * (int)(strchr(units, *end++ & ~0x20) - units + 1);
    if (*end == 'i')
        end++;
    if (*end == 'B' || *end == 'b')
        end++;
    if (end == text || *end || n > (1ULL << 40) >> shift)
        return complain(
            format("'%.40s' is not a memory size: give a number like 64M or 2G", text));
    const size_t bytes = (size_t)n << shift;
    if (bytes < ((size_t)64 << 10))
        return complain(
            format("%zu bytes of memory for a simulated GPU: give 64K to 1T", bytes));
    if (state().open && bytes != state().options.memory)
        return complain("simulated GPUs are already in use: choose their memory before "
                        "the first use");
    state().options.memory = bytes;
    state().options.memory_chosen = true;
    return content();
}

static std::string known_cards()
{
    std::string names;
    for (const dt_sim_card &card : dt_sim_cards)
        names += (names.empty() ? "" : ", ") + std::string(card.name);
    return names;
}

static int set_card(const char *text)
{
    Options &options = state().options;
    std::vector<const dt_sim_card *> cards;
    for (const char *at = text; *at;) {
        const char *end = strchrnul(at, ',');
        const int found = dt_sim_card_find(at, (size_t)(end - at));
        if (found < 0)
            return complain(format("'%.*s' is not a card: give one of %s",
                                   (int)std::min<ptrdiff_t>(end - at, 40), at,
                                   known_cards().c_str()));
        cards.push_back(&dt_sim_cards[found]);
        at = *end ? end + 1 : end;
    }
    if (cards.size() > kMaxCards)
        return complain(format("%zu cards: give %d or fewer", cards.size(), kMaxCards));
    if (state().open && cards != options.cards)
        return complain("simulated GPUs are already in use: choose their card before "
                        "the first use");
    if (!options.memory_chosen && !state().open)
        options.memory = cards.empty() ? Options().memory : (size_t)cards[0]->gib << 30;
    options.cards = cards;
    return content();
}

static int set_host(const char *text)
{
    const bool fixed = !strcmp(text, "fixed");
    if (!fixed && strcmp(text, "measured"))
        return complain(
            format("'%.40s' is not a time of the host: give measured or fixed", text));
    if (state().open && (state().options.host == kFixed) != fixed)
        return complain("simulated GPUs are already in use: choose the host's time "
                        "before the first use");
    state().options.host = fixed ? kFixed : kMeasured;
    return content();
}

static int set_schedule(const char *text)
{
    Options &options = state().options;
    const char *end;
    unsigned long long seed;
    if (!strcmp(text, "eager")) {
        options.schedule = kEager;
        if (state().open)
            drain_all();
    } else if (!strcmp(text, "lazy")) {
        options.schedule = kLazy;
    } else if (!strncmp(text, "random:", 7) && whole_number(text + 7, &end, &seed) &&
               !*end) {
        options.schedule = kRandom;
        options.random = seed;
        options.favourite = nullptr;
    } else {
        return complain(
            format("'%.40s' is not a schedule: give eager, lazy or random:SEED", text));
    }
    options.schedule_name = text;
    return content();
}

static int set_failures(const char *text)
{
    static const char *const kinds[] = {"malloc", "host",   "copy",     "memset",
                                        "launch", "stream", "event",    "record",
                                        "wait",   "cublas", "cublaslt", "cusolver",
                                        "cudnn",  "cufft",  "capture",  "graph"};
    std::map<std::string, Failure> wanted;
    for (const char *at = text; *at;) {
        const char *colon = strchr(at, ':');
        std::string kind(at, colon ? (size_t)(colon - at) : strlen(at));
        bool known = false;
        for (const char *k : kinds)
            known |= kind == k;
        unsigned long long n = 0;
        const char *end = at;
        unsigned long long error = cudaSuccess;
        bool good = known && colon && whole_number(colon + 1, &end, &n) && n >= 1 &&
                    n <= 1000000000;
        bool always = good && *end == '+';
        end += always;
        if (good && *end == ':')
            good = whole_number(end + 1, &end, &error) && error > 0 && error < 1000;
        if (!good || (*end && *end != ','))
            return complain(
                format("'%.60s' is not a list of failures: give KIND:NUMBER,..., "
                       "KIND:NUMBER+,... or KIND:NUMBER:ERROR,... with kinds malloc, "
                       "host, copy, memset, launch, stream, event, record, wait, "
                       "cublas, cublaslt, cusolver, cudnn, cufft, capture, graph",
                       text));
        wanted[kind] = {(long)n, always, (cudaError_t)error};
        at = *end ? end + 1 : end;
    }
    state().options.failures = wanted;
    return content();
}

static int set_switch(const char *text, bool *out)
{
    if (strcmp(text, "0") && strcmp(text, "1"))
        return complain(format("'%.40s' does not switch on or off: give 1 or 0", text));
    *out = *text == '1';
    return content();
}

static int set_peer(const char *text)
{
    return set_switch(text, &state().options.peer);
}

static int set_sticky(const char *text)
{
    int status = set_switch(text, &state().options.sticky);
    for (auto &device : state().devices)
        if (!state().options.sticky && device->reported) {
            device->reported = false;
            device->fault = cudaSuccess;
        }
    return status;
}

static int set_cudnn(const char *text)
{
    return set_switch(text, &state().options.cudnn);
}

static int set_cufft(const char *text)
{
    return set_switch(text, &state().options.cufft);
}

static int set_reductions(const char *text)
{
    groups_meet = strcmp(text, "shuffled") != 0;
    if (groups_meet && strcmp(text, "once"))
        return complain(format("'%.40s' is not a way to reduce: give once, by the last "
                               "thread of a group, or "
                               "shuffled, by the kernels' shuffles and barriers",
                               text));
    return content();
}

static int set_races(const char *text)
{
    Races &races = state().races;
    static const char *const modes[] = {"off", "warn", "error", "strict"};
    int mode = 0;
    while (mode < 4 && strcmp(text, modes[mode]))
        mode++;
    if (mode == 4)
        return complain(format(
            "'%.40s' is not a way to report races: give off, warn or error", text));
    if (state().open && mode && !races.mode)
        return complain("simulated GPUs are already in use: have races looked for "
                        "before the first use");
    races.mode = (Races::Mode)mode;
    races.reported.clear();
    races.ranges.clear();
    return content();
}

static int set_record_stream(const char *text)
{
    const bool manual = !strcmp(text, "manual");
    if (!manual && strcmp(text, "automatic"))
        return complain(format(
            "'%.40s' is not a way to record streams: give automatic or manual", text));
    if (state().open && state().options.manual != manual)
        return complain("simulated GPUs are already in use: choose who records streams "
                        "before the first use");
    state().options.manual = manual;
    return content();
}

static const struct {
    const char *name, *variable;
    int (*set)(const char *text);
} settings[] = {
    {"devices", "PYDEVTENSOR_SIM_GPUS", set_devices},
    {"memory", "PYDEVTENSOR_SIM_MEMORY", set_memory},
    {"card", "PYDEVTENSOR_SIM_CARD", set_card},
    {"host", "PYDEVTENSOR_SIM_HOST", set_host},
    {"schedule", "PYDEVTENSOR_SIM_SCHEDULE", set_schedule},
    {"peer", "PYDEVTENSOR_SIM_PEER", set_peer},
    {"sticky", "PYDEVTENSOR_SIM_STICKY", set_sticky},
    {"cudnn", "PYDEVTENSOR_SIM_CUDNN", set_cudnn},
    {"cufft", "PYDEVTENSOR_SIM_CUFFT", set_cufft},
    {"reductions", "PYDEVTENSOR_SIM_REDUCTIONS", set_reductions},
    {"failures", "PYDEVTENSOR_SIM_FAIL", set_failures},
    {"races", "PYDEVTENSOR_SIM_RACES", set_races},
    {"record_stream", "PYDEVTENSOR_SIM_RECORD_STREAM", set_record_stream},
};

static int read_environment()
{
    for (auto &setting : settings) {
        const char *text = getenv(setting.variable);
        if (text && *text && setting.set(text))
            return complain(format("%s: %s", setting.variable, thread().complaint));
    }
    return 0;
}

cudaError_t read_options()
{
    static char why[sizeof(Thread::complaint)];
    Options &options = state().options;
    if (!options.read) {
        options.read = true;
        options.valid = read_environment() == 0;
        if (!options.valid)
            snprintf(why, sizeof why, "%s", thread().complaint);
    }
    if (options.valid)
        return cudaSuccess;
    complain(why);
    return cudaErrorInvalidValue;
}

cudaError_t failure(const char *kind, cudaError_t usual)
{
    auto &failures = state().options.failures;
    if (failures.empty())
        return cudaSuccess;
    auto found = failures.find(kind);
    if (found == failures.end() || --found->second.calls > 0)
        return cudaSuccess;
    cudaError_t error = found->second.error;
    if (!found->second.always)
        failures.erase(found);
    if (state().open)
        device_at(thread().device).counted.failures++;
    return error ? error : usual;
}

} /* namespace sim */

using namespace sim;

int dt_sim_set(const char *name, const char *text)
{
    Entry in(Entry::kNothing);
    if (in.error == cudaErrorInvalidValue)
        return -1; /* keep the complaint about the environment */
    if (in.error)
        return complain(cudaGetErrorName(in.error));
    for (auto &setting : settings)
        if (!strcmp(name, setting.name))
            return setting.set(text);
    return complain(format("'%.40s' is not a command of the simulator", name));
}

const char *dt_sim_complaint(void)
{
    return thread().complaint;
}
