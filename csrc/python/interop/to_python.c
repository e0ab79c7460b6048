/* Tensors to Python: numbers, lists, pickles, copies, formatting. */
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/history.h"
#include "base/interrupt.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/view.h"
#include "autograd/variable.h"

DT_PUBLIC(item, "item(self: Tensor)")
{
    const dt_tensor *t = v[0].tensor;
    dt_scalar value;
    if (dt_dtype_is_complex((dt_dtype)t->dtype)) {
        dt_scalar parts[2];
        for (int which = 0; which < 2; which++) {
            DT_LOCAL(part);
            dt_complex_part(&part, t, which);
            if (dt_python_item("item", &part, &parts[which]) < 0)
                return NULL;
        }
        return PyComplex_FromDoubles(parts[0].f, parts[1].f);
    }
    return dt_python_item("item", t, &value) < 0 ? NULL : dt_scalar_to_python(value);
}

DT_PUBLIC(to_complex, "__complex__(self: Tensor)")
{
    if (v[0].tensor->numel != 1)
        return PyErr_Format(
            PyExc_ValueError,
            "complex(): only a Tensor with one element converts to a number, and this "
            "one has %lld; index it, or use .tolist()",
            (long long)v[0].tensor->numel);
    DT_REF number = item_body(args, v);
    return number ? PyObject_CallOneArg((PyObject *)&PyComplex_Type, number) : NULL;
}

/* --- lists --- */

/* Elements and lists between two looks at the clock. */
#define LOOK 0x10000

/* The elements at data, from dimension dim on; NULL after an exception or dt_fail. */
static PyObject *list_from(const dt_tensor *t, int dim, const char *data, int64_t *made)
{
    if (++*made % LOOK == 0 && dt_interrupt_check_rarely() < 0)
        return NULL;
    if (dim == t->ndim)
        return dt_element_to_python((dt_dtype)t->dtype, data);
    int64_t step = t->strides[dim] * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
    PyObject *list = PyList_New((Py_ssize_t)t->shape[dim]);
    if (!list)
        return NULL;
    for (int64_t i = 0; i < t->shape[dim]; i++) {
        PyObject *item = list_from(t, dim + 1, data + i * step, made);
        if (!item) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

DT_PUBLIC(tolist, "tolist(self: Tensor)")
{
    const dt_tensor *t = v[0].tensor;
    DT_LOCAL(here);
    int status = dt_tensor_used_by_host("tolist", t);
    if (dt_device_is_host(dt_tensor_device(t)))
        dt_tensor_alias(&here, t);
    else
        DT_RUN(status, true,
               dt_to(&here, t, (dt_dtype)t->dtype, dt_device_make(DT_CPU, 0)), &t);
    int64_t made = 0, due = dt_interrupt_set_due(DT_INTERRUPT_LATER);
    PyObject *list =
        status < 0 ? NULL : list_from(&here, 0, dt_tensor_data(&here), &made);
    dt_interrupt_set_due(due);
    return list ? list : dt_raise();
}

DT_PUBLIC(copy, "__copy__(self: Tensor)")
{
    return (PyObject *)dt_tensor_object_detached(dt_py.tensor_type, v[0].tensor);
}

static const dt_function rows[] = {
    DT_METHOD(item, "item",
              "The only element as a Python bool, int, float or complex. RuntimeError "
              "if there "
              "is not exactly one.\n\nSynchronizes with the device.",
              "torch.tensor([2.5]).item()", "2.5"),
    DT_METHOD(to_complex, "__complex__",
              "The only element as a Python complex number.\n\nSynchronizes with the "
              "device.",
              "", ""),
    DT_METHOD(tolist, "tolist",
              "The elements as nested lists of Python numbers; a number for a 0-dim "
              "tensor.\n\nSynchronizes with a GPU, in one copy.",
              "torch.tensor([[1, 2], [3, 4]]).tolist()", "[[1, 2], [3, 4]]"),
    DT_METHOD(copy, "__copy__", "A second tensor that shares the memory.", "", ""),
};

int dt_setup_extract(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
