/* Functions that are other functions put together: their signatures are in
 * composed.def, what is checked of their arguments is here, and what they do is said in
 * Python. */
#include <stdio.h>
#include <string.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/types/subscript.h"
#include "python/output.h"
#include "python/types/results.h"
#include "python/types/size.h"

/* What was given for parameter i, which has to be of the kind that its word promises,
 * as Python is to have it: sizes and Tensors in a tuple, however they were given. NULL
 * with an exception set. */
static PyObject *take(const dt_args *args, int i)
{
    dt_tensor *tensor;
    dt_tensor_list list;
    dt_arg value;
    dt_scalar number;
    double real;
    const char *text;
    int64_t whole, dims[DT_MAX_NDIM];
    int count, status = 0;
    bool flag;
    if (i == args->signature->rest &&
        args->signature->parameters[i].type == DT_PARAM_ANY) {
        PyObject *many = PyTuple_New(args->slots[i] ? 1 : args->nrest);
        for (Py_ssize_t k = 0; many && k < PyTuple_GET_SIZE(many); k++) {
            PyObject *one = args->slots[i] ? args->slots[i] : args->rest[k];
            PyTuple_SET_ITEM(many, k, Py_NewRef(one));
        }
        return many;
    }
    bool none = args->slots[i] == Py_None && args->signature->parameters[i].none;
    switch (none ? DT_PARAM_ANY : args->signature->parameters[i].type) {
    case DT_PARAM_TENSOR:
        status = dt_take_tensor(args, i, &tensor);
        break;
    case DT_PARAM_VALUE:
        status = dt_take_value(args, i, &value);
        break;
    case DT_PARAM_NUMBER:
        status = dt_take_number(args, i, &number);
        break;
    case DT_PARAM_FLOAT:
        status = dt_take_float(args, i, &real);
        break;
    case DT_PARAM_INT:
        status = dt_take_int(args, i, &whole);
        break;
    case DT_PARAM_BOOL:
        status = dt_take_bool(args, i, &flag);
        break;
    case DT_PARAM_STR:
        status = dt_take_str(args, i, &text);
        break;
    case DT_PARAM_DTYPE:
        status = dt_take_dtype(args, i, &count);
        break;
    case DT_PARAM_DIMS:
        status = dt_take_dims(args, i, &count, dims);
        break;
    case DT_PARAM_SIZES:
        return dt_take_sizes(args, i, &count, dims) < 0 ? NULL
                                                        : dt_size_new(count, dims);
    case DT_PARAM_TENSORS:
        if (dt_take_tensors(args, i, &list) < 0)
            return NULL;
        PyObject *tuple = PyTuple_New(list.count);
        for (Py_ssize_t k = 0; tuple && k < list.count; k++)
            PyTuple_SET_ITEM(tuple, k, Py_NewRef(list.objects[k]));
        dt_tensors_release(&list);
        return tuple;
    default:
        break;
    }
    return status < 0 ? NULL : Py_NewRef(args->slots[i]);
}

PyObject *dt_call_python(const dt_args *args, const char *module_name,
                         const char *function)
{
    const dt_signature *s = args->signature;
    PyObject *module = NULL, *callee = NULL, *result = NULL;
    PyObject *nothing = PyTuple_New(0), *words = PyDict_New();
    if (!words || !nothing)
        goto done;
    for (int i = 0; i < s->count; i++) {
        PyObject *name = s->names[i];
        if (!args->slots[i] && i != s->rest)
            continue;
        PyObject *value = take(args, i);
        int status = value ? 0 : -1;
        if (value && PyUnicode_CompareWithASCIIString(name, "out") != 0)
            status = PyDict_SetItem(words, name, value);
        Py_XDECREF(value);
        if (status < 0)
            goto done;
    }
    module = PyImport_ImportModule(module_name);
    callee = module ? PyObject_GetAttrString(module, function) : NULL;
    result = callee ? PyObject_Call(callee, nothing, words) : NULL;
done:
    Py_XDECREF(callee);
    Py_XDECREF(module);
    Py_XDECREF(words);
    Py_XDECREF(nothing);
    return result;
}

/* The same with the result in the last argument, `out`, where that is given. */
static PyObject *forward(const dt_args *args, const char *module, const char *function)
{
    int out_at = args->signature->count - 1;
    PyObject *result = dt_call_python(args, module, function);
    if (!result || !dt_given(args, out_at))
        return result;
    int status = -1;
    if (dt_recording(dt_tensor_of(result)))
        dt_output_refuse(args->signature->name);
    else
        status = dt_copy_to_output(args->signature->name, args->slots[out_at],
                                   dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[out_at]);
}

/* The same with the result in the first argument; the function's name is that of the
 * method, which ends in `_`. */
static PyObject *forward_in_place(const dt_args *args, const char *module,
                                  const char *method)
{
    char function[DT_MAX_NAME];
    snprintf(function, sizeof function, "%.*s", (int)strlen(method) - 1, method);
    PyObject *result = dt_call_python(args, module, function);
    if (!result)
        return NULL;
    int status =
        dt_copy_to_output(args->signature->name, args->slots[0], dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

/* Two results, by name; or in the last argument, a tuple, where that is `out` and
 * given. */
static PyObject *forward_pair(const dt_args *args, const char *module,
                              const char *function, dt_pair_type type)
{
    const dt_signature *s = args->signature;
    int last = s->count - 1;
    bool out = s->out == last;
    PyObject *result = dt_call_python(args, module, function);
    if (!result)
        return NULL;
    PyObject *first = Py_NewRef(PyTuple_GET_ITEM(result, 0));
    PyObject *second = Py_NewRef(PyTuple_GET_ITEM(result, 1));
    Py_DECREF(result);
    return dt_finish_pair(args, out ? last : -1, type, (dt_tensor_object *)first,
                          (dt_tensor_object *)second, 0);
}

#define CALL(module, function, name)     dt_call_python(args, module, function)
#define FORWARD(module, function, name)  forward(args, module, function)
#define IN_PLACE(module, function, name) forward_in_place(args, module, function)
#define PAIR(module, function, name)                                                   \
    forward_pair(args, module, function, DT_RESULT_##name)
#define COMPOSED(where, how, module, name, parameters, doc)                            \
    DT_PUBLIC(name, #name parameters)                                                  \
    {                                                                                  \
        return how("pydevtensor._" #module, #name, name);                              \
    }
#include "python/functions/composed.def"
#undef COMPOSED

DT_PUBLIC(index_put_in_place, "index_put_(input: Tensor, indices: Any, values: Tensor, "
                              "accumulate: bool = False)")
{
    dt_tensor *x, *values;
    bool accumulate;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 2, &values) < 0 ||
        dt_take_bool(args, 3, &accumulate) < 0 ||
        dt_tensor_index_put(args->slots[0], args->slots[1], args->slots[2],
                            accumulate) < 0)
        return NULL;
    return Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
#define COMPOSED(where, how, module, name, parameters, doc)                            \
    DT_##where(name, #name, doc),
#include "python/functions/composed.def"
#undef COMPOSED
    DT_BOTH(outer, "ger", "The same as outer."),
    DT_FUNCTION(trapezoid, "trapz", "The same as trapezoid."),
    DT_BOTH(index_put_in_place, "index_put_", "In place: index_put."),
};

int dt_setup_composed(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
