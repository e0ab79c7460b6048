/* The simulator's state, its lock, and Entry, through which every call passes. */
#include "internal.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

namespace sim {

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool forked; /* this process is the child of one that used devices */

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

static void after_fork()
{
    if (state().open)
        forked = true;
    /* The lock may be held by a thread that does not exist in this process. */
    lock = PTHREAD_MUTEX_INITIALIZER;
}

Entry::Entry(Need need) : error(cudaSuccess), locked(false)
{
    static const int watch = pthread_atfork(nullptr, nullptr, after_fork);
    (void)watch;
    if (forked) {
        error = cudaErrorInitializationError;
        return;
    }
    if (thread().inside) {
        error = cudaErrorNotPermitted;
        return;
    }
    pthread_mutex_lock(&lock);
    thread().inside = true;
    locked = true;
    error = read_options();
    if (!error && need == kDevices)
        error = open_devices();
}

Entry::~Entry()
{
    if (!locked)
        return;
    thread().inside = false;
    pthread_mutex_unlock(&lock);
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
