/* NumPy arrays and tensors over the same memory. NumPy is imported on first use. */
#ifndef DT_PYTHON_INTEROP_NUMPY_H
#define DT_PYTHON_INTEROP_NUMPY_H

#include "python/types/tensor.h"

/* Whether value is a NumPy array. Never imports NumPy: without it there are no
 * arrays. */
bool dt_numpy_is_array(PyObject *value);

/* The element type of a NumPy scalar; -1 if value is not one or tensors lack the
 * type. */
int dt_numpy_scalar_dtype(PyObject *value);

/* A tensor over the array's memory, which it keeps alive. A new reference; NULL with
 * TypeError or ValueError if the memory cannot be shared. */
PyObject *dt_numpy_to_tensor(PyObject *array);

/* An array over a CPU tensor's memory, which it keeps alive. A new reference. */
PyObject *dt_numpy_from_tensor(PyObject *tensor);

#endif
