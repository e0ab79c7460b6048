/* Numbers of Python as C values, and back. */
#include "python/arguments.h"
#include "tensor/ops/complex.h"

PyObject *dt_element_to_python(dt_dtype dtype, const void *bytes)
{
    const dt_scalar real = dt_element_to_scalar(dtype, bytes);
    return dt_dtype_is_complex(dtype)
               ? PyComplex_FromDoubles(real.f, dt_element_imag(dtype, bytes))
               : dt_scalar_to_python(real);
}

bool dt_is_complex_number(PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;
    if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) /* nearly always */
        return false;
    return PyComplex_Check(value) ||
           (*name == 'n' && !strncmp(name, "numpy.complex", 13));
}

PyObject *dt_complex_from_python(PyObject *value, dt_dtype dtype)
{
    const Py_complex z = PyComplex_AsCComplex(value);
    if (z.real == -1 && PyErr_Occurred())
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(
        out, dt_complex_number("complex", &out->tensor, dtype, z.real, z.imag));
}

PyObject *dt_scalar_to_python(dt_scalar scalar)
{
    if (scalar.kind == DT_KIND_FLOAT)
        return PyFloat_FromDouble(scalar.f);
    if (scalar.kind == DT_KIND_BOOL)
        return PyBool_FromLong(scalar.i != 0);
    return PyLong_FromLongLong(scalar.i);
}

static int from_long(PyObject *value, dt_scalar *out)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
        return DT_SET_ERROR(
            PyExc_OverflowError,
            "an int beyond 64 bits cannot be a tensor's element; use a float");
    if (number == -1 && PyErr_Occurred())
        return -1;
    *out = dt_scalar_int(number);
    return 1;
}

static int from_other_number(PyObject *value, dt_scalar *out)
{
    PyTypeObject *type = Py_TYPE(value);
    PyNumberMethods *number = type->tp_as_number;
    if (dt_is_complex_number(value))
        return DT_SET_ERROR(
            PyExc_TypeError,
            "the number %R is complex, and a real one is needed here; give its .real",
            value);
    if (!number || PyUnicode_Check(value) || PyBytes_Check(value) ||
        dt_tensor_check(value) ||
        (type->tp_as_sequence && type->tp_as_sequence->sq_length) ||
        (type->tp_as_mapping && type->tp_as_mapping->mp_length))
        return 0;
    if (!strcmp(type->tp_name, "numpy.bool") || !strcmp(type->tp_name, "numpy.bool_")) {
        int truth = PyObject_IsTrue(value);
        if (truth < 0)
            return -1;
        *out = dt_scalar_bool(truth);
        return 1;
    }
    if (number->nb_index) {
        PyObject *whole = PyNumber_Index(value);
        if (!whole)
            return -1;
        int status = from_long(whole, out);
        Py_DECREF(whole);
        return status;
    }
    if (number->nb_float) {
        double real = PyFloat_AsDouble(value);
        if (real == -1 && PyErr_Occurred())
            return -1;
        *out = dt_scalar_float(real);
        return 1;
    }
    return 0;
}

int dt_scalar_from_python(PyObject *value, dt_scalar *out)
{
    if (PyLong_Check(value)) {
        if (!PyBool_Check(value))
            return from_long(value, out);
        *out = dt_scalar_bool(value == Py_True);
        return 1;
    }
    if (PyFloat_Check(value)) {
        *out = dt_scalar_float(PyFloat_AS_DOUBLE(value));
        return 1;
    }
    return from_other_number(value, out);
}

int dt_int_from_python(PyObject *value, int64_t *out)
{
    if (PyLong_Check(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow)
            return DT_SET_ERROR(PyExc_OverflowError,
                                "%R is beyond 64 bits; give a smaller int", value);
        *out = number;
        return number == -1 && PyErr_Occurred() ? -1 : 1;
    }
    if (dt_tensor_check(value)) {
        const dt_tensor *t = dt_tensor_of(value);
        if (t->numel != 1 || dt_dtype_is_inexact((dt_dtype)t->dtype))
            return 0;
        dt_scalar scalar;
        if (dt_python_item("int", t, &scalar) < 0)
            return -1;
        *out = scalar.i;
        return 1;
    }
    if (!PyIndex_Check(value))
        return 0;
    PyObject *whole = PyNumber_Index(value);
    if (!whole) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear(); /* arrays have __index__ and refuse at run time */
        return 0;
    }
    int status = dt_int_from_python(whole, out);
    Py_DECREF(whole);
    return status;
}
