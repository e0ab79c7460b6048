/* The core's errors as Python exceptions: the one place where they meet. */
#ifndef DT_PYTHON_ERRORS_H
#define DT_PYTHON_ERRORS_H

#include "python/module.h"

/* Raises the core's pending error (base/error.h) and forgets it. Always returns NULL,
 * so that a function can `return dt_raise()`. */
PyObject *dt_raise(void);

/* The same for functions that return -1. */
static inline int dt_raise_status(void)
{
    dt_raise();
    return -1;
}

/* Runs `expression`, a call into the core that gives 0 or -1, and puts what it gave in
 * `status`. Where `releases` is true other Python threads run meanwhile: worth its 30
 * ns for a call that computes long or may wait for a device. The tensors in it have to
 * stay as they are. */
/* Py_BEGIN_ALLOW_THREADS and its end, where the work may use histories of tensors. */
#define DT_BEGIN_ALLOW_THREADS                                                         \
    {                                                                                  \
        dt_py.outside++;                                                               \
        Py_BEGIN_ALLOW_THREADS
#define DT_END_ALLOW_THREADS                                                           \
    Py_END_ALLOW_THREADS dt_py.outside--;                                              \
    }

#define DT_RUN(status, releases, expression)                                           \
    do {                                                                               \
        if (releases) {                                                                \
            DT_BEGIN_ALLOW_THREADS(status) = (expression);                             \
            DT_END_ALLOW_THREADS                                                       \
        } else {                                                                       \
            (status) = (expression);                                                   \
        }                                                                              \
    } while (0)

/* Elements from which on a computation is long. */
#define DT_LONG_NUMEL 20000

#endif
