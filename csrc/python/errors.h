/* Errors of the core as Python exceptions. */
#ifndef DT_PYTHON_ERRORS_H
#define DT_PYTHON_ERRORS_H

#include "python/module.h"

/* Raises and clears the core's pending error (base/error.h). Always returns NULL, so
 * that a function can `return dt_raise()`. */
PyObject *dt_raise(void);

/* The same for functions that return -1. */
static inline int dt_raise_status(void)
{
    dt_raise();
    return -1;
}

/* PyErr_Format in functions that return -1. */
#define DT_SET_ERROR(...) (PyErr_Format(__VA_ARGS__), -1)

/* Release and reacquire the GIL around code that may use the autograd metadata of
 * tensors. */
#define DT_BEGIN_ALLOW_THREADS                                                         \
    {                                                                                  \
        dt_py.outside++;                                                               \
        dt_concurrent_begin();                                                         \
        Py_BEGIN_ALLOW_THREADS
#define DT_END_ALLOW_THREADS                                                           \
    Py_END_ALLOW_THREADS                                                               \
    dt_concurrent_end();                                                               \
    dt_py.outside--;                                                                   \
    }

/* Runs `expression`, a call into the core that returns 0 or -1, and stores the result in
 * `status`. With `releases`, other Python threads run meanwhile: this costs 30 ns, so
 * use it only where the call computes for long or may synchronize with a device. The
 * tensors in the expression must not change. */
#define DT_RUN(status, releases, expression)                                           \
    do {                                                                               \
        if (releases) {                                                                \
            DT_BEGIN_ALLOW_THREADS;                                                    \
            (status) = (expression);                                                   \
            DT_END_ALLOW_THREADS                                                       \
        } else {                                                                       \
            (status) = (expression);                                                   \
        }                                                                              \
    } while (0)

/* Computations on this many elements release the GIL. */
#define DT_LONG_NUMEL 20000

#endif
