/* What subscripts and the functions of csrc/python/functions/index.c share. */
#ifndef DT_PYTHON_TYPES_SUBSCRIPT_H
#define DT_PYTHON_TYPES_SUBSCRIPT_H

#include "python/types/tensor.h"

/* nonzero(as_tuple=True): one tensor of positions for each dimension. A tensor without
 * dimensions counts as one of one element. Waits for a GPU. NULL with an exception. */
PyObject *dt_nonzero_tuple(const dt_tensor *x);

/* self[indices] = values, or += values, indices being a tuple of Tensors. -1 with an
 * exception. */
int dt_tensor_index_put(PyObject *self, PyObject *indices, PyObject *values,
                        bool accumulate);

#endif
