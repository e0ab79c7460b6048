/* Public functions that are written in Python: the modules of pydevtensor/_functions.
 *
 * The build makes a row of each function's signature and docstring, in composite.def
 * (tools/build/functions.py). The arguments are checked and converted here; the body is
 * imported at the first call. */
#include <string.h>

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
    const char *results; /* the names of two results, "(values, indices)"; or NULL */
} composite;

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
    PyObject *result = call_body(c, &args);
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
