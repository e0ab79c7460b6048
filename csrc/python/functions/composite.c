/* Public functions that are written in Python, of the package and of its namespaces
 * such as linalg.
 *
 * The build makes a row of each function's signature and docstring, in composite.def
 * (tools/build/functions.py). The arguments are checked and converted here; the body is
 * imported at the first call. */
#include <string.h>

#include "autograd/autocast.h"
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/device.h"

typedef struct composite {
    dt_signature signature;
    const char *id; /* with the namespace: linalg_qr */
    const char *name;
    const char *module; /* of the body, below pydevtensor */
    bool in_place;      /* the result is copied into the first argument */
    /* Set at the first call: */
    PyObject *body;
    const char *results; /* the names of results, "(values, indices)"; or NULL */
    bool quick;          /* call_quickly may bind its calls */
} composite;

/* --- arguments --- */

/* Whether the body receives the argument itself. For the commonest ones. */
static inline bool is_passed_on(const dt_parameter *parameter, PyObject *given)
{
    int64_t whole;
    switch (parameter->type) {
    case DT_PARAM_ANY:
    case DT_PARAM_GENERATOR: /* checked by what the body calls, for its tensor's device */
        return true;
    case DT_PARAM_TENSOR:
    case DT_PARAM_VALUE:
        if (dt_tensor_check(given))
            return true;
        break;
    case DT_PARAM_BOOL:
    case DT_PARAM_TRUTH:
        if (PyBool_Check(given))
            return true;
        break;
    case DT_PARAM_STR:
        if (PyUnicode_Check(given))
            return true;
        break;
    case DT_PARAM_FLOAT:
        if (PyFloat_CheckExact(given))
            return true;
        break;
    case DT_PARAM_INT:
        if (dt_small_int(given, &whole))
            return true;
        break;
    default:
        break;
    }
    return given == Py_None && parameter->none;
}

/* The argument i as the body receives it (pydevtensor/_functions/types.py). NULL with
 * an exception set, also where it is not of its parameter's type. */
static PyObject *converted(const dt_args *args, int i)
{
    PyObject *given = args->slots[i], *made = NULL;
    const dt_parameter *parameter = &args->signature->parameters[i];
    if (is_passed_on(parameter, given))
        return Py_NewRef(given);
    dt_values s;
    const dt_value *v = &s.v[i];
    dt_values_begin(&s);
    if (dt_convert(&s, args, i) < 0)
        return NULL;
    switch (parameter->type) {
    case DT_PARAM_VALUE:
        made = v->tensor ? Py_NewRef(given) : dt_scalar_to_python(v->scalar);
        break;
    case DT_PARAM_NUMBER:
        made = dt_scalar_to_python(v->scalar);
        break;
    case DT_PARAM_FLOAT:
        made = PyFloat_FromDouble(v->f);
        break;
    case DT_PARAM_INT:
        made = PyLong_FromLongLong(v->i);
        break;
    case DT_PARAM_BOOL:
    case DT_PARAM_TRUTH:
        made = PyBool_FromLong(v->b);
        break;
    case DT_PARAM_DTYPE:
        made = Py_NewRef(dt_py.dtypes[v->dtype]);
        break;
    case DT_PARAM_DEVICE:
        made = dt_device_object_of(v->device);
        break;
    case DT_PARAM_DIMS:
        made = dt_int_tuple_new(v->count, v->ints);
        break;
    case DT_PARAM_SIZES:
        made = dt_size_new(v->count, v->ints);
        break;
    case DT_PARAM_TENSORS:
        made = PyTuple_New(s.list.count);
        for (Py_ssize_t k = 0; made && k < s.list.count; k++)
            PyTuple_SET_ITEM(made, k, Py_NewRef(s.list.objects[k]));
        break;
    default:
        made = Py_NewRef(given);
    }
    dt_values_release(&s);
    return made;
}

/* The arguments of `*name` as a tuple, however they were given. */
static PyObject *converted_rest(const dt_args *args)
{
    int i = args->signature->rest;
    if (args->signature->parameters[i].type != DT_PARAM_ANY)
        return converted(args, i);
    if (args->slots[i])
        return PyTuple_Pack(1, args->slots[i]);
    PyObject *tuple = PyTuple_New(args->nrest);
    for (Py_ssize_t k = 0; tuple && k < args->nrest; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(args->rest[k]));
    return tuple;
}

/* The message behind the name of a function, "exp(): " or "exp: ". */
static const char *without_name(const char *message)
{
    const char *c = message;
    while (Py_ISALNUM(*c) || *c == '_')
        c++;
    const char *end = c + (strncmp(c, "()", 2) ? 0 : 2);
    return c > message && !strncmp(end, ": ", 2) ? end + 2 : message;
}

/* Whether messages of this type of error begin with a function's name: those of
 * Python's types that the core raises, and of classes in a namespace, such as
 * linalg's. */
static bool is_named(PyTypeObject *type)
{
    PyObject *const types[] = {PyExc_RuntimeError,   PyExc_ValueError,
                               PyExc_TypeError,      PyExc_IndexError,
                               PyExc_OverflowError,  PyExc_NotImplementedError,
                               PyExc_AssertionError, PyExc_ZeroDivisionError};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] == (PyObject *)type)
            return true;
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    const char *home = module ? PyUnicode_AsUTF8(module) : NULL;
    bool ours = home && !strncmp(home, "pydevtensor.", sizeof "pydevtensor." - 1);
    Py_XDECREF(module);
    PyErr_Clear();
    return ours;
}

/* Names an error after the public function instead of one that it calls: the body
 * raises it without a name, and what the body calls under its own. What copy, pickle
 * and NumPy call, such as __array__, is not public. -1 with another exception set. */
static int name_error(PyObject *error, const char *name)
{
    PyObject *args = ((PyBaseExceptionObject *)error)->args;
    if (!is_named(Py_TYPE(error)) || PyTuple_GET_SIZE(args) != 1 || name[0] == '_')
        return 0;
    PyObject *text = PyObject_Str(PyTuple_GET_ITEM(args, 0));
    const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
    PyObject *named =
        message ? Py_BuildValue("(N)", PyUnicode_FromFormat("%s(): %s", name,
                                                            without_name(message)))
                : NULL;
    int status = named ? PyObject_SetAttrString(error, "args", named) : -1;
    Py_XDECREF(named);
    Py_XDECREF(text);
    return status;
}

/* The same for the pending error. */
static void name_pending(const char *name)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (name_error(error, name) < 0)
        PyErr_Clear();
    PyErr_Restore(type, error, traceback);
}

/* _name_error(error: Exception, name: str), for functions that are public
 * themselves. */
static PyObject *name_error_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *error;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", PyExc_Exception, &error, &name) ||
        name_error(error, name) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The body's argument for the tensor that an in-place call overwrites: a copy where the
 * body's nodes may save it. */
static PyObject *overwritten(const dt_args *args)
{
    bool recording = false;
    for (int i = 0; i < args->signature->count; i++)
        recording |= args->slots[i] && dt_tensor_check(args->slots[i]) &&
                     dt_recording(dt_tensor_of(args->slots[i]));
    if (!recording || !dt_tensor_check(args->slots[0]))
        return converted(args, 0);
    return PyObject_CallMethod(args->slots[0], "clone", NULL);
}

/* Calls the body with the arguments that were given, out aside. */
static PyObject *call_body(const composite *c, const dt_args *args)
{
    const dt_signature *s = args->signature;
    PyObject *rest = s->rest >= 0 ? converted_rest(args) : NULL;
    Py_ssize_t nrest = rest ? PyTuple_GET_SIZE(rest) : 0, count = 0, nkeywords = 0;
    PyObject *few[2 * DT_MAX_ARGUMENTS], *keywords[DT_MAX_ARGUMENTS];
    PyObject **values = few, *names = NULL, *result = NULL;
    bool by_name = false;
    if (s->rest >= 0 && !rest)
        return NULL;
    if (nrest > DT_MAX_ARGUMENTS &&
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
        values[count] = c->in_place && !i ? overwritten(args) : converted(args, i);
        if (!values[count])
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
        name_pending(c->name);
done:
    while (count)
        Py_DECREF(values[--count]);
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
    Py_ssize_t length = (Py_ssize_t)strcspn(c->signature.text, "(") - c->in_place;
    PyObject *path = PyUnicode_FromFormat("pydevtensor.%s", c->module);
    PyObject *module = path ? PyImport_Import(path) : NULL;
    PyObject *name =
        module ? PyUnicode_FromStringAndSize(c->signature.text, length) : NULL;
    c->body = name ? PyObject_GetAttr(module, name) : NULL;
    const char *arrow = strstr(c->signature.text, " -> (");
    c->results = arrow ? arrow + strlen(" -> ") : NULL;
    const dt_signature *s = &c->signature;
    c->quick = c->body && !c->results && !s->next && s->rest < 0;
    for (int i = s->positional; i < s->count; i++)
        c->quick = c->quick && !s->parameters[i].required;
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(path);
    return c->body ? 0 : -1;
}

/* Copies the result into target. */
static PyObject *copied(const composite *c, PyObject *result, PyObject *target)
{
    int status = -1;
    if (c->in_place)
        status = dt_copy_in_place(c->signature.name, target, dt_tensor_of(result));
    else if (dt_recording(dt_tensor_of(result)))
        dt_output_refuse(c->signature.name);
    else
        status = dt_copy_to_output(c->signature.name, target, dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(target);
}

/* The results by name: Tensors where there is out. */
static PyObject *named(const composite *c, const dt_args *args, PyObject *tuple)
{
    PyTypeObject *type = dt_named_tuple_type(c->id, c->results);
    dt_tensor_object *results[DT_MAX_RESULTS];
    int count = (int)PyTuple_GET_SIZE(tuple);
    const bool has_out = c->signature.out >= 0;
    PyObject *made = type && !has_out ? PyStructSequence_New(type) : NULL;
    for (int i = 0; type && i < count; i++) {
        PyObject *result = Py_NewRef(PyTuple_GET_ITEM(tuple, i));
        if (has_out)
            results[i] = (dt_tensor_object *)result;
        else if (made)
            PyStructSequence_SetItem(made, i, result);
        else
            Py_DECREF(result);
    }
    Py_DECREF(tuple);
    return type && has_out
               ? dt_finish_results(args, c->signature.out, type, count, results)
               : made;
}

/* Runs the commonest calls of a function, whose body takes every argument as it is
 * given. Returns false, having done nothing, for others. */
static inline bool call_quickly(const composite *c, DT_CALL_PARAMETERS,
                                PyObject **result)
{
    const dt_signature *s = &c->signature;
    if (!c->quick || self || count < s->required || count > s->positional)
        return false;
    Py_ssize_t i = 0, nkeywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    while (i < count && i != s->out && is_passed_on(&s->parameters[i], values[i]))
        i++;
    if (i < count)
        return false;
    for (Py_ssize_t k = 0; k < nkeywords; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        for (i = count; i < s->count && s->names[i] != name;)
            i++;
        if (i == s->count || i == s->out ||
            !is_passed_on(&s->parameters[i], values[count + k]))
            return false;
    }
    *result = PyObject_Vectorcall(c->body, values, (size_t)count, kwnames);
    if (!*result)
        name_pending(c->name);
    return true;
}

static PyObject *call_dense(composite *c, DT_CALL_PARAMETERS)
{
    dt_args args;
    dt_tensor *out;
    PyObject *quick;
    if (call_quickly(c, self, values, count, kwnames, &quick))
        return quick;
    if (dt_bind(&c->signature, &args, self, values, count, kwnames) < 0 ||
        (!c->body && load_body(c) < 0))
        return NULL;
    bool has_out = c->signature.out >= 0 && dt_given(&args, c->signature.out);
    if (has_out && !c->results && dt_take_tensor(&args, c->signature.out, &out) < 0)
        return NULL;
    /* Autocast leaves functions in place and calls with out= alone. */
    bool on = dt_autocast.on;
    if (has_out || c->in_place)
        dt_autocast_pause();
    PyObject *result = call_body(c, &args);
    dt_autocast_resume(on);
    if (result && c->results)
        return named(c, &args, result);
    if (result && (has_out || c->in_place))
        return copied(c, result, args.slots[has_out ? c->signature.out : 0]);
    return result;
}

static PyObject *call(composite *c, DT_CALL_PARAMETERS)
{
    PyObject *result = call_dense(c, self, values, count, kwnames);
    return result ? result
                  : dt_call_sparse(c->name, c->id, self, values, count, kwnames);
}

/* --- the rows --- */

static composite composites[] = {
#define COMPOSITE(row, public, space, path, schema, is_function, is_method, writes,    \
                  doc)                                                                 \
    {.signature = {.text = schema},                                                    \
     .id = #row,                                                                       \
     .name = public,                                                                   \
     .module = path,                                                                   \
     .in_place = writes},
#include <composite.def>
#undef COMPOSITE
};

enum {
#define COMPOSITE(name, ...) ROW_##name,
#include <composite.def>
#undef COMPOSITE
};

#define COMPOSITE(name, ...)                                                           \
    DT_FUNCTION_ENTRY(name##_function, call, &composites[ROW_##name])                  \
    DT_METHOD_ENTRY(name##_method, call, &composites[ROW_##name])
#include <composite.def>
#undef COMPOSITE

static const dt_function rows[] = {
#define COMPOSITE(id, public, space, path, schema, is_function, is_method, writes,     \
                  doc)                                                                 \
    {public,                                                                           \
     &composites[ROW_##id].signature,                                                  \
     is_function ? id##_function : NULL,                                               \
     is_method ? id##_method : NULL,                                                   \
     doc,                                                                              \
     "",                                                                               \
     ""},
#include <composite.def>
#undef COMPOSITE
};

/* Each row's namespace; rows are sorted by it, the package's own, "", first. */
static const char *const namespaces[] = {
#define COMPOSITE(id, public, space, ...) space,
#include <composite.def>
#undef COMPOSITE
};

int dt_setup_composite(PyObject *module)
{
    static PyMethodDef own[] = {
        {"_name_error", name_error_of, METH_VARARGS,
         "Names an error after a function instead of one that it calls."},
        {NULL, NULL, 0, NULL},
    };
    const size_t count = sizeof rows / sizeof *rows;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !strcmp(namespaces[i], namespaces[end]);)
            end++;
        if (namespaces[i][0])
            dt_publish(namespaces[i], rows + i, end - i);
        else if (dt_add_functions(module, rows + i, end - i) < 0)
            return -1;
    }
    return PyModule_AddFunctions(module, own);
}
