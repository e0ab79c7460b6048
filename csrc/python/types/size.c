#include "python/types/tensor.h"

/* An empty Size of `count` items. NULL: no memory. */
static PyObject *allocate(PyTypeObject *type, Py_ssize_t count)
{
    PyObject *size = type->tp_alloc(type, count);
#if PY_VERSION_HEX >= 0x030e0000
    if (size)
        ((PyTupleObject *)size)->ob_hash = -1; /* not computed yet */
#endif
    return size;
}

/* Fills a new tuple; on failure drops it. */
static PyObject *fill(PyObject *tuple, int count, const int64_t *values)
{
    if (!tuple)
        return NULL;
    for (int i = 0; i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

PyObject *dt_size_new(int ndim, const int64_t *sizes)
{
    return fill(allocate(dt_py.size_type, ndim), ndim, sizes);
}

PyObject *dt_int_tuple_new(int count, const int64_t *values)
{
    return fill(PyTuple_New(count), count, values);
}

/* Converts a tuple to a Size. Steals tuple; NULL passes through. */
static PyObject *from_tuple(PyObject *tuple)
{
    if (!tuple || !PyTuple_Check(tuple) || Py_IS_TYPE(tuple, dt_py.size_type))
        return tuple;
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject *size = allocate(dt_py.size_type, count);
    for (Py_ssize_t i = 0; size && i < count; i++)
        PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    Py_DECREF(tuple);
    return size;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *given = PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs);
    if (!given)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(given);
    PyObject *size = allocate(type, count);
    for (Py_ssize_t i = 0; size && i < count; i++) {
        PyObject *number = PyNumber_Index(PyTuple_GET_ITEM(given, i));
        if (!number) {
            PyErr_Format(
                PyExc_TypeError,
                "Size(): item %zd is of type %s; give ints, as in Size([2, 3])", i,
                Py_TYPE(PyTuple_GET_ITEM(given, i))->tp_name);
            Py_CLEAR(size);
            break;
        }
        PyTuple_SET_ITEM(size, i, number);
    }
    Py_DECREF(given);
    return size;
}

static PyObject *size_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self);
    PyObject *text = list ? PyUnicode_FromFormat("torch.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *size_numel(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); i++) {
        PyObject *next = PyNumber_Multiply(product, PyTuple_GET_ITEM(self, i));
        Py_DECREF(product);
        product = next;
    }
    return product;
}

static PyObject *size_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *list = PySequence_List(self);
    return list ? Py_BuildValue("O(N)", dt_py.size_type, list) : NULL;
}

static PyObject *size_concat(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(b))
        return PyErr_Format(
            PyExc_TypeError,
            "Size + %s: only tuples can be appended; convert it with tuple()",
            Py_TYPE(b)->tp_name);
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}

/* (1,) + size: the subclass on the right handles the addition. */
static PyObject *size_add(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b))
        Py_RETURN_NOTIMPLEMENTED;
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}

static PyObject *size_repeat(PyObject *self, Py_ssize_t times)
{
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, times));
}

static PyObject *size_subscript(PyObject *self, PyObject *key)
{
    PyObject *item = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    return PySlice_Check(key) ? from_tuple(item) : item;
}

static PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS,
     "numel($self)\n--\n\nThe number of elements of a tensor of this shape.\n\n"
     ">>> torch.Size([2, 3]).numel()\n6"},
    {"__reduce__", size_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Size(iterable=())\n--\n\nThe shape of a tensor: a tuple of ints, those of "
     "iterable.\n\nTypeError for others.\n\n"
     ">>> torch.zeros(2, 3).shape + (4,)\n"
     "torch.Size([2, 3, 4])"},
    {Py_tp_new, size_new},
    {Py_tp_repr, size_repr},
    {Py_tp_methods, methods},
    {Py_sq_concat, size_concat},
    {Py_nb_add, size_add},
    {Py_sq_repeat, size_repeat},
    {Py_mp_subscript, size_subscript},
    {0, NULL},
};

int dt_setup_size_type(PyObject *module)
{
    dt_py.size_type = dt_add_type(module, "pydevtensor.Size", 0, Py_TPFLAGS_DEFAULT,
                                  &PyTuple_Type, slots);
    return dt_py.size_type ? 0 : -1;
}
