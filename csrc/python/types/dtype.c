/* Named singletons: element types, memory formats and torch.strided. Each has a repr, and a
 * pickle that is the name of the module's attribute. */
#include "python/types/dtype.h"

#include <string.h>

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

#define REDUCE {"__reduce__", named_reduce, METH_NOARGS, NULL}
static PyMethodDef methods[] = {
    REDUCE,
    {NULL, NULL, 0, NULL},
};

/* Adds a type of singletons to the module, with properties of its own or NULL. */
static PyTypeObject *add_named_type(PyObject *module, const char *name, const char *doc,
                                    PyGetSetDef *properties, PyMethodDef *own)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        {Py_tp_repr, named_repr},
        {Py_tp_methods, own},
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

static PyObject *to_real(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return dt_dtype_check(self)
               ? dt_dtype_object_get(dt_dtype_part((dt_dtype)named_of(self)->value))
               : Py_NewRef(self);
}

static PyObject *to_complex(PyObject *self, PyObject *Py_UNUSED(unused))
{
    const dt_dtype dtype = (dt_dtype)named_of(self)->value;
    if (!dt_dtype_check(self) || !dt_dtype_is_inexact(dtype) || dtype == DT_FLOAT16)
        return PyErr_Format(PyExc_RuntimeError,
                            "to_complex: no complex type has parts of %R here; take "
                            "one of bfloat16, float32 or float64",
                            self);
    return dt_dtype_object_get(dt_dtype_to_complex(dtype));
}

static PyMethodDef dtype_methods[] = {
    REDUCE,
    {"to_real", to_real, METH_NOARGS,
     "to_real($self, /)\n--\n\n"
     "The type of the parts of a complex type; another type itself.\n\n"
     ">>> torch.complex64.to_real()\ntorch.float32"},
    {"to_complex", to_complex, METH_NOARGS,
     "to_complex($self, /)\n--\n\n"
     "The complex type with parts of this one; RuntimeError where there is none.\n\n"
     ">>> torch.float64.to_complex()\ntorch.complex128"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "Whether it is a floating type.",
     NULL},
    {"is_complex", get_is_complex, NULL, "Whether it is a complex type.", NULL},
    {"is_signed", get_is_signed, NULL, "Whether it can represent negative values.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* The types of PyTorch that no Tensor here has: values to compare, to name and to pickle,
 * of a subtype of dtype, so that a check for a dtype that can be used is one comparison.
 * kind: b, bits; c, complex; f, floating; u, unsigned floating; i, integer; n, unsigned
 * integer; q, quantized. */
static const struct absent_dtype {
    char name[18], alias[8], kind;
    uint8_t size;
} absent[] = {
    {"complex32", "chalf", 'c', 4},
    {"float8_e4m3fn", "", 'f', 1},
    {"float8_e4m3fnuz", "", 'f', 1},
    {"float8_e5m2", "", 'f', 1},
    {"float8_e5m2fnuz", "", 'f', 1},
    {"float8_e8m0fnu", "", 'u', 1},
    {"float4_e2m1fn_x2", "", 'f', 1},
    {"uint16", "", 'n', 2},
    {"uint32", "", 'n', 4},
    {"uint64", "", 'n', 8},
#define SMALL(bits) {"int" #bits, "", 'i', 1}, {"uint" #bits, "", 'n', 1}
    {"uint1", "bit", 'n', 1},
    {"int1", "", 'i', 1},
    SMALL(2),
    SMALL(3),
    SMALL(4),
    SMALL(5),
    SMALL(6),
    SMALL(7),
#undef SMALL
    {"quint8", "", 'q', 1},
    {"qint8", "", 'q', 1},
    {"qint32", "", 'q', 4},
    {"quint4x2", "", 'q', 1},
    {"quint2x4", "", 'q', 1},
    {"bits1x8", "", 'b', 1},
    {"bits2x4", "", 'b', 1},
    {"bits4x2", "", 'b', 1},
    {"bits8", "", 'b', 1},
    {"bits16", "", 'b', 2},
};

static const struct absent_dtype *absent_of(PyObject *self)
{
    return &absent[named_of(self)->value];
}

static PyObject *get_absent_itemsize(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromLong(absent_of(self)->size);
}

/* context: the kinds for which the property is True. */
static PyObject *get_absent_is(PyObject *self, void *context)
{
    return PyBool_FromLong(strchr(context, absent_of(self)->kind) != NULL);
}

static PyObject *get_absent_is_signed(PyObject *self, void *Py_UNUSED(context))
{
    if (strchr("bq", absent_of(self)->kind)) /* PyTorch has no answer either */
        return PyErr_Format(PyExc_RuntimeError,
                            "torch.%s has no sign: its bits say what a scale or a "
                            "program makes of them",
                            named_of(self)->name);
    return get_absent_is(self, "cfi");
}

static PyGetSetDef absent_properties[] = {
    {"itemsize", get_absent_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", get_absent_is, NULL, "Whether it is a floating type.", "fu"},
    {"is_complex", get_absent_is, NULL, "Whether it is a complex type.", "c"},
    {"is_signed", get_absent_is_signed, NULL,
     "Whether it can represent negative values.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

bool dt_dtype_is_absent(PyObject *value)
{
    return PyObject_TypeCheck(value, dt_py.dtype_type) && !dt_dtype_check(value);
}

/* Adds the absent types to the module. */
static int add_absent(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, "The type of elements that no Tensor of pydevtensor has."},
        {Py_tp_getset, absent_properties},
        {0, NULL},
    };
    PyType_Spec spec = {"pydevtensor.dtype", sizeof(named_object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    dt_py.dtype_type->tp_flags |= Py_TPFLAGS_BASETYPE; /* for this subtype alone */
    DT_REF type = PyType_FromSpecWithBases(&spec, (PyObject *)dt_py.dtype_type);
    dt_py.dtype_type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
    for (size_t i = 0; type && i < sizeof absent / sizeof *absent; i++) {
        DT_REF added = add_named(module, (PyTypeObject *)type, absent[i].name, (int)i);
        if (!added ||
            (*absent[i].alias && dt_add_object(module, absent[i].alias, added) < 0))
            return -1;
    }
    return type ? 0 : -1;
}

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
    if (!dt_given(args, i) || args->slots[i] == strided)
        return 0;
    if (!dt_layout_object_check(args->slots[i]))
        return dt_argument_error(args, i);
    return DT_SET_ERROR(PyExc_NotImplementedError,
                        "%s(): layout is %R; give torch.strided, and convert what it "
                        "makes with to_sparse(), or use torch.sparse_coo_tensor()",
                        args->signature->name, args->slots[i]);
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
                       properties, dtype_methods);
    format_type = add_named_type(module, "pydevtensor.memory_format",
                                 "The order of a tensor's dimensions in memory.\n\n"
                                 ">>> torch.zeros(2, 3, 4, 5).contiguous("
                                 "memory_format=torch.channels_last).stride()\n"
                                 "(60, 1, 15, 3)",
                                 NULL, methods);
    layout_type = add_named_type(module, "pydevtensor.layout",
                                 "How a tensor stores its elements: "
                                 "torch.strided, or that of a sparse tensor.\n\n"
                                 ">>> torch.ones(2).layout\n"
                                 "torch.strided",
                                 NULL, methods);
    if (!dt_py.dtype_type || !format_type || !layout_type)
        return -1;
    for (int d = 0; d < DT_NDTYPES; d++) {
        dt_py.dtypes[d] = add_named(module, dt_py.dtype_type, dt_dtypes[d].name, d);
        if (!dt_py.dtypes[d] ||
            dt_add_object(module, dt_dtypes[d].alias, dt_py.dtypes[d]) < 0)
            return -1;
    }
    if (add_absent(module) < 0)
        return -1;
#define FORMAT(ID, name)                                                               \
    if (!add_named(module, format_type, #name, DT_FORMAT_##ID))                        \
        return -1;
    DT_FORMATS(FORMAT)
#undef FORMAT
    strided = add_named(module, layout_type, "strided", 0);
    return strided && add_named(module, layout_type, "sparse_coo", 1) &&
                   add_named(module, layout_type, "sparse_csr", 2) &&
                   add_named(module, layout_type, "sparse_csc", 3) &&
                   /* for programs that ask whether a tensor's layout is one of them */
                   add_named(module, layout_type, "sparse_bsr", 4) &&
                   add_named(module, layout_type, "sparse_bsc", 5) &&
                   add_named(module, layout_type, "jagged", 6)
               ? 0
               : -1;
}
