/* The process around the interpreter: the GIL, signals that interrupt long work, exit. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/gil.h"
#include "base/interrupt.h"
#include "python/errors.h"
#include "python/threads.h"

/* Seconds that the process waits for daemon threads at its end. */
#define PATIENCE 20

/* Threads in long work; atomic. */
static int outside;

static void *release_gil(void)
{
    __atomic_fetch_add(&outside, 1, __ATOMIC_RELAXED);
    return PyEval_SaveThread();
}

/* After the end of the interpreter the thread ends here. */
static void take_gil(void *state)
{
    __atomic_fetch_sub(&outside, 1, __ATOMIC_RELEASE);
    PyEval_RestoreThread(state);
}

/* The interpreter has ended. What daemon threads still compute uses memory, libraries
 * and threads that exit() takes down next. */
static void wait_for_threads(void)
{
    struct timespec step = {.tv_nsec = 1000000};
    for (int i = 0; i < PATIENCE * 1000; i++) {
        if (!__atomic_load_n(&outside, __ATOMIC_ACQUIRE))
            return;
        nanosleep(&step, NULL);
    }
}

/* A forked child has none of its parent's threads, but the one that forked, which held
 * the GIL. */
static void forget_threads(void)
{
    outside = 0;
}

/* Whether a signal handler has raised an exception. Only the main thread runs handlers;
 * others must not ask, as they may compute after the interpreter has ended. */
static bool is_interrupted(void)
{
    if (gettid() != getpid())
        return false;
    DT_WITH_GIL;
    bool raised = !PyErr_Occurred() && PyErr_CheckSignals() < 0;
    return raised;
}

int dt_setup_process(PyObject *module)
{
    (void)module;
#ifndef Py_GIL_DISABLED
    dt_gil_start(release_gil, take_gil);
#endif
    dt_interrupt_start(is_interrupted);
    if (pthread_atfork(NULL, NULL, forget_threads) || Py_AtExit(wait_for_threads) < 0)
        return DT_SET_ERROR(PyExc_ImportError,
                            "pydevtensor: no place is left for what it does at exit");
    return 0;
}
