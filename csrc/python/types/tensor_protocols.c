/* Tensors as numbers and as sequences of Python. */
#include "autograd/recorded.h"
#include "ops/elementwise_ops.h"
#include "python/overrides.h"
#include "python/arguments.h"
#include "python/threads.h"
#include "python/types/tensor_protocols.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

/* --- number protocol --- */

static int item(const char *op_name, PyObject *self, dt_scalar *out)
{
    return dt_python_item(op_name, dt_tensor_of(self), out);
}

int dt_tensor_to_bool(PyObject *self)
{
    const dt_tensor *x = dt_tensor_of(self);
    if (x->numel != 1) {
        char shape[DT_SHAPE_TEXT];
        return DT_SET_ERROR(PyExc_RuntimeError,
                            "bool(): the truth value of a Tensor with %s is ambiguous, "
                            "and this one has shape %s; use .any() or .all()",
                            x->numel ? "more than one element" : "no elements",
                            dt_shape_text(x->ndim, x->shape, shape, sizeof shape));
    }
    dt_scalar scalar;
    if (dt_dtype_is_complex((dt_dtype)x->dtype)) {
        DT_REF number = PyObject_CallMethod(self, "item", NULL);
        return number ? PyObject_IsTrue(number) : -1;
    }
    if (item("bool", self, &scalar) < 0)
        return -1;
    return scalar.kind == DT_KIND_FLOAT ? scalar.f != 0 : scalar.i != 0;
}

/* Only a tensor of one element converts to a number. */
static int single(const char *op_name, PyObject *self, dt_scalar *out)
{
    int64_t numel = dt_tensor_of(self)->numel;
    if (numel == 1)
        return item(op_name, self, out);
    return DT_SET_ERROR(
        PyExc_ValueError,
        "%s(): only a Tensor with one element converts to a number, and this "
        "one has %lld; index it, or use .tolist()",
        op_name, (long long)numel);
}

PyObject *dt_tensor_to_int(PyObject *self)
{
    dt_scalar scalar;
    if (single("int", self, &scalar) < 0)
        return NULL;
    if (scalar.kind == DT_KIND_FLOAT)
        return PyLong_FromDouble(scalar.f);
    return PyLong_FromLongLong(scalar.i);
}

PyObject *dt_tensor_to_float(PyObject *self)
{
    dt_scalar scalar;
    if (single("float", self, &scalar) < 0)
        return NULL;
    return PyFloat_FromDouble(dt_scalar_as_double(scalar));
}

PyObject *dt_tensor_to_index(PyObject *self)
{
    const dt_tensor *x = dt_tensor_of(self);
    dt_scalar scalar;
    if (x->numel != 1 || dt_dtype_is_inexact((dt_dtype)x->dtype)) {
        char text[DT_DESCRIBE_TEXT];
        return PyErr_Format(
            PyExc_TypeError,
            "%s cannot be an index; only integer tensors of one element can",
            dt_describe(self, text, sizeof text));
    }
    if (item("__index__", self, &scalar) < 0)
        return NULL;
    return PyLong_FromLongLong(scalar.i);
}

/* --- sequence protocol --- */

Py_ssize_t dt_tensor_length(PyObject *self)
{
    const dt_tensor *x = dt_tensor_of(self);
    if (x->ndim == 0)
        return DT_SET_ERROR(PyExc_TypeError,
                            "len(): a 0-dim Tensor has no length; use .numel()");
    return (Py_ssize_t)x->shape[0];
}

PyObject *dt_tensor_sequence_item(PyObject *self, Py_ssize_t index)
{
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(out, DT_CALL_AS("SelectBackward0", select, &out->tensor,
                                            dt_value_tensor(dt_tensor_of(self)),
                                            dt_value_int(0), dt_value_int(index)));
}

PyObject *dt_tensor_iterate(PyObject *self)
{
    DT_OVERRIDE(dt_override_operator("__iter__", self, NULL, NULL));
    if (dt_tensor_of(self)->ndim == 0)
        return PyErr_Format(PyExc_TypeError,
                            "iter(): a 0-dim Tensor cannot be iterated "
                            "over; use .item() for its value");
    return PySeqIter_New(self);
}

int dt_tensor_contains(PyObject *self, PyObject *value)
{
    dt_arg y;
    DT_REF number = NULL;
    if (dt_is_complex_number(value)) {
        number =
            dt_complex_from_python(value, dt_complex_type_beside(dt_tensor_of(self)));
        if (!number)
            return -1;
        value = number;
    }
    int status = dt_operand_from_python(value, &y);
    if (status <= 0) {
        char text[DT_DESCRIBE_TEXT];
        if (!status)
            PyErr_Format(PyExc_RuntimeError,
                         "in: %s cannot be in a Tensor; give a Tensor or "
                         "a number",
                         dt_describe(value, text, sizeof text));
        return -1;
    }
    DT_LOCAL(equal);
    DT_LOCAL(any);
    dt_scalar found = dt_scalar_bool(false);
    const dt_tensor *x = dt_tensor_of(self);
    DT_RUN(status, true,
           dt_recorded_elementwise(DT_OP_eq, &equal, DT_ARGS(dt_arg_tensor(x), y)) ||
                   DT_CALL(any, &any, dt_value_tensor(&equal)) ||
                   dt_item("in", &any, &found)
               ? -1
               : 0,
           &x, &y.tensor);
    return status < 0 ? dt_raise_status() : found.i != 0;
}
