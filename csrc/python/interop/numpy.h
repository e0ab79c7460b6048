/* NumPy arrays and tensors over the same memory. NumPy is imported on first need. */
#ifndef DT_PYTHON_INTEROP_NUMPY_H
#define DT_PYTHON_INTEROP_NUMPY_H

#include "python/types/tensor.h"

/* Whether value is a NumPy array. Never imports NumPy: where it is not, there is no
 * array. */
bool dt_numpy_is_array(PyObject *value);

/* The element type of a NumPy scalar, -1 where value is none or of a type that tensors
 * lack. */
int dt_numpy_scalar_dtype(PyObject *value);

/* A tensor over the array's memory, which it keeps alive. A new reference; NULL with
 * TypeError or ValueError for what cannot be shared. */
PyObject *dt_numpy_to_tensor(PyObject *array);

/* An array over a CPU tensor's memory, which it keeps alive. A new reference. */
PyObject *dt_numpy_from_tensor(PyObject *tensor);

#endif
