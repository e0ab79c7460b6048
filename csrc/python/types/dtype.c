#include "python/types/dtype.h"

static dt_dtype dtype_of(PyObject *self)
{
    return ((dt_dtype_object *)self)->dtype;
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", dt_dtype_name(dtype_of(self)));
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    /* Pickles a singleton as the name of the module's attribute. */
    return PyUnicode_FromString(dt_dtype_name(dtype_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(dt_dtype_size(dtype_of(self)));
}

static PyObject *get_is_floating_point(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(dt_dtype_is_float(dtype_of(self)));
}

static PyObject *get_is_complex(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_FALSE;
}

static PyObject *get_is_signed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(dt_dtype_is_signed(dtype_of(self)));
}

static PyObject *get_module(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("pydevtensor");
}

static PyMethodDef methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "Whether it is a float type.",
     NULL},
    {"is_complex", get_is_complex, NULL, "False: there are no complex types.", NULL},
    {"is_signed", get_is_signed, NULL, "Whether it has negative values.", NULL},
    {"__module__", get_module, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The type of a tensor's elements, such as float32 or int64.\n\n"
                ">>> torch.float32.itemsize, torch.float32.is_floating_point\n"
                "(4, True)"},
    {Py_tp_repr, dtype_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pydevtensor.dtype",
    .basicsize = sizeof(dt_dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

bool dt_dtype_from_python(PyObject *value, dt_dtype *out)
{
    if (dt_dtype_check(value))
        *out = dtype_of(value);
    else if (value == (PyObject *)&PyFloat_Type)
        *out = DT_FLOAT64;
    else if (value == (PyObject *)&PyLong_Type)
        *out = DT_INT64;
    else if (value == (PyObject *)&PyBool_Type)
        *out = DT_BOOL;
    else
        return false;
    return true;
}

int dt_setup_dtype_type(PyObject *module)
{
    dt_py.dtype_type = dt_add_type(module, &spec, NULL);
    if (!dt_py.dtype_type)
        return -1;
    for (int d = 0; d < DT_NDTYPES; d++) {
        PyObject *object = dt_py.dtype_type->tp_alloc(dt_py.dtype_type, 0);
        if (!object)
            return -1;
        ((dt_dtype_object *)object)->dtype = (dt_dtype)d;
        dt_py.dtypes[d] = object;
        if (dt_add_object(module, dt_dtypes[d].name, object) < 0 ||
            dt_add_object(module, dt_dtypes[d].alias, object) < 0)
            return -1;
    }
    return 0;
}
