/* Public functions that are written in Python: the modules of pydevtensor/_functions.
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
    const char *name, *module;
    bool in_place; /* the result is copied into the first argument */
    /* Set at the first call: */
    PyObject *body;
    const char *results; /* the names of results, "(values, indices)"; or NULL */
} composite;

/* --- arguments --- */

/* The argument i as the body receives it (pydevtensor/_functions/types.py). NULL with an
 * exception set, also where it is not of its parameter's type. */
static PyObject *converted(const dt_args *args, int i)
{
    PyObject *given = args->slots[i], *made = NULL;
    const dt_parameter *parameter = &args->signature->parameters[i];
    /* What the body calls checks a generator, which has to be for its tensor's device. */
    if (parameter->type == DT_PARAM_ANY || parameter->type == DT_PARAM_GENERATOR ||
        (given == Py_None && parameter->none))
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

/* Names the pending error after the public function: the body raises it without a name,
 * and what the body calls under its own. */
static void name_error(const composite *c)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyObject *module = PyImport_ImportModule("pydevtensor._functions.checks");
    Py_XDECREF(module ? PyObject_CallMethod(module, "name_error", "Os", error, c->name)
                      : NULL);
    Py_XDECREF(module);
    PyErr_Restore(type, error, traceback);
}

/* What the body gets for the tensor that an in-place call overwrites: a copy where the
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
    Py_ssize_t length = (Py_ssize_t)strcspn(c->signature.text, "(") - c->in_place;
    PyObject *path = PyUnicode_FromFormat("pydevtensor._functions.%s", c->module);
    PyObject *module = path ? PyImport_Import(path) : NULL;
    PyObject *name =
        module ? PyUnicode_FromStringAndSize(c->signature.text, length) : NULL;
    c->body = name ? PyObject_GetAttr(module, name) : NULL;
    const char *arrow = strstr(c->signature.text, " -> (");
    c->results = arrow ? arrow + strlen(" -> ") : NULL;
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

/* The results by name. */
static PyObject *named(const composite *c, const dt_args *args, PyObject *tuple)
{
    PyTypeObject *type = dt_named_tuple_type(c->signature.name, c->results);
    dt_tensor_object *results[DT_MAX_RESULTS];
    int count = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; type && i < count; i++)
        results[i] = (dt_tensor_object *)Py_NewRef(PyTuple_GET_ITEM(tuple, i));
    Py_DECREF(tuple);
    return type ? dt_finish_results(args, c->signature.out, type, count, results)
                : NULL;
}

static PyObject *call(composite *c, DT_CALL_PARAMETERS)
{
    dt_args args;
    dt_tensor *out;
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

/* --- the rows --- */

static composite composites[] = {
#define COMPOSITE(id, folder, schema, is_function, is_method, writes, doc)             \
    {.signature = {.text = schema}, .name = #id, .module = folder, .in_place = writes},
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
#define COMPOSITE(name, folder, schema, is_function, is_method, writes, doc)           \
    {#name,                                                                            \
     &composites[ROW_##name].signature,                                                \
     is_function ? name##_function : NULL,                                             \
     is_method ? name##_method : NULL,                                                 \
     doc,                                                                              \
     "",                                                                               \
     ""},
#include <composite.def>
#undef COMPOSITE
};

int dt_setup_composite(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
