/* Tensors to Python: numbers, lists, pickles, copies, formatting. */
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/functions.h"
#include "python/types/size.h"
#include "tensor/ops/copy.h"
#include "tensor/view.h"
#include "autograd/variable.h"

DT_PUBLIC(item, "item(self: Tensor)")
{
    dt_tensor *t;
    dt_scalar value;
    int status;
    if (dt_take_tensor(args, 0, &t) < 0)
        return NULL;
    DT_RUN(status, !dt_device_is_cpu(dt_tensor_device(t)), dt_item("item", t, &value));
    return status ? dt_raise() : dt_scalar_to_python(value);
}

/* --- lists --- */

static PyObject *list_from(const dt_tensor *t, int dim, const char *data)
{
    if (dim == t->ndim)
        return dt_scalar_to_python(dt_element_to_scalar((dt_dtype)t->dtype, data));
    int64_t step = t->strides[dim] * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
    PyObject *list = PyList_New((Py_ssize_t)t->shape[dim]);
    if (!list)
        return NULL;
    for (int64_t i = 0; i < t->shape[dim]; i++) {
        PyObject *item = list_from(t, dim + 1, data + i * step);
        if (!item) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, item);
    }
    return list;
}

/* t on the CPU: an alias if it is there already, else one copy. */
static int fetch(dt_tensor *out, const dt_tensor *t)
{
    int status;
    if (dt_device_is_cpu(dt_tensor_device(t))) {
        dt_tensor_alias(out, t);
        return 0;
    }
    DT_RUN(status, true, dt_to(out, t, (dt_dtype)t->dtype, dt_device_make(DT_CPU, 0)));
    return status ? dt_raise_status() : 0;
}

DT_PUBLIC(tolist, "tolist(self: Tensor)")
{
    dt_tensor *t, here;
    if (dt_take_tensor(args, 0, &t) < 0 || fetch(&here, t) < 0)
        return NULL;
    PyObject *list = list_from(&here, 0, dt_tensor_data(&here));
    dt_tensor_clear(&here);
    return list;
}

/* --- copies and pickles --- */

/* Only leaves can be copied or pickled: their graph cannot. */
static int refuse_history(const char *op_name, const dt_tensor *t)
{
    bool made;
    if (dt_variable_is_made(t, &made) < 0)
        return dt_raise_status();
    if (!made)
        return 0;
    PyErr_Format(
        PyExc_RuntimeError,
        "%s: only Tensors created explicitly by the user (graph leaves) support "
        "it, and this one was computed; detach() it first",
        op_name);
    return -1;
}

DT_PUBLIC(copy, "__copy__(self: Tensor)")
{
    dt_tensor *t;
    if (dt_take_tensor(args, 0, &t) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_tensor_alias(&out->tensor, t);
    return (PyObject *)out;
}

DT_PUBLIC(deepcopy, "__deepcopy__(self: Tensor, memo: Any)")
{
    dt_tensor *t;
    int status;
    if (dt_take_tensor(args, 0, &t) < 0)
        return NULL;
    if (refuse_history("copy.deepcopy()", t) < 0)
        return NULL;
    PyObject *key = PyLong_FromVoidPtr(args->slots[0]);
    if (!key)
        return NULL;
    PyObject *result = PyDict_Check(args->slots[1])
                           ? Py_XNewRef(PyDict_GetItemWithError(args->slots[1], key))
                           : NULL;
    if (!result && !PyErr_Occurred()) {
        dt_tensor_object *out = dt_tensor_object_new();
        if (out) {
            DT_RUN(status, t->numel > DT_LONG_NUMEL,
                   dt_to(&out->tensor, t, (dt_dtype)t->dtype, dt_tensor_device(t)));
            result = dt_tensor_result(out, status);
        }
        if (result && dt_requires_grad(t) &&
            dt_variable_require(dt_tensor_of(result), true) < 0) {
            dt_raise();
            Py_CLEAR(result);
        }
        if (result && PyObject_SetItem(args->slots[1], key, result) < 0)
            Py_CLEAR(result);
    }
    Py_DECREF(key);
    return result;
}

/* Pickles the elements as bytes in row-major order, so that unpickling needs no
 * NumPy. */
DT_PUBLIC(reduce_ex, "__reduce_ex__(self: Tensor, protocol: int)")
{
    dt_tensor *t, here = {.storage = NULL}, dense = {.storage = NULL};
    PyObject *result = NULL, *rebuild = NULL, *size = NULL, *device = NULL,
             *bytes = NULL;
    if (dt_take_tensor(args, 0, &t) < 0 || refuse_history("pickle", t) < 0 ||
        fetch(&here, t) < 0)
        return NULL;
    if (dt_contiguous(&dense, &here)) {
        dt_raise();
        goto done;
    }
    rebuild = PyObject_GetAttrString(dt_py.module, "_rebuild_tensor");
    size = dt_size_new(t->ndim, t->shape);
    device = dt_device_object_of(dt_tensor_device(t));
    bytes = PyBytes_FromStringAndSize(
        dense.numel ? dt_tensor_data(&dense) : NULL,
        (Py_ssize_t)dense.numel * (Py_ssize_t)dt_dtype_size((dt_dtype)dense.dtype));
    if (rebuild && size && device && bytes)
        result = Py_BuildValue("O(OOOOO)", rebuild, bytes, dt_py.dtypes[t->dtype], size,
                               device, dt_requires_grad(t) ? Py_True : Py_False);
done:
    Py_XDECREF(bytes);
    Py_XDECREF(device);
    Py_XDECREF(size);
    Py_XDECREF(rebuild);
    dt_tensor_clear(&dense);
    dt_tensor_clear(&here);
    return result;
}

DT_PUBLIC(rebuild,
          "_rebuild_tensor(data: Any, dtype: Dtype, size: Sizes, device: Device, "
          "requires_grad: bool = False)")
{
    dt_tensor host = {.storage = NULL};
    int64_t shape[DT_MAX_NDIM];
    int dtype, ndim, status;
    dt_device device, cpu = dt_device_make(DT_CPU, 0);
    if (dt_take_dtype(args, 1, &dtype) < 0 ||
        dt_take_sizes(args, 2, &ndim, shape) < 0 ||
        dt_take_device(args, 3, &device) < 0)
        return NULL;
    if (!PyBytes_Check(args->slots[0])) {
        dt_argument_error(args, 0);
        return NULL;
    }
    if (dt_tensor_empty("_rebuild_tensor", &host, (dt_dtype)dtype, ndim, shape, cpu))
        return dt_raise();
    size_t bytes = (size_t)host.numel * dt_dtype_size((dt_dtype)dtype);
    if ((size_t)PyBytes_GET_SIZE(args->slots[0]) != bytes) {
        PyErr_Format(PyExc_ValueError,
                     "_rebuild_tensor(): %zd bytes were given for a tensor of %zu; the "
                     "pickle is "
                     "damaged",
                     PyBytes_GET_SIZE(args->slots[0]), bytes);
        dt_tensor_clear(&host);
        return NULL;
    }
    if (bytes)
        memcpy(dt_tensor_data(&host), PyBytes_AS_STRING(args->slots[0]), bytes);
    if (dt_device_is_cpu(device))
        return dt_with_grad(args, 4, dt_tensor_object_steal(&host));
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out) {
        dt_tensor_clear(&host);
        return NULL;
    }
    DT_RUN(status, true, dt_to(&out->tensor, &host, (dt_dtype)dtype, device));
    dt_tensor_clear(&host);
    return dt_with_grad(args, 4, dt_tensor_result(out, status));
}

static const dt_function rows[] = {
    DT_METHOD(item, "item",
              "The only element as a Python bool, int or float. RuntimeError if there "
              "is not exactly one.\n\nSynchronizes with the device."),
    DT_METHOD(tolist, "tolist",
              "The elements as nested lists of Python numbers; a number for a 0-dim "
              "tensor.\n\nSynchronizes with a GPU, in one copy."),
    DT_METHOD(copy, "__copy__", "A second tensor that shares the memory."),
    DT_METHOD(deepcopy, "__deepcopy__", "A copy on the same device."),
    DT_METHOD(reduce_ex, "__reduce_ex__",
              "Support for pickle: elements, dtype, shape and device."),
    DT_FUNCTION(rebuild, "_rebuild_tensor", "A tensor from its pickle."),
};

int dt_setup_extract(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
