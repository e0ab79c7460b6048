#include "python/types/named.h"

static PyObject *named_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", ((dt_named_object *)self)->name);
}

static PyObject *named_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(((dt_named_object *)self)->name);
}

static PyMethodDef methods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject *dt_named_type(PyObject *module, const char *name, const char *doc,
                            PyGetSetDef *properties)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        {Py_tp_repr, named_repr},
        {Py_tp_methods, methods},
        {properties ? Py_tp_getset : 0, properties},
        {0, NULL},
    };
    PyType_Spec spec = {
        .name = name,
        .basicsize = sizeof(dt_named_object),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return dt_add_type(module, &spec, NULL);
}

PyObject *dt_named_new(PyObject *module, PyTypeObject *type, const char *name,
                       int value)
{
    PyObject *object = type->tp_alloc(type, 0);
    if (!object)
        return NULL;
    ((dt_named_object *)object)->name = name;
    ((dt_named_object *)object)->value = value;
    if (dt_add_object(module, name, object) < 0)
        Py_CLEAR(object);
    return object;
}
