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

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET  T_PYSSIZET
#define Py_T_OBJECT_EX T_OBJECT_EX
#define Py_READONLY    READONLY
#endif

/* Kept for ever, as methods in C are. */
typedef struct composite {
    PyObject_HEAD vectorcallfunc vectorcall;
    dt_signature signature;
    const char *results; /* the names of two results, "(values, indices)"; or NULL */
    PyObject *name, *qualname, *module, *doc; /* str */
    PyObject *body;                           /* NULL until the first call */
    bool method;
    bool in_place; /* the result is copied into the first argument */
} composite;

static PyObject *functions; /* the rows of the index; NULL: not imported */
static PyTypeObject *composite_type;

/* --- arguments --- */

static PyObject *tensors_as_tuple(const dt_args *args, int i)
{
    dt_tensor_list list;
    if (dt_take_tensors(args, i, &list) < 0)
        return NULL;
    PyObject *tuple = PyTuple_New(list.count);
    for (Py_ssize_t k = 0; tuple && k < list.count; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(list.objects[k]));
    dt_tensors_release(&list);
    return tuple;
}

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
    case DT_PARAM_TENSORS:
        return tensors_as_tuple(args, i);
    default:
        break;
    }
    return status < 0 ? NULL : Py_NewRef(given);
}

/* The arguments of `*name` as a tuple, however they were given. */
static PyObject *converted_rest(const dt_args *args)
{
    int i = args->signature->rest;
    int64_t sizes[DT_MAX_NDIM];
    int count;
    PyObject *tuple;
    switch (args->signature->parameters[i].type) {
    case DT_PARAM_TENSORS:
        return tensors_as_tuple(args, i);
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

/* Names the pending error after the public function: the body raises it without a name,
 * and what the body calls under its own. */
static void name_error(const composite *c)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyObject *module = PyImport_ImportModule("pydevtensor._functions.checks");
    Py_XDECREF(module ? PyObject_CallMethod(module, "name_error", "OO", error, c->name)
                      : NULL);
    Py_XDECREF(module);
    PyErr_Restore(type, error, traceback);
}

/* Calls the body with the arguments that were given, out aside. */
static PyObject *call_body(const composite *c, const dt_args *args)
{
    const dt_signature *s = args->signature;
    PyObject *rest = s->rest >= 0 ? converted_rest(args) : PyTuple_New(0);
    Py_ssize_t nrest = rest ? PyTuple_GET_SIZE(rest) : 0, count = 0, nkeywords = 0;
    PyObject *few[2 * DT_MAX_PARAMETERS], *keywords[DT_MAX_PARAMETERS];
    PyObject **values = few, *names = NULL, *result = NULL;
    bool by_name = false;
    if (!rest)
        return NULL;
    if (nrest > DT_MAX_PARAMETERS &&
        !(values = PyMem_New(PyObject *, (size_t)(s->count + nrest)))) {
        PyErr_NoMemory();
        goto done;
    }
    for (int i = 0; i < s->count; i++) {
        by_name |= !args->slots[i] || i >= s->positional;
        for (Py_ssize_t k = 0; i == s->rest && k < nrest; k++)
            values[count++] = Py_NewRef(PyTuple_GET_ITEM(rest, k));
        if (i == s->rest || i == s->out || !args->slots[i])
            continue;
        if (!(values[count] = converted(args, i)))
            goto done;
        count++;
        if (by_name)
            keywords[nkeywords++] = s->names[i];
    }
    if (nkeywords && !(names = PyTuple_New(nkeywords)))
        goto done;
    for (Py_ssize_t k = 0; k < nkeywords; k++)
        PyTuple_SET_ITEM(names, k, Py_NewRef(keywords[k]));
    result = PyObject_Vectorcall(c->body, values, (size_t)(count - nkeywords), names);
    if (!result)
        name_error(c);
done:
    while (count)
        Py_DECREF(values[--count]);
    if (values != few)
        PyMem_Free(values);
    Py_XDECREF(names);
    Py_DECREF(rest);
    return result;
}

/* --- calls --- */

/* Imports the function: the module's of the name in the signature, which of an in-place
 * method has no `_` at the end. */
static int load_body(composite *c)
{
    size_t length = strcspn(c->signature.text, "(") - c->in_place;
    PyObject *path = PyUnicode_FromFormat("pydevtensor._functions.%U", c->module);
    PyObject *module = path ? PyImport_Import(path) : NULL;
    PyObject *name =
        module ? PyUnicode_FromStringAndSize(c->signature.text, (Py_ssize_t)length)
               : NULL;
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
    PyTypeObject *type = dt_named_tuple_type(c->signature.name, c->results);
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

/* What inspect.signature reads: the parameters without their types. */
static PyObject *text_signature(PyObject *self, void *unused)
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
    return PyUnicode_FromFormat("<function %U of pydevtensor>",
                                ((composite *)self)->qualname);
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
    return Py_NewRef(((composite *)self)->qualname);
}

static PyGetSetDef properties[] = {
    {"__text_signature__", text_signature, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__name__", Py_T_OBJECT_EX, offsetof(composite, name), Py_READONLY, NULL},
    {"__qualname__", Py_T_OBJECT_EX, offsetof(composite, qualname), Py_READONLY, NULL},
    {"__doc__", Py_T_OBJECT_EX, offsetof(composite, doc), Py_READONLY, NULL},
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(composite, vectorcall),
     Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_repr, show},
    {Py_tp_descr_get, bind},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pydevtensor._Composite",
    .basicsize = sizeof(composite),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* --- the index --- */

/* The object of a row as a function or a method. */
static PyObject *new_composite(PyObject *row, bool method)
{
    PyObject *name, *module, *doc;
    const char *text;
    int function, is_method, in_place;
    if (!PyArg_ParseTuple(row, "UUspppU", &name, &module, &text, &function, &is_method,
                          &in_place, &doc))
        return NULL;
    if (!(method ? is_method : function))
        return Py_NewRef(Py_None);
    composite *c = PyObject_New(composite, composite_type);
    if (!c)
        return NULL;
    memset((char *)c + sizeof(PyObject), 0, sizeof *c - sizeof(PyObject));
    c->vectorcall = call;
    c->signature.text = text;
    c->name = name;
    c->qualname = PyUnicode_FromFormat(method ? "Tensor.%U" : "%U", name);
    c->module = module;
    c->doc = doc;
    c->results = strstr(text, " -> (");
    c->results = c->results ? c->results + strlen(" -> ") : NULL;
    c->method = method;
    c->in_place = in_place;
    Py_INCREF(row); /* which has all that is in c */
    return c->qualname ? (PyObject *)c : NULL;
}

/* _add_functions(rows): rows as pydevtensor/_index.py has them. */
static PyObject *add_functions(PyObject *self, PyObject *rows)
{
    (void)self;
    if (functions) /* imported again */
        Py_RETURN_NONE;
    if (!PyTuple_Check(rows))
        return PyErr_Format(PyExc_TypeError, "_add_functions(): give a tuple");
    functions = Py_NewRef(rows);
    for (Py_ssize_t i = 0; i < 2 * PyTuple_GET_SIZE(rows); i++) {
        PyObject *row = PyTuple_GET_ITEM(rows, i / 2);
        PyObject *made = new_composite(row, i % 2);
        PyObject *home =
            i % 2 ? dt_py.tensor_type->tp_dict : PyModule_GetDict(dt_py.module);
        if (!made || (made != Py_None &&
                      PyDict_SetItem(home, ((composite *)made)->name, made) < 0))
            return NULL;
    }
    PyType_Modified(dt_py.tensor_type);
    Py_RETURN_NONE;
}

int dt_composite_signatures(PyObject *list)
{
    for (Py_ssize_t i = 0; functions && i < PyTuple_GET_SIZE(functions); i++) {
        PyObject *row = PyTuple_GET_ITEM(functions, i);
        PyObject *item =
            PyTuple_Pack(4, PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 2),
                         PyTuple_GET_ITEM(row, 3), PyTuple_GET_ITEM(row, 4));
        int status = item ? PyList_Append(list, item) : -1;
        Py_XDECREF(item);
        if (status < 0)
            return -1;
    }
    return 0;
}

static PyMethodDef own_functions[] = {
    {"_add_functions", add_functions, METH_O,
     "Adds the functions of pydevtensor/_index.py to the module and to Tensor."},
    {NULL, NULL, 0, NULL},
};

int dt_setup_composite(PyObject *module)
{
    composite_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return composite_type ? PyModule_AddFunctions(module, own_functions) : -1;
}
