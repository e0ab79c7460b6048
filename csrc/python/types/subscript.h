/* Indexing functions shared with csrc/python/functions/index.c. */
#ifndef DT_PYTHON_TYPES_SUBSCRIPT_H
#define DT_PYTHON_TYPES_SUBSCRIPT_H

#include "python/types/tensor.h"

/* nonzero(as_tuple=True): one tensor of positions per dimension; a 0-dim tensor
 * counts as 1-dim. Synchronizes with a GPU. NULL with an exception set. */
PyObject *dt_nonzero_tuple(const dt_tensor *x);

/* self[indices] = values, or += values; indices is a tuple of Tensors. -1 with an
 * exception set. */
int dt_tensor_index_put(PyObject *self, PyObject *indices, PyObject *values,
                        bool accumulate);

#endif
