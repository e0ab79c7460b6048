#include "python/types/device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "python/arguments.h"

static dt_device named_of(PyObject *self)
{
    return ((dt_device_object *)self)->named;
}

static const char *type_name(dt_device named)
{
    return dt_device_rows[(int)named.type]->name;
}

/* There is one object for each device, compared by identity: by type, and index from -1. */
static PyObject *devices[DT_MAX_DEVICE_TYPES][INT8_MAX + 2];

PyObject *dt_device_object_new(dt_device named)
{
    PyObject **slot = &devices[(int)named.type][named.index + 1];
    if (!*slot) {
        *slot = dt_py.device_type->tp_alloc(dt_py.device_type, 0);
        if (!*slot)
            return NULL;
        ((dt_device_object *)*slot)->named = named;
    }
    return Py_NewRef(*slot);
}

PyObject *dt_device_object_of(dt_device device)
{
    if (dt_device_is_cpu(device))
        return Py_NewRef(dt_py.cpu);
    if (dt_device_is_single(device))
        device.index = -1;
    return dt_device_object_new(device);
}

/* --- conversion --- */

/* Reads "cpu" or "cuda:1"; -1 where it is neither. */
static int parse(const char *text, dt_device *out)
{
    size_t length = 0;
    while (text[length] && text[length] != ':')
        length++;
    const int type = dt_device_type_find(text, length);
    long index = -1;
    if (type < 0)
        return -1;
    if (text[length]) {
        const char *digits = text + length + 1;
        char *end;
        if (!isdigit((unsigned char)digits[0]) || (digits[0] == '0' && digits[1]))
            return -1;
        index = strtol(digits, &end, 10);
        if (*end || index > INT8_MAX)
            return -1;
    }
    *out = dt_device_make((dt_device_type)type, (int)index);
    return 0;
}

int dt_device_type_from_python(const char *function, const char *name,
                               dt_device_type *out)
{
    const int type = dt_device_type_find(name, strlen(name));
    if (type < 0)
        return DT_SET_ERROR(PyExc_RuntimeError,
                            "%s(): '%s' is not a type of devices; give 'cpu' or '%s'",
                            function, name, dt_device_rows[DT_ACCELERATOR]->name);
    *out = (dt_device_type)type;
    return 0;
}

int dt_device_from_python(const char *function, const char *argument, PyObject *value,
                          dt_device *out)
{
    if (dt_device_object_check(value)) {
        *out = named_of(value);
        return 0;
    }
    if (PyUnicode_Check(value)) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(value, &length);
        if (text && strlen(text) == (size_t)length && parse(text, out) == 0)
            return 0;
        for (int i = 0; text && i < DT_NDTYPES; i++)
            if (!strcmp(text, dt_dtype_name((dt_dtype)i)))
                return DT_SET_ERROR(
                    PyExc_RuntimeError,
                    "%s(): %R is the name of a dtype and not a device; give "
                    "torch.%s for the dtype",
                    function, value, text);
        return DT_SET_ERROR(
            PyExc_RuntimeError,
            "%s(): %R is not a device; give 'cpu', 'cuda', or 'cuda:0', 'cuda:1', ...",
            function, value);
    }
    if (PyLong_Check(value) && !PyBool_Check(value)) {
        int overflow;
        long long index = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || index < 0 || index > INT8_MAX)
            return DT_SET_ERROR(PyExc_RuntimeError,
                                "%s(): %R is not a device index; indices start at 0",
                                function, value);
        *out = dt_device_make(DT_ACCELERATOR, (int)index);
        if (!dt_device_count(DT_ACCELERATOR) && dt_device_check(*out) < 0) {
            dt_fail_prefix("%s(): ", function);
            return dt_raise_status();
        }
        return 0;
    }
    char text[DT_DESCRIBE_TEXT];
    return DT_SET_ERROR(
        PyExc_TypeError,
        "%s(): %s is %s; give a device, such as 'cpu' or 'cuda:0', or an int", function,
        argument, dt_describe(value, text, sizeof text));
}

int dt_device_resolve(dt_device named, dt_device *out)
{
    if (dt_device_is_single(named))
        named.index = 0; /* there is one, whatever its index */
    if (!dt_device_is_cpu(named)) {
        if (named.index < 0)
            named.index =
                (signed char)(named.type == DT_ACCELERATOR ? dt_python_current_device()
                                                           : 0);
        int status;
        /* The first use of a device type loads its library and asks the driver. */
        DT_WAIT(status, dt_device_check(named));
        if (status < 0)
            return dt_raise_status();
    }
    *out = named;
    return 0;
}

int dt_take_accelerator(const char *function, PyObject *value, dt_device *out)
{
    const dt_device_row *row = dt_device_rows[DT_ACCELERATOR];
    *out = dt_device_make(DT_ACCELERATOR, -1);
    if (value != Py_None && dt_device_from_python(function, "device", value, out) < 0)
        return -1;
    if (out->type != DT_ACCELERATOR)
        return DT_SET_ERROR(
            PyExc_ValueError,
            "%s(): %R is not a %s device; give '%s', '%s:0' or an index", function,
            value, row->title, row->name, row->name);
    return dt_device_resolve(*out, out);
}

/* --- the type --- */

static PyObject *device_new(PyTypeObject *Py_UNUSED(type), PyObject *args,
                            PyObject *kwargs)
{
    static char *words[] = {"type", "index", NULL};
    static char *old_words[] = {"device", NULL};
    PyObject *what = NULL, *index = NULL;
    bool old = kwargs && PyDict_GET_SIZE(kwargs) == 1 &&
               PyDict_GetItemString(kwargs, "device");
    if (old ? !PyArg_ParseTupleAndKeywords(args, kwargs, "O:device", old_words, &what)
            : !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", words, &what,
                                           &index))
        return NULL;
    dt_device named;
    if (dt_device_from_python("device", "type", what, &named) < 0)
        return NULL;
    if (!index || index == Py_None)
        return dt_device_object_new(named);
    int64_t number;
    int status = dt_int_from_python(index, &number);
    char text[DT_DESCRIBE_TEXT];
    if (status <= 0) {
        if (!status)
            PyErr_Format(PyExc_TypeError, "device(): index is %s; give an int",
                         dt_describe(index, text, sizeof text));
        return NULL;
    }
    if (!PyUnicode_Check(what) || named.index >= 0)
        return PyErr_Format(
            PyExc_RuntimeError,
            "device(): %R has an index already, and index is %lld; give one of them",
            what, (long long)number);
    if (number < 0 || number > INT8_MAX)
        return PyErr_Format(
            PyExc_RuntimeError,
            "device(): index %lld is not a device index; indices start at 0",
            (long long)number);
    named.index = (signed char)number;
    return dt_device_object_new(named);
}

static PyObject *device_str(PyObject *self)
{
    dt_device named = named_of(self);
    if (named.index < 0)
        return PyUnicode_FromString(type_name(named));
    return PyUnicode_FromFormat("%s:%d", type_name(named), named.index);
}

static PyObject *device_repr(PyObject *self)
{
    dt_device named = named_of(self);
    const char *name = type_name(named);
    if (named.index < 0)
        return PyUnicode_FromFormat("device(type='%s')", name);
    return PyUnicode_FromFormat("device(type='%s', index=%d)", name, named.index);
}

static PyObject *device_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    dt_device named = named_of(self);
    const char *name = type_name(named);
    if (named.index < 0)
        return Py_BuildValue("O(s)", dt_py.device_type, name);
    return Py_BuildValue("O(si)", dt_py.device_type, name, named.index);
}

static PyObject *device_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    if (dt_default_device_push(named_of(self)) < 0)
        return NULL;
    return Py_NewRef(self);
}

static PyObject *device_exit(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
    dt_default_device_pop();
    Py_RETURN_NONE;
}

static PyObject *get_type(PyObject *self, void *Py_UNUSED(unused))
{
    return PyUnicode_FromString(type_name(named_of(self)));
}

static PyObject *get_index(PyObject *self, void *Py_UNUSED(unused))
{
    int index = named_of(self).index;
    if (index < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(index);
}

static PyMethodDef methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", device_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"type", get_type, NULL, "'cpu', 'cuda' or 'meta'.", NULL},
    {"index", get_index, NULL, "The device's index, or None if none was given.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "device(type, index=None)\n--\n\nThe device of a tensor: device('cpu'), "
     "device('cuda:1'), device('cuda', 1) or\ndevice(1). Creating one needs no GPU; "
     "using one does. In a with statement it is the device of\ntensors that functions "
     "such as ones() create.\n\nEqual and ordered by type and index; type is a str, "
     "index an int or None.\n\n>>> torch.ones(2, "
     "device=torch.device('cpu')).device\ndevice(type='cpu')\n>>> "
     "torch.device('cuda:1').index\n1"},
    {Py_tp_new, device_new},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

int dt_setup_device_type(PyObject *module)
{
    dt_py.device_type =
        dt_add_type(module, "pydevtensor.device", sizeof(dt_device_object),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, NULL, slots);
    if (!dt_py.device_type)
        return -1;
    dt_py.cpu = dt_device_object_new(dt_device_make(DT_CPU, -1));
    return dt_py.cpu ? 0 : -1;
}
