/* `Size`: the tuple subclass of shapes. */
#ifndef DT_PYTHON_TYPES_SIZE_H
#define DT_PYTHON_TYPES_SIZE_H

#include "python/module.h"

/* A new Size; NULL with an exception set. */
PyObject *dt_size_new(int ndim, const int64_t *sizes);

/* A new plain tuple of ints (strides). */
PyObject *dt_int_tuple_new(int count, const int64_t *values);

#endif
