/* Python's global interpreter lock (GIL), as far as the core has to know it.
 *
 * Whatever threads share is touched with the GIL alone: tensors, autograd metadata,
 * nodes, hooks, counts. A long call releases it around work on plain memory alone:
 * kernels, copies and waits for a device. Whoever makes such a call holds a reference to
 * the storage of each operand until it returns; python/threads.h does so for the
 * operands of a call from Python.
 *
 * Where the GIL is released or taken, no lock may be held that another thread takes with
 * the GIL. Threads that Python does not know (of the kernel pool, of a driver) never
 * touch it. C programs have no GIL: they call the core from one thread at a time, or
 * lock the data that their threads share. */
#ifndef DT_BASE_GIL_H
#define DT_BASE_GIL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets how the calling thread releases the GIL, and takes it with what release returned. */
void dt_gil_start(void *(*release)(void), void (*take)(void *state));

/* Whether the calling thread releases the GIL in long work from now on; returns what was
 * so far. False at the start, and has to be whenever Python code runs. */
bool dt_gil_yield(bool yields);

/* Releases the GIL; NULL where the thread keeps it. */
void *dt_gil_release(void);
void dt_gil_take(void *state);

/* Whether a thread is in the middle of a call whose GIL it has released. A thread that
 * releases it in another way says so with 1 before, and -1 after. */
void dt_gil_count(int change);
bool dt_gil_is_released(void);

static inline void dt_gil_end(void **state)
{
    if (*state)
        dt_gil_take(*state);
}

/* Releases the GIL until the end of the block if `when` holds: for work that takes some
 * microseconds or more, as this costs 50 ns. */
#define DT_WITHOUT_GIL(when)                                                           \
    __attribute__((cleanup(dt_gil_end))) void *gil_ =                                  \
        (when) ? dt_gil_release() : NULL;                                              \
    (void)gil_

#ifdef __cplusplus
}
#endif
#endif
