/* Arguments as C values, and the errors that say what was expected. */
#include <limits.h>
#include <string.h>

#include "python/arguments.h"
#include "python/functions.h"
#include "python/types/device.h"
#include "python/types/dtype.h"
#include "python/output.h"
#include "autograd/recorded.h"

static const char *const expected[DT_NPARAM_TYPES] = {
#define TYPE(ID, word, text) text,
    DT_PARAM_TYPES(TYPE)
#undef TYPE
};

char *dt_describe(PyObject *value, char *text, size_t size)
{
    if (value == Py_None) {
        snprintf(text, size, "None");
        return text;
    }
    if (dt_tensor_check(value)) {
        const dt_tensor *t = dt_tensor_of(value);
        char shape[DT_SHAPE_TEXT];
        snprintf(text, size, "a Tensor of shape %s and type %s",
                 dt_shape_text(t->ndim, t->shape, shape, sizeof shape),
                 dt_dtype_name((dt_dtype)t->dtype));
        return text;
    }
    PyObject *repr = PyObject_Repr(value);
    if (repr && dt_dtype_is_absent(value)) {
        snprintf(text, size, "%.30s, which no Tensor of pydevtensor has",
                 PyUnicode_AsUTF8(repr));
        Py_DECREF(repr);
        return text;
    }
    const char *words = repr ? PyUnicode_AsUTF8(repr) : NULL;
    if (!words || strchr(words, '\n')) /* a table of several lines */
        snprintf(text, size, "an object of type %.60s", Py_TYPE(value)->tp_name);
    else
        snprintf(text, size, "%.60s%s (%.60s)", words, strlen(words) > 60 ? "..." : "",
                 Py_TYPE(value)->tp_name);
    Py_XDECREF(repr);
    PyErr_Clear();
    return text;
}

int dt_argument_error(const dt_args *args, int i)
{
    const dt_parameter *p = &args->signature->parameters[i];
    PyObject *value = args->slots[i];
    char text[DT_DESCRIBE_TEXT] = "missing";
    if (value)
        dt_describe(value, text, sizeof text);
    PyObject *shown = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (shown)
        PyErr_Format(PyExc_TypeError, "%s(): %s is %U; give %s%s",
                     args->signature->name, p->name, shown, expected[p->type],
                     p->none ? " or None" : "");
    Py_XDECREF(shown);
    return -1;
}

/* --- taking --- */

/* The error of an argument's item number `at`. Not inline: the text
 * would make each call's frame large. */
static __attribute__((noinline)) int item_error(const dt_args *args, int i,
                                                Py_ssize_t at, PyObject *item,
                                                const char *wanted)
{
    char text[DT_DESCRIBE_TEXT];
    return DT_SET_ERROR(PyExc_TypeError, "%s(): item %zd of %s is %s; give %s",
                        args->signature->name, at, args->signature->parameters[i].name,
                        dt_describe(item, text, sizeof text), wanted);
}

int dt_take_tensor(const dt_args *args, int i, dt_tensor **out)
{
    PyObject *value = args->slots[i];
    *out = NULL;
    if (!value || (value == Py_None && args->signature->parameters[i].none))
        return 0;
    if (!dt_tensor_check(value))
        return dt_argument_error(args, i);
    *out = dt_tensor_of(value);
    return 0;
}

void dt_tensors_release(dt_tensor_list *list)
{
    if (list->items != list->few)
        PyMem_Free((void *)list->items);
    list->items = NULL;
    while (list->nkept)
        Py_DECREF(list->kept[--list->nkept]);
    Py_CLEAR(list->owner);
}

static int take_tensors(const dt_args *args, int i, dt_tensor_list *out)
{
    PyObject *value = args->slots[i];
    PyObject *const *objects = args->rest;
    Py_ssize_t count = args->signature->rest == i ? args->nrest : 0;
    const Py_ssize_t few = (Py_ssize_t)(sizeof out->few / sizeof *out->few);
    out->owner = NULL;
    out->items = NULL;
    out->nkept = 0;
    if (value && !PyTuple_Check(value) && !PyList_Check(value))
        return dt_argument_error(args, i);
    /* Nobody changes a tuple meanwhile, but a list may be changed. */
    if (value && PyList_Check(value) && PyList_GET_SIZE(value) <= few) {
        count = out->nkept = PyList_GET_SIZE(value);
        for (Py_ssize_t k = 0; k < count; k++)
            out->kept[k] = Py_NewRef(PyList_GET_ITEM(value, k));
        objects = out->kept;
    } else if (value) {
        out->owner = PySequence_Tuple(value);
        if (!out->owner)
            return -1;
        objects = &PyTuple_GET_ITEM(out->owner, 0);
        count = PyTuple_GET_SIZE(out->owner);
    }
    out->count = count;
    out->objects = (PyObject **)objects;
    out->items = out->few;
    if (count > few) {
        out->items = PyMem_New(const dt_tensor *, (size_t)count);
        if (!out->items) {
            PyErr_NoMemory();
            dt_tensors_release(out);
            return -1;
        }
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        if (dt_tensor_check(objects[k])) {
            out->items[k] = dt_tensor_of(objects[k]);
            continue;
        }
        int status = item_error(args, i, k, objects[k], "Tensors");
        dt_tensors_release(out); /* only now: it may own objects */
        return status;
    }
    return 0;
}

static int take_number(const dt_args *args, int i, dt_scalar *out)
{
    PyObject *value = args->slots[i];
    if (dt_tensor_check(value)) {
        const dt_tensor *t = dt_tensor_of(value);
        if (t->numel != 1)
            return dt_argument_error(args, i);
        return dt_python_item(args->signature->name, t, out);
    }
    int status = dt_scalar_from_python(value, out);
    return status > 0 ? 0 : status < 0 ? -1 : dt_argument_error(args, i);
}

static int take_float(const dt_args *args, int i, double *out)
{
    dt_scalar scalar;
    if (take_number(args, i, &scalar) < 0)
        return -1;
    *out = dt_scalar_as_double(scalar);
    return 0;
}

static int refuse_complex(const dt_args *args, int i)
{
    return DT_SET_ERROR(
        PyExc_RuntimeError, "%s(): %s is %R, which is complex; give a real number",
        args->signature->name, args->signature->parameters[i].name, args->slots[i]);
}

/* A number, which may be complex, or a Tensor of one. */
static int take_scalar(const dt_args *args, int i, dt_value *out)
{
    PyObject *value = args->slots[i];
    const bool element = dt_tensor_check(value) &&
                         dt_dtype_is_complex((dt_dtype)dt_tensor_of(value)->dtype);
    if (!element && !dt_is_complex_number(value))
        return take_number(args, i, &out->scalar);
    const Py_complex z = PyComplex_AsCComplex(value);
    if (z.real == -1 && PyErr_Occurred())
        return -1;
    out->scalar = (dt_scalar){.kind = DT_KIND_COMPLEX, .f = z.real};
    out->imag = z.imag;
    return 0;
}

static int take_order(const dt_args *args, int i, double *out)
{
    *out = 2;
    if (!dt_given(args, i))
        return 0;
    PyObject *value = args->slots[i];
    if (!PyUnicode_Check(value))
        return dt_is_complex_number(value) ? refuse_complex(args, i)
                                           : take_float(args, i, out);
    if (PyUnicode_CompareWithASCIIString(value, "fro") == 0)
        return 0;
    const char *name = args->signature->name;
    if (PyUnicode_CompareWithASCIIString(value, "nuc") == 0)
        return DT_SET_ERROR(PyExc_NotImplementedError, /* call.c makes the call */
                            "%s(): call torch.linalg.matrix_norm(x, 'nuc')", name);
    return DT_SET_ERROR(PyExc_RuntimeError,
                        "%s(): %s is %R; give a number, float('inf'), 'fro' or 'nuc'",
                        name, args->signature->parameters[i].name, value);
}

/* As dt_int_from_python, but True is not an int: it is a flag in the wrong place. */
static inline int take_plain_int(PyObject *value, int64_t *out)
{
    if (dt_small_int(value, out))
        return 1;
    return PyBool_Check(value) ? 0 : dt_int_from_python(value, out);
}

int dt_take_bool(const dt_args *args, int i, bool *out)
{
    PyObject *value = args->slots[i];
    *out = value ? value == Py_True : args->signature->parameters[i].fallback.i != 0;
    if (!value || PyBool_Check(value))
        return 0;
    if (!strncmp(Py_TYPE(value)->tp_name, "numpy.bool", 10)) {
        int truth = PyObject_IsTrue(value);
        *out = truth > 0;
        return truth < 0 ? -1 : 0;
    }
    return dt_argument_error(args, i);
}

/* The ints values[0] to values[count - 1] of parameter i. */
static int int_items(const dt_args *args, int i, PyObject *const *values,
                     Py_ssize_t count, int64_t *out)
{
    for (Py_ssize_t v = 0; v < count; v++) {
        int status = take_plain_int(values[v], &out[v]);
        if (status < 0 && !PyErr_ExceptionMatches(PyExc_OverflowError))
            return -1;
        if (status <= 0) {
            PyErr_Clear();
            if (values[v] == Py_None &&
                args->signature->parameters[i].type == DT_PARAM_LENGTHS) {
                out[v] = DT_KEPT;
                continue;
            }
            return item_error(args, i, v, values[v], "ints, of at most 64 bits");
        }
    }
    return 0;
}

/* The same for sizes or dimensions; *n how many. */
static int take_few_ints(const dt_args *args, int i, PyObject *const *values,
                         Py_ssize_t count, int *n, int64_t *out)
{
    if (count > DT_MAX_NDIM)
        return DT_SET_ERROR(PyExc_RuntimeError,
                            "%s(): %s has %zd ints; tensors have at most %d dimensions",
                            args->signature->name, args->signature->parameters[i].name,
                            count, DT_MAX_NDIM);
    *n = (int)count;
    return int_items(args, i, values, count, out);
}

/* The ints of a tuple, list or other sequence; the value itself is not an int. */
static int take_sequence(const dt_args *args, int i, PyObject *value, int *n,
                         int64_t *out)
{
    if (PyUnicode_Check(value) || PyBytes_Check(value) || !PySequence_Check(value) ||
        dt_tensor_check(value))
        return dt_argument_error(args, i);
    /* __index__ of an item may run code that changes a list: work on a tuple. */
    PyObject *items = PySequence_Tuple(value);
    if (!items) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        return dt_argument_error(args, i);
    }
    int status = take_few_ints(args, i, &PyTuple_GET_ITEM(items, 0),
                               PyTuple_GET_SIZE(items), n, out);
    Py_DECREF(items);
    return status;
}

static int take_int_or_sequence(const dt_args *args, int i, int *count, int64_t *out)
{
    PyObject *value = args->slots[i];
    if (!PyTuple_Check(value) && !PyList_Check(value)) {
        int status = take_plain_int(value, out);
        if (status) {
            *count = 1;
            return status < 0 ? -1 : 0;
        }
    }
    return take_sequence(args, i, value, count, out);
}

static int take_dims(const dt_args *args, int i, int *count, int64_t *out)
{
    if (args->signature->rest == i && args->nrest)
        return take_few_ints(args, i, args->rest, args->nrest, count, out);
    if (!dt_given(args, i)) {
        *count = -1;
        return 0;
    }
    return take_int_or_sequence(args, i, count, out);
}

static int take_sizes(const dt_args *args, int i, int *ndim, int64_t *out)
{
    if (args->signature->rest == i && args->nrest) {
        /* One argument may be a sequence of another kind, or the size itself. */
        if (args->nrest == 1 && !PyLong_Check(args->rest[0])) {
            dt_args one = *args;
            one.slots[i] = args->rest[0];
            return take_int_or_sequence(&one, i, ndim, out);
        }
        return take_few_ints(args, i, args->rest, args->nrest, ndim, out);
    }
    if (!args->slots[i])
        return dt_argument_error(args, i);
    if (args->signature->rest == i)
        return take_int_or_sequence(args, i, ndim, out);
    return take_sequence(args, i, args->slots[i], ndim, out);
}

static int take_ints(const dt_args *args, int i, int *count, int64_t **out)
{
    PyObject *value = args->slots[i];
    *out = NULL;
    if (!PyTuple_Check(value) && !PyList_Check(value))
        return dt_argument_error(args, i);
    PyObject *items = PySequence_Tuple(value);
    if (!items)
        return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    *out = n <= INT_MAX ? PyMem_New(int64_t, n ? n : 1) : NULL;
    int status = -1;
    if (!*out)
        PyErr_NoMemory();
    else
        status = int_items(args, i, &PyTuple_GET_ITEM(items, 0), n, *out);
    Py_DECREF(items);
    if (status < 0) {
        PyMem_Free(*out);
        *out = NULL;
    }
    *count = (int)n;
    return status;
}

int dt_take_dtype(const dt_args *args, int i, int *out)
{
    PyObject *value = args->slots[i];
    dt_dtype dtype;
    *out = -1;
    if (!value || (value == Py_None && args->signature->parameters[i].none))
        return 0;
    if (!dt_dtype_from_python(value, &dtype))
        return dt_argument_error(args, i);
    *out = dtype;
    return 0;
}

int dt_take_device(const dt_args *args, int i, dt_device *out)
{
    PyObject *value = args->slots[i];
    if (!value || (value == Py_None && args->signature->parameters[i].none))
        return dt_default_device(out);
    dt_device named;
    if (dt_device_from_python(args->signature->name,
                              args->signature->parameters[i].name, value, &named) < 0)
        return -1;
    return dt_device_resolve(named, out);
}

int dt_convert_ints(dt_values *s, const dt_args *args, int i)
{
    dt_value *v = &s->v[i];
    v->tensor = NULL;
    const dt_parameter *p = &args->signature->parameters[i];
    int64_t *ints = s->ints[s->nints];
    v->ints = ints;
    if (p->type == DT_PARAM_SIZES && (p->required || dt_given(args, i))) {
        if (take_sizes(args, i, &v->count, ints) < 0)
            return -1;
    } else if (take_dims(args, i, &v->count, ints) < 0) {
        return -1;
    }
    if (v->count < 0 && !p->none && (p->required || args->slots[i]))
        return dt_argument_error(args, i);
    v->given = v->count >= 0;
    s->nints++;
    return 0;
}

/* A generator, of the device of the tensors before it, or of the factory. */
static int convert_generator(dt_values *s, const dt_args *args, int i, dt_value *v)
{
    dt_generator *generator;
    dt_device device = s->device;
    for (int k = i - 1; k >= 0; k--)
        if (s->v[k].tensor)
            device = dt_tensor_home(s->v[k].tensor);
    int status = dt_take_generator(args, i, device, &generator);
    v->generator = generator;
    return status;
}

static int convert_tensors(dt_values *s, const dt_args *args, int i, dt_value *v)
{
    if (take_tensors(args, i, &s->list) < 0)
        return -1;
    s->has_list = true;
    v->tensors = s->list.items;
    v->count = (int)s->list.count;
    for (int k = 0; k < v->count; k++)
        s->numel += v->tensors[k]->numel;
    return 0;
}

/* Whether a conversion knows what stands for an argument that is left out. */
static bool has_own_default(dt_param_type type)
{
    return dt_param_is_per_dim(type) || type == DT_PARAM_TENSORS ||
           type == DT_PARAM_ORDER || type == DT_PARAM_DEVICE;
}

/* The type for a complex number beside the other arguments: a number alone has all its
 * digits where it only fills a tensor. */
static dt_dtype complex_type(const dt_args *args)
{
    const dt_signature *signature = args->signature;
    const dt_tensor *beside = NULL;
    for (int k = 0; k < signature->count && !beside; k++) {
        PyObject *other = k == signature->out ? NULL : args->slots[k];
        if (other && dt_tensor_check(other) &&
            dt_dtype_is_inexact((dt_dtype)dt_tensor_of(other)->dtype))
            beside = dt_tensor_of(other);
    }
    return !beside && signature->op && signature->op->info->factory >= 0
               ? DT_COMPLEX128
               : dt_complex_type_beside(beside);
}

/* A complex number counts as a Tensor without dimensions. */
static int convert_complex(dt_values *s, const dt_args *args, int i)
{
    DT_REF number = dt_complex_from_python(args->slots[i], complex_type(args));
    if (!number || (!s->numbers && !(s->numbers = PyList_New(0))) ||
        PyList_Append(s->numbers, number) < 0)
        return -1;
    s->v[i].tensor = dt_tensor_of(number);
    return 0;
}

int dt_convert_any(dt_values *s, const dt_args *args, int i)
{
    const dt_parameter *p = &args->signature->parameters[i];
    PyObject *value = args->slots[i];
    dt_value *v = &s->v[i];
    dt_format format = DT_FORMAT_PRESERVE;
    int status = 1; /* as of dt_scalar_from_python */
    v->tensor = NULL;
    v->count = -1;
    v->given = dt_given(args, i);
    if (!v->given && (p->none || !value) && !has_own_default(p->type)) {
        *v = dt_value_default(p);
        return 0;
    }
    switch (p->type) {
    case DT_PARAM_TENSOR:
    case DT_PARAM_VALUE:
        if (dt_tensor_check(value)) {
            v->tensor = dt_tensor_of(value);
            s->numel += v->tensor->numel;
        } else {
            if (p->type == DT_PARAM_VALUE && dt_is_complex_number(value))
                return convert_complex(s, args, i);
            status = p->type == DT_PARAM_VALUE
                         ? dt_scalar_from_python(value, &v->scalar)
                         : 0;
        }
        break;
    case DT_PARAM_TENSORS:
        return convert_tensors(s, args, i, v);
    case DT_PARAM_NUMBER:
        return dt_is_complex_number(value) ? refuse_complex(args, i)
                                           : take_number(args, i, &v->scalar);
    case DT_PARAM_SCALAR:
        return take_scalar(args, i, v);
    case DT_PARAM_FLOAT:
        return take_float(args, i, &v->f);
    case DT_PARAM_ORDER:
        return take_order(args, i, &v->f);
    case DT_PARAM_INT:
        status = take_plain_int(value, &v->i);
        break;
    case DT_PARAM_BOOL:
        return dt_take_bool(args, i, &v->b);
    case DT_PARAM_TRUTH:
        status = PyObject_IsTrue(value);
        v->b = status > 0;
        return status < 0 ? -1 : 0;
    case DT_PARAM_STR:
        if (!PyUnicode_Check(value))
            return dt_argument_error(args, i);
        v->text = PyUnicode_AsUTF8(value);
        return v->text ? 0 : -1;
    case DT_PARAM_INTS:
        status = take_ints(args, i, &v->count, &s->many_ints);
        v->ints = s->many_ints;
        return status;
    case DT_PARAM_DTYPE:
        return dt_take_dtype(args, i, &v->dtype);
    case DT_PARAM_DEVICE:
        return dt_take_device(args, i, &v->device);
    case DT_PARAM_GENERATOR:
        return convert_generator(s, args, i, v);
    case DT_PARAM_FORMAT:
        status = dt_take_format(args, i, &format);
        v->i = format;
        return status;
    case DT_PARAM_LAYOUT:
        return dt_take_layout(args, i);
    default:
        return DT_SET_ERROR(PyExc_SystemError, "%s(): %s cannot be converted",
                            args->signature->name, p->name);
    }
    return status > 0 ? 0 : status < 0 ? -1 : dt_argument_error(args, i);
}

static PyObject *call_dense(dt_signature *signature, dt_public_body *body,
                            DT_CALL_PARAMETERS)
{
    dt_args args;
    dt_values s;
    PyObject *result = NULL;
    int i = 0;
    if (dt_bind(signature, &args, self, values, count, kwnames) < 0)
        return NULL;
    dt_values_begin(&s);
    while (i < args.signature->count &&
           (args.signature->parameters[i].type == DT_PARAM_ANY ||
            dt_convert(&s, &args, i) == 0))
        i++;
    if (i == args.signature->count)
        result = body(&args, s.v);
    dt_values_release(&s);
    return result;
}

PyObject *dt_call_public(dt_signature *signature, dt_public_body *body,
                         DT_CALL_PARAMETERS)
{
    PyObject *result = call_dense(signature, body, self, values, count, kwnames);
    const char *name = signature->name;
    return result ? result : dt_call_sparse(name, name, self, values, count, kwnames);
}
