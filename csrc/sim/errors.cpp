/* Errors: names, texts, each thread's last error, and the faults of queued work. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

namespace sim {

cudaError_t answer(cudaError_t error)
{
    Thread &me = thread();
    if (error) {
        me.last = error;
        if (error == me.reported && me.explained != me.calls)
            me.reported = cudaSuccess; /* the text is of an earlier call */
    }
    return error;
}

void explain(cudaError_t error, const char *text)
{
    Thread &me = thread();
    me.reported = error;
    me.explained = me.calls;
    snprintf(me.text, sizeof me.text, "%s", text);
}

void blame(int device, cudaError_t error, const std::string &text)
{
    State &all = state();
    Device &where = device_at(device);
    all.violation = text;
    all.violations++;
    where.counted.violations++;
    if (!where.fault) { /* keep the first: it caused the others */
        where.fault = error;
        where.fault_text = text;
    }
}

void stand_in(int device, const char *what, const std::function<int()> &call)
{
    dt_error *slot = dt_error_slot(), waiting;
    const bool waits = slot->code != DT_ERROR_NONE;
    if (waits)
        waiting = *slot;
    if (call() < 0) {
        blame(device, cudaErrorUnknown, format("%s failed: %s", what, slot->text));
        dt_error_clear();
    }
    if (waits)
        *slot = waiting;
}

cudaError_t report_fault(Device &device)
{
    cudaError_t error = device.fault;
    explain(error, device.fault_text.c_str());
    device.reported = state().options.sticky;
    if (!device.reported) {
        device.fault = cudaSuccess;
        device.fault_text.clear();
    }
    return answer(error);
}

cudaError_t verdict(int device, uint64_t before, cudaError_t otherwise)
{
    State &all = state();
    if (device_at(device).fault)
        return report_fault(device_at(device));
    if (all.violations != before)
        for (auto &other : all.devices)
            if (other->fault)
                return report_fault(*other);
    return answer(otherwise);
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = thread().last;
    thread().last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return thread().last;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} errors[] = {
#define ERROR(name, number, text) {name, #name, text},
    SIM_ERRORS(ERROR)
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (auto &each : errors)
        if (each.error == error)
            return each.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    Thread &me = thread();
    const char *words = "unrecognized error code";
    for (auto &each : errors)
        if (each.error == error)
            words = each.text;
    const char *more = error && error == me.reported ? me.text : "";
    if (error == cudaErrorInvalidValue && !state().options.valid)
        more = me.complaint;
    if (!*more)
        return words;
    snprintf(me.words, sizeof me.words, "%s: %s", words, more);
    return me.words;
}

size_t dt_sim_violation(char *out, size_t size)
{
    Entry in(Entry::kNothing);
    const std::string &text = state().violation;
    if (size) {
        size_t n = text.size() < size - 1 ? text.size() : size - 1;
        memcpy(out, text.data(), n);
        out[n] = 0;
    }
    return text.size();
}
