#include "python/types/dtype.h"

#include "python/types/named.h"

static dt_dtype dtype_of(PyObject *self)
{
    return (dt_dtype)dt_named_value(self);
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

static PyGetSetDef properties[] = {
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "Whether it is a floating type.",
     NULL},
    {"is_complex", get_is_complex, NULL, "False: there are no complex types.", NULL},
    {"is_signed", get_is_signed, NULL, "Whether it can represent negative values.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
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
    dt_py.dtype_type =
        dt_named_type(module, "pydevtensor.dtype",
                      "The type of a tensor's elements, such as float32 or int64.\n\n"
                      ">>> torch.float32.itemsize, torch.float32.is_floating_point\n"
                      "(4, True)",
                      properties);
    if (!dt_py.dtype_type)
        return -1;
    for (int d = 0; d < DT_NDTYPES; d++) {
        dt_py.dtypes[d] = dt_named_new(module, dt_py.dtype_type, dt_dtypes[d].name, d);
        if (!dt_py.dtypes[d] ||
            dt_add_object(module, dt_dtypes[d].alias, dt_py.dtypes[d]) < 0)
            return -1;
    }
    return 0;
}
