/* The one argument parser: binds a call to a schema (tensor/schema.h) and converts its
 * arguments.
 *
 * NumPy's parameter names are accepted everywhere: axis for dim, keepdims for keepdim;
 * x, a and x1 for input; x2 for other. */
#ifndef DT_PYTHON_ARGUMENTS_H
#define DT_PYTHON_ARGUMENTS_H

#include <string.h>

#include "device/random.h"
#include "python/types/tensor.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/call.h"

/* A public function's schema, with what binding a call needs. */
typedef struct dt_signature {
    const char *text;
    struct dt_op **ops; /* the record of each form; NULL: a function written by hand */
    struct dt_op *op;   /* the record of this form */
    /* Set by dt_signature_read: */
    bool ready;
    /* One form of up to DT_MAX_PARAMETERS, without `*name`: dt_bind needs no loop over
     * parameters. */
    bool simple;
    bool spreads; /* one such form, `*name` last among the positional parameters */
    int count, positional, required, rest, out; /* as in dt_schema */
    int inplace; /* index of the argument `inplace` of a row, or count */
    const char *name;
    dt_parameter *parameters;
    PyObject **names;          /* the parameters' names, interned */
    struct dt_signature *next; /* the next form, or NULL */
} dt_signature;

/* A bound call. References are the caller's: they are good until the function returns.
 */
typedef struct dt_args {
    const dt_signature *signature;
    int form;
    int given;        /* the parameters from here on are left out */
    Py_ssize_t nrest; /* sizes given as arguments: */
    PyObject *const *rest;
    PyObject *slots[DT_MAX_ARGUMENTS]; /* by parameter; NULL: not given */
} dt_args;

/* Binds the arguments of a METH_FASTCALL | METH_KEYWORDS call. self, if not NULL, is
 * the first parameter. -1 with TypeError. dt_bind is the quick way for the commonest
 * calls. */
int dt_bind_any(dt_signature *signature, dt_args *out, PyObject *self,
                PyObject *const *values, Py_ssize_t count, PyObject *kwnames);

/* The quick way for `*name` without keywords. */
static inline int dt_bind_spread(dt_signature *signature, dt_args *out, PyObject *self,
                                 PyObject *const *values, Py_ssize_t count)
{
    int bound = 0;
    Py_ssize_t v = 0;
    out->signature = signature;
    out->form = 0;
    out->rest = NULL;
    out->nrest = 0;
    memset(out->slots, 0, DT_MAX_PARAMETERS * sizeof *out->slots);
    if (self)
        out->slots[bound++] = self;
    while (bound < signature->rest)
        out->slots[bound++] = values[v++];
    out->given = bound + 1;
    if (count - v == 1 && (PyTuple_Check(values[v]) || PyList_Check(values[v]))) {
        out->slots[bound] = values[v];
    } else {
        out->rest = values + v;
        out->nrest = count - v;
    }
    return 0;
}

static inline int dt_bind(dt_signature *signature, dt_args *out, PyObject *self,
                          PyObject *const *values, Py_ssize_t count, PyObject *kwnames)
{
    int given = (int)count + (self != NULL);
    if (signature->spreads && !kwnames && given > signature->rest)
        return dt_bind_spread(signature, out, self, values, count);
    if (__builtin_expect(!signature->simple || kwnames || count > DT_MAX_PARAMETERS ||
                             given < signature->required ||
                             given > signature->positional,
                         0))
        return dt_bind_any(signature, out, self, values, count, kwnames);
    out->signature = signature;
    out->form = 0;
    /* A fixed size is compiled without a call of memset. */
    memset(out->slots, 0, DT_MAX_PARAMETERS * sizeof *out->slots);
    int i = 0;
    if (self)
        out->slots[i++] = self;
    for (Py_ssize_t v = 0; v < count; v++)
        out->slots[i++] = values[v];
    out->given = given;
    return 0;
}

/* Parses the text, at the first call of the function. -1 with an exception set. */
int dt_signature_read(dt_signature *signature);

/* "sum(input, dim=None, keepdim=False, *, dtype=None)\n--\n\ndoc", which CPython splits
 * into
 * __text_signature__ and __doc__; for a method the first parameter becomes $self. name
 * is the public one. For PyMem_Free; NULL with MemoryError. */
char *dt_signature_doc(const char *text, const char *name, bool method,
                       const char *doc);

/* " | sum(dim=None, keepdim=False, *, dtype=None)": each form as a program writes it, after
 * a bar; without the first parameter of a method. As above for the rest. */
char *dt_signature_forms(const char *text, const char *name, bool method);

/* --- arguments as values, by the index of the parameter --- */

static inline bool dt_given(const dt_args *args, int i)
{
    return args->slots[i] && args->slots[i] != Py_None;
}

/* The Tensors of a tuple or list, or those given as arguments. */
typedef struct dt_tensor_list {
    Py_ssize_t count;
    const dt_tensor **items;
    PyObject **objects; /* borrowed, in the same order */
    PyObject *owner;    /* keeps them: a tuple; NULL: `kept` does, or the caller */
    PyObject *kept[8];
    Py_ssize_t nkept;
    const dt_tensor *few[8];
} dt_tensor_list;

/* The arguments of a bound call, and what they refer to until dt_values_release. */
typedef struct dt_values {
    dt_value v[DT_MAX_ARGUMENTS];
    int64_t ints[DT_MAX_INTS][DT_MAX_NDIM]; /* of Dims and Sizes */
    int nints;
    int64_t numel;    /* of all tensors: how long the call may take */
    dt_device device; /* of a factory's result */
    bool has_list;
    dt_tensor_list list;
    int64_t *many_ints; /* of Ints */
    PyObject *numbers;  /* a list of the complex ones, as Tensors */
} dt_values;

static inline void dt_values_begin(dt_values *s)
{
    s->nints = 0;
    s->numel = 0;
    s->device = dt_device_make(DT_CPU, 0);
    s->has_list = false;
    s->many_ints = NULL;
    s->numbers = NULL;
}
void dt_tensors_release(dt_tensor_list *list);
static inline void dt_values_release(dt_values *s)
{
    if (s->has_list)
        dt_tensors_release(&s->list);
    if (s->many_ints)
        PyMem_Free(s->many_ints);
    Py_XDECREF(s->numbers);
}

/* Arguments that may be left out, as their types have it then. */
int dt_take_bool(const dt_args *args, int i, bool *out);
int dt_take_dtype(const dt_args *args, int i, int *out);
int dt_take_device(const dt_args *args, int i, dt_device *out);

/* An argument that has to be a Tensor; *out NULL: None, or not given. */
int dt_take_tensor(const dt_args *args, int i, dt_tensor **out);

/* generator.c: the Generator's, which it keeps. NULL with TypeError, or with
 * RuntimeError if it is on another device. `function` is for messages. */
dt_generator *dt_generator_from_python(const char *function, PyObject *value,
                                       dt_device device);

/* *out NULL when not given; else fails where it is not one for `device`. */
int dt_take_generator(const dt_args *args, int i, dt_device device, dt_generator **out);

/* A seed: an int from -2^63 to 2^64-1. -1 with TypeError or ValueError that names
 * `function`. Or one from the system's randomness: -1 with OSError. */
int dt_seed_from_python(const char *function, PyObject *value, uint64_t *out);
int dt_seed_draw(uint64_t *out);

/* The same for values that are not arguments of their own (elements of a list,
 * operands). 1 and *out; 0 when value is of another type; -1 with an exception set.
 * Integers are what has
 * __index__, and tensors of one integer. */
int dt_int_from_python(PyObject *value, int64_t *out);

/* The commonest case of it: an int (and no bool) of one digit of Python's. */
static inline bool dt_small_int(PyObject *value, int64_t *out)
{
    if (!PyLong_CheckExact(value))
        return false;
#if PY_VERSION_HEX >= 0x030c0000
    if (!PyUnstable_Long_IsCompact((PyLongObject *)value))
        return false;
    *out = PyUnstable_Long_CompactValue((PyLongObject *)value);
#else
    Py_ssize_t size = Py_SIZE(value);
    if (size < -1 || size > 1)
        return false;
    *out = size * (int64_t)((PyLongObject *)value)->ob_digit[0];
#endif
    return true;
}

/* The commonest arguments; false for others. */
static inline bool dt_convert_quickly(const dt_parameter *p, PyObject *value,
                                      dt_value *v)
{
    bool operand = p->type == DT_PARAM_VALUE;
    bool number = operand || p->type == DT_PARAM_NUMBER || p->type == DT_PARAM_SCALAR;
    int64_t whole;
    v->given = true;
    v->tensor = NULL;
    if (p->type == DT_PARAM_INT)
        return dt_small_int(value, &v->i);
    if ((operand || p->type == DT_PARAM_TENSOR) && Py_TYPE(value) == dt_py.tensor_type)
        v->tensor = dt_tensor_of(value);
    else if (number && PyFloat_CheckExact(value))
        v->scalar = dt_scalar_float(PyFloat_AS_DOUBLE(value));
    else if (number && dt_small_int(value, &whole))
        v->scalar = dt_scalar_int(whole);
    else
        return false;
    return true;
}

/* Converts argument i, whose parameter is not Any, or what the schema has in its place.
 * -1 with an exception that names function and argument, says what was given and what
 * is expected. */
int dt_convert_ints(dt_values *s, const dt_args *args, int i);
int dt_convert_any(dt_values *s, const dt_args *args, int i);
static inline int dt_convert(dt_values *s, const dt_args *args, int i)
{
    dt_value *v = &s->v[i];
    dt_param_type type = args->signature->parameters[i].type;
    if (dt_param_is_per_dim(type))
        return dt_convert_ints(s, args, i);
    if (!args->slots[i] ||
        !dt_convert_quickly(&args->signature->parameters[i], args->slots[i], v))
        return dt_convert_any(s, args, i);
    s->numel += v->tensor ? v->tensor->numel : 0;
    return 0;
}

/* TypeError "sum(): dim is 'a' (str); give an int or a tuple of ints". Returns -1. */
int dt_argument_error(const dt_args *args, int i);

/* The arguments of DT_FACTORY_KWARGS, the first of which is parameter `first`. *dtype
 * is left as it is where none is given. Without a device it is that of like or, with
 * like NULL, the default device. A given out says type and device, which dtype and
 * device may only repeat. */
int dt_take_factory(const dt_args *args, int first, const dt_tensor *like, int *dtype,
                    dt_device *device);
/* made, which a factory is about to return (or NULL), wanting gradients where the
 * argument requires_grad, at index i, says so. Takes the reference over; NULL with an
 * exception set. */
PyObject *dt_with_grad(const dt_args *args, int i, PyObject *made);

/* The same for a factory with the words of DT_FACTORY_KWARGS from first on: in pinned
 * memory where pin_memory says so, too. */
PyObject *dt_finish_factory(const dt_args *args, int first, PyObject *made);
/* A copy of a Tensor in pinned memory, for `function`; NULL with an exception set. */
PyObject *dt_pinned(const char *function, PyObject *tensor);

/* A short text of a value for messages: "'abc' (str)", "3 (int)", "a Tensor of shape
 * [2, 3]". Writes into text, cut to size; returns text; leaves no exception. */
char *dt_describe(PyObject *value, char *text, size_t size);
#define DT_DESCRIBE_TEXT 160

#endif
