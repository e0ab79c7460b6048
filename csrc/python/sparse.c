/* Calls with sparse tensors, which are objects of a class in Python (pydevtensor/sparse):
 * no function here takes one for a Tensor, so the call fails, and is made there. */
#include "autograd/sparse_gradient.h"
#include "python/functions.h"
#include "python/history.h"
#include "python/types/dtype.h"

bool dt_sparse_check(PyObject *value)
{
    return (PyObject *)Py_TYPE(value) == dt_py.sparse_type;
}

/* Whether a value is sparse, or one of a tuple or list. */
static bool has_sparse(PyObject *value)
{
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return dt_sparse_check(value);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
        if (dt_sparse_check(PySequence_Fast_GET_ITEM(value, i)))
            return true;
    return false;
}

#define CALLS "pydevtensor.sparse._calls"

PyObject *dt_call_sparse(const char *name, const char *id, DT_CALL_PARAMETERS)
{
    Py_ssize_t nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    bool found = false;
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyObject *made =
            dt_override_failed(self ? name : id, self, values, count, kwnames);
        if (made != Py_NotImplemented)
            return made;
    }
    /* zeros(2, 3, layout=torch.sparse_coo), which dt_take_layout refuses. */
    bool layout = name && (!strcmp(name, "zeros") || !strcmp(name, "empty"));
    for (Py_ssize_t i = 0; i < count + nkeywords && !found; i++)
        found = has_sparse(values[i]) || (layout && dt_layout_object_check(values[i]));
    if (!found || !name ||
        !PyErr_ExceptionMatches(layout ? PyExc_NotImplementedError : PyExc_TypeError))
        return NULL;
    PyErr_Clear();
    return dt_call_whole(CALLS, "call", PyUnicode_FromString(name), self, values, count,
                         kwnames);
}

/* --- gradients --- */

int dt_sparse_take(dt_tensor *out, PyObject *sparse, dt_device *device)
{
    int64_t shape[DT_MAX_NDIM];
    DT_REF values = PyObject_GetAttrString(sparse, "_data");
    DT_REF size = values ? PyObject_GetAttrString(sparse, "shape") : NULL;
    if (!size || !PyTuple_Check(size) || !dt_tensor_check(values))
        return DT_SET_ERROR(PyExc_TypeError,
                            "grad: a sparse tensor without its parts; make it anew");
    const dt_tensor *t = dt_tensor_of(values);
    int ndim = (int)PyTuple_GET_SIZE(size);
    for (int d = 0; d < ndim; d++)
        shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(size, d));
    if (device)
        *device = dt_tensor_device(t);
    return dt_sparse_gradient(out, Py_NewRef(sparse), (dt_dtype)t->dtype, ndim, shape) <
                   0
               ? dt_raise_status()
               : 0;
}

/* Puts the result of a function of pydevtensor.sparse._calls into `into`. */
static int replace(dt_tensor *into, const char *method, const dt_tensor *other,
                   bool recorded)
{
    bool yielded = dt_gil_yield(false);
    DT_REF object = dt_tensor_object_alias(into);
    DT_REF second = object && other ? dt_tensor_object_alias(other) : NULL;
    DT_REF made = !object || (other && !second) ? NULL
                  : other
                      ? dt_python_call(CALLS, method, "(OOi)", object, second, recorded)
                      : dt_python_call(CALLS, method, "(O)", object);
    DT_LOCAL(found);
    int status = -1;
    if (made && dt_sparse_check(made)) {
        status = dt_sparse_take(&found, made, NULL);
    } else if (made && dt_tensor_check(made)) {
        dt_variable_alias(&found, dt_tensor_of(made));
        status = 0;
    }
    if (!status)
        dt_tensor_move(into, &found);
    dt_gil_yield(yielded);
    return status < 0 ? dt_fail_in_python() : 0;
}

static int add(dt_tensor *sum, const dt_tensor *gradient, bool recorded)
{
    return replace(sum, "add_gradient", gradient, recorded);
}

static int make_dense(dt_tensor *gradient)
{
    return replace(gradient, "dense_gradient", NULL, false);
}

static PyObject *set_sparse_type(PyObject *Py_UNUSED(self), PyObject *type)
{
    dt_sparse = (dt_sparse_functions){add, make_dense, dt_object_free};
    dt_py.sparse_type = Py_NewRef(type);
    Py_RETURN_NONE;
}

int dt_setup_sparse(PyObject *module)
{
    static PyMethodDef own[] = {
        {"_set_sparse_type", set_sparse_type, METH_O,
         "_set_sparse_type(type, /)\n--\n\nSays which class sparse tensors are of."},
        {NULL, NULL, 0, NULL},
    };
    return PyModule_AddFunctions(module, own);
}
