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

#endif
