/* Named singletons: element types, memory formats and torch.strided. Each has a repr, and a
 * pickle that is the name of the module's attribute. */
#include "python/types/dtype.h"

typedef struct named_object {
    PyObject_HEAD const char *name; /* a literal */
    int value;
} named_object;

static PyTypeObject *format_type, *layout_type;
static PyObject *strided;

static named_object *named_of(PyObject *self)
{
    return (named_object *)self;
}

static PyObject *named_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", named_of(self)->name);
}

static PyObject *named_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyUnicode_FromString(named_of(self)->name);
}

static PyMethodDef methods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* Adds a type of singletons to the module, with properties of its own or NULL. */
static PyTypeObject *add_named_type(PyObject *module, const char *name, const char *doc,
                                    PyGetSetDef *properties)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        {Py_tp_repr, named_repr},
        {Py_tp_methods, methods},
        {properties ? Py_tp_getset : 0, properties},
        {0, NULL},
    };
    return dt_add_type(module, name, sizeof(named_object),
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, NULL,
                       slots);
}

/* Adds a singleton to the module. One reference that is never dropped. */
static PyObject *add_named(PyObject *module, PyTypeObject *type, const char *name,
                           int value)
{
    PyObject *object = type->tp_alloc(type, 0);
    if (!object)
        return NULL;
    named_of(object)->name = name;
    named_of(object)->value = value;
    if (dt_add_object(module, name, object) < 0)
        Py_CLEAR(object);
    return object;
}

/* --- dtype --- */

#define GETTER(NAME, result)                                                           \
    static PyObject *get_##NAME(PyObject *self, void *Py_UNUSED(context))              \
    {                                                                                  \
        dt_dtype dtype = (dt_dtype)named_of(self)->value;                              \
        return result;                                                                 \
    }
GETTER(itemsize, PyLong_FromSize_t(dt_dtype_size(dtype)))
GETTER(is_floating_point, PyBool_FromLong(dt_dtype_is_float(dtype)))
GETTER(is_complex, PyBool_FromLong(dt_dtype_kind(dtype) > DT_KIND_FLOAT))
GETTER(is_signed, PyBool_FromLong(dt_dtype_is_signed(dtype)))
#undef GETTER

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
        *out = (dt_dtype)named_of(value)->value;
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

/* --- layout and memory_format --- */

PyObject *dt_strided(void)
{
    return Py_NewRef(strided);
}

bool dt_layout_object_check(PyObject *value)
{
    return Py_TYPE(value) == layout_type;
}

bool dt_format_object_check(PyObject *value)
{
    return Py_TYPE(value) == format_type;
}

int dt_take_layout(const dt_args *args, int i)
{
    return dt_given(args, i) && !dt_layout_object_check(args->slots[i])
               ? dt_argument_error(args, i)
               : 0;
}

int dt_take_format(const dt_args *args, int i, dt_format *out)
{
    if (!dt_given(args, i))
        return 0;
    if (!dt_format_object_check(args->slots[i]))
        return dt_argument_error(args, i);
    *out = (dt_format)named_of(args->slots[i])->value;
    return 0;
}

int dt_setup_dtype_type(PyObject *module)
{
    dt_py.dtype_type =
        add_named_type(module, "pydevtensor.dtype",
                       "The type of a tensor's elements, such as float32 or int64.\n\n"
                       ">>> torch.float32.itemsize, torch.float32.is_floating_point\n"
                       "(4, True)",
                       properties);
    format_type = add_named_type(module, "pydevtensor.memory_format",
                                 "The order of a tensor's dimensions in memory.\n\n"
                                 ">>> torch.zeros(2, 3, 4, 5).contiguous("
                                 "memory_format=torch.channels_last).stride()\n"
                                 "(60, 1, 15, 3)",
                                 NULL);
    layout_type = add_named_type(module, "pydevtensor.layout",
                                 "How a tensor stores its elements: always "
                                 "torch.strided.\n\n"
                                 ">>> torch.ones(2).layout\n"
                                 "torch.strided",
                                 NULL);
    if (!dt_py.dtype_type || !format_type || !layout_type)
        return -1;
    for (int d = 0; d < DT_NDTYPES; d++) {
        dt_py.dtypes[d] = add_named(module, dt_py.dtype_type, dt_dtypes[d].name, d);
        if (!dt_py.dtypes[d] ||
            dt_add_object(module, dt_dtypes[d].alias, dt_py.dtypes[d]) < 0)
            return -1;
    }
#define FORMAT(ID, name)                                                               \
    if (!add_named(module, format_type, #name, DT_FORMAT_##ID))                        \
        return -1;
    DT_FORMATS(FORMAT)
#undef FORMAT
    strided = add_named(module, layout_type, "strided", 0);
    return strided ? 0 : -1;
}
