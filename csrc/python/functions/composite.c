/* Public functions that are written in Python: the modules of pydevtensor/_functions.
 *
 * Each is an object with a signature that calls are bound by, as functions in C are. The
 * arguments are checked and converted here; the body is imported at the first call. */
#include <stddef.h>
#include <string.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/device.h"
#include "python/types/results.h"
#include "python/types/size.h"

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY   READONLY
#endif

typedef struct composite {
    PyObject_HEAD vectorcallfunc vectorcall;
    dt_signature signature;
    PyObject *name, *module, *text, *doc; /* str */
    PyObject *body;                       /* NULL until the first call */
    PyObject *results; /* str, the names of two results: "(values, indices)"; or NULL */
    bool method;
    bool in_place; /* the result is copied into the first argument */
} composite;

/* [(name, signature, is a function, is a method), ...], for dt_composite_signatures. */
static PyObject *signatures;

static PyTypeObject *composite_type;

/* --- arguments --- */

/* The argument i as the body receives it (pydevtensor/_functions/types.py). NULL with an
 * exception set, also where it is not of its parameter's type. */
static PyObject *converted(const dt_args *args, int i)
{
    PyObject *given = args->slots[i];
    const dt_parameter *parameter = &args->signature->parameters[i];
    dt_tensor *tensor;
    dt_arg value;
    dt_scalar number;
    dt_device device;
    double real;
    const char *text;
    int64_t integer, sizes[DT_MAX_NDIM];
    int count, status = 0;
    bool flag;
    if (given == Py_None && parameter->none)
        return Py_NewRef(given);
    switch (parameter->type) {
    case DT_PARAM_TENSOR:
        status = dt_take_tensor(args, i, &tensor);
        break;
    case DT_PARAM_VALUE:
        if (dt_take_value(args, i, &value) < 0)
            return NULL;
        return value.tensor ? Py_NewRef(given) : dt_scalar_to_python(value.scalar);
    case DT_PARAM_NUMBER:
        return dt_take_number(args, i, &number) < 0 ? NULL
                                                    : dt_scalar_to_python(number);
    case DT_PARAM_FLOAT:
        return dt_take_float(args, i, &real) < 0 ? NULL : PyFloat_FromDouble(real);
    case DT_PARAM_INT:
        return dt_take_int(args, i, &integer) < 0 ? NULL : PyLong_FromLongLong(integer);
    case DT_PARAM_BOOL:
        return dt_take_bool(args, i, &flag) < 0 ? NULL : PyBool_FromLong(flag);
    case DT_PARAM_STR:
        status = dt_take_str(args, i, &text);
        break;
    case DT_PARAM_DTYPE:
        return dt_take_dtype(args, i, &count) < 0 ? NULL
                                                  : Py_NewRef(dt_py.dtypes[count]);
    case DT_PARAM_DEVICE:
        return dt_take_device(args, i, &device) < 0 ? NULL
                                                    : dt_device_object_of(device);
    case DT_PARAM_DIMS:
        return dt_take_dims(args, i, &count, sizes) < 0
                   ? NULL
                   : dt_int_tuple_new(count, sizes);
    case DT_PARAM_SIZES:
        return dt_take_sizes(args, i, &count, sizes) < 0 ? NULL
                                                         : dt_size_new(count, sizes);
    default:
        break;
    }
    return status < 0 ? NULL : Py_NewRef(given);
}

/* The arguments of `*name` as a tuple, however they were given. */
static PyObject *converted_rest(const dt_args *args)
{
    int i = args->signature->rest;
    dt_tensor_list list;
    int64_t sizes[DT_MAX_NDIM];
    int count;
    PyObject *tuple;
    switch (args->signature->parameters[i].type) {
    case DT_PARAM_TENSORS:
        if (dt_take_tensors(args, i, &list) < 0)
            return NULL;
        tuple = PyTuple_New(list.count);
        for (Py_ssize_t k = 0; tuple && k < list.count; k++)
            PyTuple_SET_ITEM(tuple, k, Py_NewRef(list.objects[k]));
        dt_tensors_release(&list);
        return tuple;
    case DT_PARAM_SIZES:
        return dt_take_sizes(args, i, &count, sizes) < 0
                   ? NULL
                   : dt_int_tuple_new(count, sizes);
    default:
        if (args->slots[i])
            return PyTuple_Pack(1, args->slots[i]);
        tuple = PyTuple_New(args->nrest);
        for (Py_ssize_t k = 0; tuple && k < args->nrest; k++)
            PyTuple_SET_ITEM(tuple, k, Py_NewRef(args->rest[k]));
        return tuple;
    }
}

/* Calls the body with the arguments that were given, out aside. */
static PyObject *call_body(const composite *c, const dt_args *args)
{
    const dt_signature *s = args->signature;
    PyObject *few[DT_MAX_PARAMETERS], **values = few, *names = NULL, *result = NULL;
    PyObject *rest = s->rest >= 0 ? converted_rest(args) : NULL;
    Py_ssize_t nrest = rest ? PyTuple_GET_SIZE(rest) : 0;
    Py_ssize_t count = 0, keywords = 0;
    if (s->rest >= 0 && !rest)
        return NULL;
    if (nrest) {
        values = PyMem_New(PyObject *, (size_t)(s->count + nrest));
        if (!values) {
            PyErr_NoMemory();
            goto done;
        }
    }
    int i = 0;
    for (; i < s->positional && args->slots[i]; i++, count++)
        if (!(values[count] = converted(args, i)))
            goto done;
    for (Py_ssize_t k = 0; k < nrest; k++)
        values[count++] = Py_NewRef(PyTuple_GET_ITEM(rest, k));
    for (int k = i; k < s->count; k++)
        keywords += args->slots[k] && k != s->out && k != s->rest;
    if (keywords) {
        names = PyTuple_New(keywords);
        if (!names)
            goto done;
    }
    for (keywords = 0; i < s->count; i++) {
        if (!args->slots[i] || i == s->out || i == s->rest)
            continue;
        PyObject *value = converted(args, i);
        if (!value)
            goto done;
        values[count + keywords] = value;
        PyTuple_SET_ITEM(names, keywords++, Py_NewRef(s->names[i]));
    }
    result = PyObject_Vectorcall(c->body, values, (size_t)count, names);
done:
    for (Py_ssize_t k = 0; values && k < count + keywords; k++)
        Py_DECREF(values[k]);
    if (values != few)
        PyMem_Free(values);
    Py_XDECREF(names);
    Py_XDECREF(rest);
    return result;
}

/* --- calls --- */

/* Imports the function: the module's of the name in the signature, which of an in-place
 * method has no `_` at the end. */
static int load_body(composite *c)
{
    int length = (int)strlen(c->signature.name) - c->in_place;
    PyObject *path = PyUnicode_FromFormat("pydevtensor._functions.%U", c->module);
    PyObject *module = path ? PyImport_Import(path) : NULL;
    PyObject *name =
        module ? PyUnicode_FromStringAndSize(c->signature.name, length) : NULL;
    c->body = name ? PyObject_GetAttr(module, name) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(path);
    return c->body ? 0 : -1;
}

/* Copies the result into target. */
static PyObject *copied(const composite *c, PyObject *result, PyObject *target)
{
    int status = -1;
    if (!c->in_place && dt_recording(dt_tensor_of(result)))
        dt_output_refuse(c->signature.name);
    else
        status = dt_copy_to_output(c->signature.name, target, dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(target);
}

/* The two results by name. */
static PyObject *named(const composite *c, const dt_args *args, PyObject *pair)
{
    const char *names = PyUnicode_AsUTF8(c->results);
    PyTypeObject *type =
        names ? dt_named_tuple_type(args->signature->name, names) : NULL;
    dt_tensor_object *results[2];
    for (int i = 0; type && i < 2; i++)
        results[i] = (dt_tensor_object *)Py_NewRef(PyTuple_GET_ITEM(pair, i));
    Py_DECREF(pair);
    return type ? dt_finish_results(args, c->signature.out, type, 2, results) : NULL;
}

static PyObject *call(PyObject *self, PyObject *const *values, size_t nargsf,
                      PyObject *kwnames)
{
    composite *c = (composite *)self;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *receiver = NULL;
    dt_args args;
    dt_tensor *out;
    if (c->method) {
        if (!count)
            return PyErr_Format(PyExc_TypeError,
                                "%U() is a method; call it on a Tensor", c->name);
        receiver = *values++;
        count--;
    }
    if (dt_bind(&c->signature, &args, receiver, values, count, kwnames) < 0)
        return NULL;
    bool has_out = c->signature.out >= 0 && dt_given(&args, c->signature.out);
    if (has_out && !c->results && dt_take_tensor(&args, c->signature.out, &out) < 0)
        return NULL;
    if (!c->body && load_body(c) < 0)
        return NULL;
    PyObject *result = call_body(c, &args);
    if (result && c->results)
        return named(c, &args, result);
    if (result && (has_out || c->in_place))
        return copied(c, result, args.slots[has_out ? c->signature.out : 0]);
    return result;
}

/* --- the object --- */

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((composite *)self)->name);
}

static PyObject *get_qualname(PyObject *self, void *unused)
{
    composite *c = (composite *)self;
    (void)unused;
    return PyUnicode_FromFormat(c->method ? "Tensor.%U" : "%U", c->name);
}

static PyObject *get_module(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("pydevtensor");
}

static PyObject *get_doc(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((composite *)self)->doc);
}

/* What inspect.signature reads: the parameters without their types. */
static PyObject *get_text_signature(PyObject *self, void *unused)
{
    composite *c = (composite *)self;
    (void)unused;
    char *text = dt_signature_doc(c->signature.text, "", c->method, "");
    PyObject *signature =
        text ? PyUnicode_FromStringAndSize(text, strstr(text, "\n--") - text) : NULL;
    PyMem_Free(text);
    return signature;
}

static PyObject *show(PyObject *self)
{
    composite *c = (composite *)self;
    return PyUnicode_FromFormat("<%s %U of pydevtensor>",
                                c->method ? "method" : "function", c->name);
}

/* Methods bind to their tensor; functions do not, as built-in ones. */
static PyObject *bind(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    if (!((composite *)self)->method || !object)
        return Py_NewRef(self);
    return PyMethod_New(self, object);
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_qualname(self, NULL);
}

static void dealloc(PyObject *self)
{
    composite *c = (composite *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(c->name);
    Py_XDECREF(c->module);
    Py_XDECREF(c->text);
    Py_XDECREF(c->doc);
    Py_XDECREF(c->body);
    Py_XDECREF(c->results);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyGetSetDef properties[] = {
    {"__name__", get_name, NULL, NULL, NULL},
    {"__qualname__", get_qualname, NULL, NULL, NULL},
    {"__module__", get_module, NULL, NULL, NULL},
    {"__doc__", get_doc, NULL, NULL, NULL},
    {"__text_signature__", get_text_signature, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(composite, vectorcall),
     Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, show},
    {Py_tp_descr_get, bind},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pydevtensor._C._Composite",
    .basicsize = sizeof(composite),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* --- the index --- */

static PyObject *new_composite(PyObject *name, PyObject *module, PyObject *text,
                               PyObject *results, PyObject *doc, bool method,
                               bool in_place)
{
    const char *signature = PyUnicode_AsUTF8(text);
    composite *c = signature ? PyObject_New(composite, composite_type) : NULL;
    if (!c)
        return NULL;
    memset((char *)c + sizeof(PyObject), 0, sizeof *c - sizeof(PyObject));
    c->vectorcall = call;
    c->name = Py_NewRef(name);
    c->module = Py_NewRef(module);
    c->text = Py_NewRef(text);
    c->doc = Py_NewRef(doc);
    c->results = results == Py_None ? NULL : Py_NewRef(results);
    c->method = method;
    c->in_place = in_place;
    c->signature.text = signature;
    return (PyObject *)c;
}

/* _add_functions(rows): rows as pydevtensor/_index.py has them. */
static PyObject *add_functions(PyObject *self, PyObject *rows)
{
    (void)self;
    if (PyList_GET_SIZE(signatures)) /* imported again */
        Py_RETURN_NONE;
    if (!PyTuple_Check(rows))
        return PyErr_Format(PyExc_TypeError, "_add_functions(): give a tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
        PyObject *name, *module, *text, *results, *doc, *item, *made;
        int function, method, in_place;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, i), "UUUpppOU", &name, &module,
                              &text, &function, &method, &in_place, &results, &doc))
            return NULL;
        item = Py_BuildValue("(OONN)", name, text, PyBool_FromLong(function),
                             PyBool_FromLong(method));
        if (!item || PyList_Append(signatures, item) < 0) {
            Py_XDECREF(item);
            return NULL;
        }
        Py_DECREF(item);
        for (int as_method = 0; as_method < 2; as_method++) {
            if (!(as_method ? method : function))
                continue;
            made = new_composite(name, module, text, results, doc, as_method, in_place);
            if (!made)
                return NULL;
            PyObject *home =
                as_method ? dt_py.tensor_type->tp_dict : PyModule_GetDict(dt_py.module);
            int status = PyDict_SetItem(home, name, made);
            Py_DECREF(made);
            if (status < 0)
                return NULL;
        }
    }
    PyType_Modified(dt_py.tensor_type);
    Py_RETURN_NONE;
}

PyObject *dt_composite_signatures(void)
{
    return signatures;
}

static PyMethodDef own_functions[] = {
    {"_add_functions", add_functions, METH_O,
     "Adds the functions of pydevtensor/_index.py to the module and to Tensor."},
    {NULL, NULL, 0, NULL},
};

int dt_setup_composite(PyObject *module)
{
    signatures = PyList_New(0);
    composite_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!signatures || !composite_type)
        return -1;
    return PyModule_AddFunctions(module, own_functions);
}
