/* What subscripts and the functions of csrc/python/functions_indexing.c share. */
#ifndef DT_PYTHON_INDEXING_H
#define DT_PYTHON_INDEXING_H

#include "python/tensor_type.h"

/* nonzero(as_tuple=True): one tensor of positions for each dimension. A tensor without
 * dimensions counts as one of one element. Waits for a GPU. NULL with an exception. */
PyObject *dt_nonzero_tuple(const dt_tensor *x);

/* self[indices] = values, or += values, indices being a tuple of Tensors. -1 with an
 * exception. */
int dt_tensor_index_put(PyObject *self, PyObject *indices, PyObject *values,
                        bool accumulate);

#endif
