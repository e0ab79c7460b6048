/* The simulator's state, its lock, and Entry, through which every call passes. */
#include "base/lock.h"
#include "core.h"
#include "internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

namespace sim {

dt_host core;

State &state()
{
    static State *all = new State;
    return *all;
}

Thread &thread()
{
    static thread_local Thread mine;
    return mine;
}

uint64_t Block::next_number()
{
    static uint64_t last;
    return ++last;
}

unsigned Stream::next_number()
{
    static unsigned last;
    return ++last;
}

Entry::Entry(Need need) : error(cudaSuccess), locked(false)
{
    if (thread().inside) {
        error = cudaErrorNotPermitted;
        return;
    }
    dt_lock(DT_LOCK_SIMULATOR);
    thread().inside = true;
    thread().calls++;
    locked = true;
    if (clock_runs())
        clock_enter();
    error = read_options();
    State &all = state();
    if (need != kNothing && !all.started)
        all.started = 1 + dt_forks();
    if (all.started && all.started != 1 + dt_forks())
        error = cudaErrorInitializationError;
    if (error || need != kDevices || (error = open_devices()))
        return;
    Device &device = device_at(thread().device);
    device.context = true;
    if (device.reported)
        error = report_fault(device);
}

Entry::~Entry()
{
    if (!locked)
        return;
    if (clock_runs())
        clock_leave();
    thread().inside = false;
    dt_unlock(DT_LOCK_SIMULATOR);
}

void Entry::count()
{
    if (locked && (size_t)thread().device < state().devices.size())
        device_at(thread().device).counted.calls++;
}

cudaError_t open_devices()
{
    State &all = state();
    if (all.open)
        return cudaSuccess;
    if (all.options.devices == 0)
        return cudaErrorNoDevice;
    cudaError_t error = map_devices();
    all.open = error == cudaSuccess;
    if (all.open)
        clock_start(all.options.cards, all.options.host, all.options.devices);
    return error;
}

double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

std::string format(const char *text, ...)
{
    char out[1024];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(out, sizeof out, text, arguments);
    va_end(arguments);
    return out;
}

} /* namespace sim */
