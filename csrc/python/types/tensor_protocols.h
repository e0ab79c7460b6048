/* Slots of the Tensor type for numbers and sequences (tensor_protocols.c). */
#ifndef DT_PYTHON_TENSOR_PROTOCOLS_H
#define DT_PYTHON_TENSOR_PROTOCOLS_H

#include "python/types/tensor.h"

int dt_tensor_to_bool(PyObject *self);
PyObject *dt_tensor_to_int(PyObject *self);
PyObject *dt_tensor_to_float(PyObject *self);
PyObject *dt_tensor_to_index(PyObject *self);
Py_ssize_t dt_tensor_length(PyObject *self);
PyObject *dt_tensor_sequence_item(PyObject *self, Py_ssize_t index);
PyObject *dt_tensor_iterate(PyObject *self);
int dt_tensor_contains(PyObject *self, PyObject *value);

#endif
