/* Functions of elements: a function, a method and an in-place method for each row of
 * ops/unary.def and ops/binary.def, and those that are made of several rows. */
#include <math.h>
#include <string.h>

#include "python/types/device.h"
#include "python/functions.h"
#include "python/output.h"
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/reduce.h"

static inline bool is_long(const dt_tensor *t)
{
    return t && t->numel > DT_LONG_NUMEL;
}

/* --- of one tensor --- */

static PyObject *unary_to(dt_unary_op op, const dt_args *args, int out_at)
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, is_long(x), dt_recorded_unary(op, &out->tensor, x));
    return dt_finish(args, out_at, out, status);
}

static PyObject *unary(dt_unary_op op, const dt_args *args)
{
    return unary_to(op, args, 1);
}

static PyObject *unary_in_place(dt_unary_op op, const dt_args *args)
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int status;
    DT_RUN(status, is_long(x), dt_recorded_unary_into(op, x, x));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

/* round to a number of decimals, before the point where that is negative. */
static PyObject *round_to(const dt_args *args, bool in_place)
{
    dt_tensor *x;
    int64_t decimals;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_int(args, 1, &decimals) < 0)
        return NULL;
    if (decimals && !dt_dtype_is_float((dt_dtype)x->dtype)) {
        PyErr_Format(PyExc_RuntimeError,
                     "round(): a tensor of type %s has no decimals; leave decimals out",
                     dt_dtype_name((dt_dtype)x->dtype));
        return NULL;
    }
    dt_binary_op up = decimals > 0 ? DT_BINARY_mul : DT_BINARY_div;
    dt_binary_op down = decimals > 0 ? DT_BINARY_div : DT_BINARY_mul;
    double places = decimals > 0 ? (double)decimals : -(double)decimals;
    dt_arg power =
        dt_arg_scalar(dt_scalar_float(places > 308 ? INFINITY : pow(10, places)));
    dt_tensor scaled = {.storage = NULL};
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_BEGIN_ALLOW_THREADS
    if (!decimals) {
        status = dt_recorded_unary(DT_UNARY_round, &out->tensor, x);
    } else {
        status = dt_recorded_binary(up, &scaled, dt_arg_tensor(x), power);
        if (status == 0)
            status = dt_recorded_unary_into(DT_UNARY_round, &scaled, &scaled);
        if (status == 0)
            status =
                dt_recorded_binary(down, &out->tensor, dt_arg_tensor(&scaled), power);
        dt_tensor_clear(&scaled);
    }
    DT_END_ALLOW_THREADS
    if (!in_place)
        return dt_finish(args, 2, out, status);
    PyObject *made = dt_tensor_result(out, status);
    status =
        made ? dt_copy_to_output("round_", args->slots[0], dt_tensor_of(made)) : -1;
    Py_XDECREF(made);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

/* A row's parameters where they are not the plain ones: a name that is defined as
 * SHAPE_row expands to a second argument, and the second argument is what counts. */
#define SECOND(a, b, ...) b
#define CHOOSE(...)       SECOND(__VA_ARGS__)
#define SHAPE_round       ~, DECIMALS
#define DECIMALS(name)                                                                 \
    DT_PUBLIC(name, #name "(input: Tensor, *, decimals: int = 0, out: Tensor = None)") \
    {                                                                                  \
        return round_to(args, false);                                                  \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, *, decimals: int = 0)")         \
    {                                                                                  \
        return round_to(args, true);                                                   \
    }
/* Elements below eps or above 1 - eps count as the bound. */
static PyObject *logit_of(const dt_args *args, bool in_place)
{
    dt_tensor *x;
    double eps;
    if (!dt_given(args, 1))
        return in_place ? unary_in_place(DT_UNARY_logit, args)
                        : unary_to(DT_UNARY_logit, args, 2);
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_float(args, 1, &eps) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    dt_scope scope;
    dt_scope_begin(&scope);
    dt_arg X = dt_arg_tensor(x), low = dt_arg_scalar(dt_scalar_float(eps)),
           high = dt_arg_scalar(dt_scalar_float(1 - eps));
    int status = -1;
    DT_BEGIN_ALLOW_THREADS
    dt_arg below = dt_scope_binary(&scope, DT_BINARY_lt, X, low);
    dt_arg above = dt_scope_binary(&scope, DT_BINARY_gt, X, high);
    dt_arg kept =
        dt_scope_where(&scope, below, low, dt_scope_where(&scope, above, high, X));
    if (!scope.failed)
        status = dt_recorded_unary(DT_UNARY_logit, &out->tensor, kept.tensor);
    dt_scope_end(&scope);
    DT_END_ALLOW_THREADS
    if (!in_place)
        return dt_finish(args, 2, out, status);
    PyObject *made = dt_tensor_result(out, status);
    status =
        made ? dt_copy_to_output("logit_", args->slots[0], dt_tensor_of(made)) : -1;
    Py_XDECREF(made);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}
#define SHAPE_logit ~, BOUNDED
#define BOUNDED(name)                                                                  \
    DT_PUBLIC(name, #name "(input: Tensor, eps: float = None, *, out: Tensor = None)") \
    {                                                                                  \
        return logit_of(args, false);                                                  \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, eps: float = None)")            \
    {                                                                                  \
        return logit_of(args, true);                                                   \
    }
#define SIMPLE(name)                                                                   \
    DT_PUBLIC(name, #name "(input: Tensor, *, out: Tensor = None)")                    \
    {                                                                                  \
        return unary(DT_UNARY_##name, args);                                           \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor)")                               \
    {                                                                                  \
        return unary_in_place(DT_UNARY_##name, args);                                  \
    }
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    CHOOSE(SHAPE_##name, SIMPLE, ~)(name)
#include "ops/unary.def"
#undef UNARY

/* --- of two --- */

/* The shape of out is that of the result: it can be written straight. */
static bool fits_output(const dt_tensor *out, dt_arg a, dt_arg b)
{
    int ndim = 0;
    int64_t shape[DT_MAX_NDIM];
    if (dt_shape_broadcast("", a.tensor ? a.tensor->ndim : 0,
                           a.tensor ? a.tensor->shape : NULL,
                           b.tensor ? b.tensor->ndim : 0,
                           b.tensor ? b.tensor->shape : NULL, &ndim, shape) < 0) {
        dt_error_clear();
        return false;
    }
    return dt_shape_equal(out->ndim, out->shape, ndim, shape);
}

static PyObject *binary_of_numbers(dt_binary_op op, dt_arg a, dt_arg b,
                                   const dt_args *args, int out_at);

static PyObject *binary_of(dt_binary_op op, dt_arg a, dt_arg b, const dt_args *args,
                           int out_at)
{
    int status;
    bool releases = is_long(a.tensor) || is_long(b.tensor);
    if (!a.tensor && !b.tensor) /* two numbers: the first becomes a tensor */
        return binary_of_numbers(op, a, b, args, out_at);
    if (out_at >= 0 && dt_given(args, out_at)) {
        dt_tensor *target;
        if (dt_take_tensor(args, out_at, &target) < 0)
            return NULL;
        if (dt_recording_arg(a) || dt_recording_arg(b) || dt_recording(target)) {
            dt_output_refuse(args->signature->name);
            return NULL;
        }
        if (fits_output(target, a, b)) {
            DT_RUN(status, releases, dt_recorded_binary_into(op, target, a, b));
            return status < 0 ? dt_raise() : Py_NewRef(args->slots[out_at]);
        }
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, releases, dt_recorded_binary(op, &out->tensor, a, b));
    if (out_at < 0)
        return dt_tensor_result(out, status);
    return dt_finish(args, out_at, out, status);
}

static PyObject *binary_of_numbers(dt_binary_op op, dt_arg a, dt_arg b,
                                   const dt_args *args, int out_at)
{
    dt_tensor first = {.storage = NULL};
    dt_device device;
    if (dt_default_device(&device) < 0)
        return NULL;
    if (dt_full(args->signature->name, &first, dt_result_type(&a, 1), 0, NULL, device,
                a.scalar) < 0)
        return dt_raise();
    PyObject *result = binary_of(op, dt_arg_tensor(&first), b, args, out_at);
    dt_tensor_clear(&first);
    return result;
}

static PyObject *into_input(dt_binary_op op, const dt_args *args, dt_arg other)
{
    dt_tensor *x;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    int status;
    DT_RUN(status, is_long(x) || is_long(other.tensor),
           dt_recorded_binary_into(op, x, dt_arg_tensor(x), other));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}

static PyObject *binary(dt_binary_op op, const dt_args *args)
{
    dt_arg a, b;
    if (dt_take_value(args, 0, &a) < 0 || dt_take_value(args, 1, &b) < 0)
        return NULL;
    return binary_of(op, a, b, args, 2);
}

static PyObject *binary_checked(dt_binary_op op, const dt_args *args)
{
    dt_tensor *a, *b;
    if (dt_take_tensor(args, 0, &a) < 0 || dt_take_tensor(args, 1, &b) < 0)
        return NULL;
    return binary_of(op, dt_arg_tensor(a), dt_arg_tensor(b), args, 2);
}

static PyObject *binary_in_place(dt_binary_op op, const dt_args *args)
{
    dt_arg b;
    if (dt_take_value(args, 1, &b) < 0)
        return NULL;
    return into_input(op, args, b);
}

/* add and sub: other times alpha, into *scaled where that is not 1. */
static int scale(const dt_args *args, dt_arg a, dt_arg *b, dt_tensor *scaled)
{
    dt_scalar alpha;
    if (!args->slots[2])
        return 0;
    if (dt_take_number(args, 2, &alpha) < 0)
        return -1;
    if (alpha.kind != DT_KIND_FLOAT && alpha.i == 1)
        return 0;
    dt_arg both[] = {a, *b};
    if (alpha.kind == DT_KIND_FLOAT && !dt_dtype_is_float(dt_result_type(both, 2))) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): alpha is the float %R, and the tensors hold integers; give an int",
            args->signature->name, args->slots[2]);
        return -1;
    }
    if (!b->tensor) {
        if (b->scalar.kind == DT_KIND_FLOAT || alpha.kind == DT_KIND_FLOAT)
            b->scalar = dt_scalar_float(dt_scalar_as_double(b->scalar) *
                                        dt_scalar_as_double(alpha));
        else
            b->scalar =
                dt_scalar_int((int64_t)((uint64_t)b->scalar.i * (uint64_t)alpha.i));
        return 0;
    }
    int status;
    DT_RUN(status, is_long(b->tensor),
           dt_recorded_binary(DT_BINARY_mul, scaled, *b, dt_arg_scalar(alpha)));
    if (status < 0)
        return dt_raise_status();
    *b = dt_arg_tensor(scaled);
    return 0;
}

static PyObject *add_or_sub(dt_binary_op op, const dt_args *args, bool in_place)
{
    dt_arg a, b;
    dt_tensor scaled; /* an initializer would clear all of it, at every call */
    scaled.storage = NULL;
    if (dt_take_value(args, 0, &a) < 0 || dt_take_value(args, 1, &b) < 0 ||
        scale(args, a, &b, &scaled) < 0)
        return NULL;
    PyObject *result =
        in_place ? into_input(op, args, b) : binary_of(op, a, b, args, 3);
    dt_tensor_clear(&scaled);
    return result;
}

DT_PUBLIC(rsub, "rsub(input: Tensor, other: Value, *, alpha: Number = 1)")
{
    dt_arg a, b;
    dt_tensor *x, scaled;
    scaled.storage = NULL;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_value(args, 1, &a) < 0)
        return NULL;
    b = dt_arg_tensor(x);
    if (scale(args, a, &b, &scaled) < 0)
        return NULL;
    PyObject *result = binary_of(DT_BINARY_sub, a, b, args, -1);
    dt_tensor_clear(&scaled);
    return result;
}

/* div: without rounding_mode the row; "floor" another row; "trunc" that of what is left
 * once the remainder is taken away, which is exact for integers too. */
static PyObject *divide(const dt_args *args, bool in_place)
{
    dt_arg a, b;
    const char *mode;
    int out_at = in_place ? -1 : 3;
    if (dt_take_value(args, 0, &a) < 0 || dt_take_value(args, 1, &b) < 0 ||
        dt_take_str(args, 2, &mode) < 0)
        return NULL;
    dt_binary_op op = mode ? DT_BINARY_floor_divide : DT_BINARY_div;
    if (!mode || !strcmp(mode, "floor"))
        return in_place ? into_input(op, args, b) : binary_of(op, a, b, args, out_at);
    if (strcmp(mode, "trunc") != 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "div(): rounding_mode is '%s'; give None, 'trunc' or 'floor'",
                     mode);
        return NULL;
    }
    if (!a.tensor && !b.tensor) {
        PyErr_SetString(PyExc_TypeError,
                        "div(): input and other are both numbers; give a Tensor "
                        "for one of them, or use Python's own division");
        return NULL;
    }
    dt_arg both[] = {a, b};
    dt_tensor part = {.storage = NULL}, rest = {.storage = NULL};
    PyObject *result = NULL;
    int status;
    if (dt_dtype_is_float(dt_result_type(both, 2))) {
        dt_tensor_object *out = dt_tensor_object_new();
        if (!out)
            return NULL;
        DT_BEGIN_ALLOW_THREADS
        status = dt_recorded_binary(DT_BINARY_div, &part, a, b);
        if (status == 0)
            status = dt_recorded_unary(DT_UNARY_trunc, &out->tensor, &part);
        dt_tensor_clear(&part);
        DT_END_ALLOW_THREADS
        if (in_place) {
            PyObject *whole = dt_tensor_result(out, status);
            status =
                whole ? dt_copy_to_output("div_", args->slots[0], dt_tensor_of(whole))
                      : -1;
            Py_XDECREF(whole);
            return status < 0 ? NULL : Py_NewRef(args->slots[0]);
        }
        return dt_finish(args, out_at, out, status);
    }
    DT_BEGIN_ALLOW_THREADS
    status = dt_recorded_binary(DT_BINARY_fmod, &rest, a, b);
    if (status == 0)
        status = dt_recorded_binary(DT_BINARY_sub, &part, a, dt_arg_tensor(&rest));
    DT_END_ALLOW_THREADS
    if (status < 0)
        dt_raise();
    else if (!in_place)
        result = binary_of(op, dt_arg_tensor(&part), b, args, out_at);
    else if (dt_recorded_binary_into(op, dt_tensor_of(args->slots[0]),
                                     dt_arg_tensor(&part), b) < 0)
        dt_raise();
    else
        result = Py_NewRef(args->slots[0]);
    dt_tensor_clear(&rest);
    dt_tensor_clear(&part);
    return result;
}

#define PLAIN(name)                                                                    \
    DT_PUBLIC(name, #name "(input: Value, other: Value, *, out: Tensor = None)")       \
    {                                                                                  \
        return binary(DT_BINARY_##name, args);                                         \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, other: Value)")                 \
    {                                                                                  \
        return binary_in_place(DT_BINARY_##name, args);                                \
    }
#define SCALED(name)                                                                   \
    DT_PUBLIC(                                                                         \
        name, #name                                                                    \
        "(input: Value, other: Value, *, alpha: Number = 1, out: Tensor = None)")      \
    {                                                                                  \
        return add_or_sub(DT_BINARY_##name, args, false);                              \
    }                                                                                  \
    DT_PUBLIC(name##_in_place,                                                         \
              #name "_(input: Tensor, other: Value, *, alpha: Number = 1)")            \
    {                                                                                  \
        return add_or_sub(DT_BINARY_##name, args, true);                               \
    }
#define ROUNDED(name)                                                                  \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Value, other: Value, *, rounding_mode: str = None, "      \
                    "out: Tensor = None)")                                             \
    {                                                                                  \
        return divide(args, false);                                                    \
    }                                                                                  \
    DT_PUBLIC(name##_in_place,                                                         \
              #name "_(input: Tensor, other: Value, *, rounding_mode: str = None)")    \
    {                                                                                  \
        return divide(args, true);                                                     \
    }
#define POWER(name)                                                                    \
    DT_PUBLIC(name, #name "(input: Value, exponent: Value, *, out: Tensor = None)")    \
    {                                                                                  \
        return dt_tensor_check(args->slots[0]) || dt_tensor_check(args->slots[1])      \
                   ? binary(DT_BINARY_##name, args)                                    \
                   : (dt_argument_error(args, 0), NULL);                               \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, exponent: Value)")              \
    {                                                                                  \
        return binary_in_place(DT_BINARY_##name, args);                                \
    }
/* Between tensors only: a number on one side has an operator or another function. */
#define TENSORS(name)                                                                  \
    DT_PUBLIC(name, #name "(input: Tensor, other: Tensor, *, out: Tensor = None)")     \
    {                                                                                  \
        return binary_checked(DT_BINARY_##name, args);                                 \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, other: Tensor)")                \
    {                                                                                  \
        return dt_tensor_check(args->slots[1])                                         \
                   ? binary_in_place(DT_BINARY_##name, args)                           \
                   : (dt_argument_error(args, 1), NULL);                               \
    }
/* Between a tensor and a tensor or number. */
#define FIRST_TENSOR(name)                                                             \
    DT_PUBLIC(name, #name "(input: Tensor, other: Value, *, out: Tensor = None)")      \
    {                                                                                  \
        dt_tensor *x;                                                                  \
        return dt_take_tensor(args, 0, &x) < 0 ? NULL                                  \
                                               : binary(DT_BINARY_##name, args);       \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, other: Value)")                 \
    {                                                                                  \
        return binary_in_place(DT_BINARY_##name, args);                                \
    }
#define ORDER_OF(name)                                                                 \
    DT_PUBLIC(name, #name "(n: int, input: Tensor, *, out: Tensor = None) | " #name    \
                          "(input: Tensor, n: int, *, out: Tensor = None)")            \
    {                                                                                  \
        return derivative_of_digamma(args, false);                                     \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, n: int)")                       \
    {                                                                                  \
        return derivative_of_digamma(args, true);                                      \
    }
static PyObject *derivative_of_digamma(const dt_args *args, bool in_place)
{
    int64_t n;
    int at = in_place || args->form == 1 ? 1 : 0;
    dt_arg x;
    dt_tensor *input;
    if (dt_take_int(args, at, &n) < 0 || dt_take_tensor(args, 1 - at, &input) < 0)
        return NULL;
    if (n < 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "polygamma(): n is %lld; give 0 or a greater number",
                     (long long)n);
        return NULL;
    }
    x = dt_arg_tensor(input);
    dt_arg order = dt_arg_scalar(dt_scalar_float((double)n));
    if (!in_place)
        return binary_of(DT_BINARY_polygamma, order, x, args, 2);
    int status;
    DT_RUN(status, is_long(input),
           dt_recorded_binary_into(DT_BINARY_polygamma, input, order, x));
    return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
}
/* Integers, and no bools. */
#define WHOLE(name)                                                                    \
    DT_PUBLIC(name, #name "(input: Tensor, other: Tensor, *, out: Tensor = None)")     \
    {                                                                                  \
        return refuse_bools(args) < 0 ? NULL : binary_checked(DT_BINARY_##name, args); \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, other: Tensor)")                \
    {                                                                                  \
        return refuse_bools(args) < 0 ? NULL                                           \
                                      : binary_in_place(DT_BINARY_##name, args);       \
    }
static int refuse_bools(const dt_args *args)
{
    dt_tensor *a, *b;
    if (dt_take_tensor(args, 0, &a) < 0 || dt_take_tensor(args, 1, &b) < 0)
        return -1;
    if (a->dtype != DT_BOOL || b->dtype != DT_BOOL)
        return 0;
    PyErr_Format(PyExc_NotImplementedError,
                 "%s(): not defined for bools; convert them with .long()",
                 args->signature->name);
    return -1;
}
/* What stands where the sign changes has to be of the same type. */
#define STEP(name)                                                                     \
    DT_PUBLIC(name, #name "(input: Tensor, values: Tensor, *, out: Tensor = None)")    \
    {                                                                                  \
        return refuse_other_type(args) < 0 ? NULL                                      \
                                           : binary_checked(DT_BINARY_##name, args);   \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, values: Tensor)")               \
    {                                                                                  \
        return refuse_other_type(args) < 0 ? NULL                                      \
                                           : binary_in_place(DT_BINARY_##name, args);  \
    }
static int refuse_other_type(const dt_args *args)
{
    dt_tensor *a, *b;
    if (dt_take_tensor(args, 0, &a) < 0 || dt_take_tensor(args, 1, &b) < 0)
        return -1;
    if (a->dtype == b->dtype)
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "%s(): input is of type %s and values of type %s; convert one of them "
                 "with .to()",
                 args->signature->name, dt_dtype_name((dt_dtype)a->dtype),
                 dt_dtype_name((dt_dtype)b->dtype));
    return -1;
}
#define SHAPE_gcd         ~, WHOLE
#define SHAPE_lcm         ~, WHOLE
#define SHAPE_heaviside   ~, STEP
#define SHAPE_maximum     ~, TENSORS
#define SHAPE_fmax        ~, TENSORS
#define SHAPE_fmin        ~, TENSORS
#define SHAPE_hypot       ~, TENSORS
#define SHAPE_logaddexp   ~, TENSORS
#define SHAPE_logaddexp2  ~, TENSORS
#define SHAPE_copysign    ~, FIRST_TENSOR
#define SHAPE_polygamma   ~, ORDER_OF
#define SHAPE_minimum     ~, TENSORS
#define SHAPE_atan2       ~, TENSORS
#define SHAPE_logical_and ~, TENSORS
#define SHAPE_logical_or  ~, TENSORS
#define SHAPE_logical_xor ~, TENSORS
#define SHAPE_add         ~, SCALED
#define SHAPE_sub         ~, SCALED
#define SHAPE_div         ~, ROUNDED
#define SHAPE_pow         ~, POWER
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    CHOOSE(SHAPE_##name, PLAIN, ~)(name)
#include "ops/binary.def"
#undef BINARY

DT_PUBLIC(equal, "equal(input: Tensor, other: Tensor)")
{
    dt_tensor *a, *b;
    if (dt_take_tensor(args, 0, &a) < 0 || dt_take_tensor(args, 1, &b) < 0)
        return NULL;
    if (!dt_shape_equal(a->ndim, a->shape, b->ndim, b->shape))
        Py_RETURN_FALSE;
    dt_tensor same = {.storage = NULL}, total = {.storage = NULL};
    dt_scalar verdict = dt_scalar_bool(false);
    int status;
    DT_BEGIN_ALLOW_THREADS
    status = dt_check_same_device("equal", "input", a, "other", b);
    if (status == 0)
        status =
            dt_recorded_binary(DT_BINARY_eq, &same, dt_arg_tensor(a), dt_arg_tensor(b));
    if (status == 0)
        status =
            dt_recorded_reduce(DT_REDUCE_all, &total, &same, 0, NULL, false, -1, 0);
    if (status == 0)
        status = dt_item("equal", &total, &verdict);
    dt_tensor_clear(&total);
    dt_tensor_clear(&same);
    DT_END_ALLOW_THREADS
    if (status < 0)
        return dt_raise();
    return PyBool_FromLong(verdict.i != 0);
}

/* What docstrings say of a class of ops/unary.def. */
#define UNARY_FLOAT                                                                    \
    "\n\nFor any shape and type; integers and bools become the default floating "      \
    "type. "                                                                           \
    "The result has input's shape."
#define UNARY_NUMBER                                                                   \
    "\n\nFor integers and floats of any shape. The result has input's shape and type."
#define UNARY_ANY "\n\nFor any shape and type. The result has both."
#define UNARY_BITS                                                                     \
    "\n\nFor integers and bools of any shape; NotImplementedError for floats. The "    \
    "result has input's shape and type."
#define UNARY_PREDICATE                                                                \
    "\n\nFor any shape and type. The result is of bool, in input's shape."

/* And of one of ops/binary.def. */
#define BROADCASTS                                                                     \
    "\n\nThe shapes broadcast and the devices are one (RuntimeError where not). "
#define BINARY_ANY BROADCASTS "The result has the type that both promote to."
#define BINARY_NUMBER                                                                  \
    BROADCASTS "The result has the type that both promote to; not for two of bool."
#define BINARY_DIVIDES                                                                 \
    BINARY_NUMBER " An integer divided by 0 is a RuntimeError on the CPU; on a GPU "   \
                  "it gives 0."
#define BINARY_FLOAT                                                                   \
    BROADCASTS "The result has the type that both promote to, and where that is no "   \
               "floating type, the default one."
#define BINARY_REAL                                                                    \
    BROADCASTS "The result has the type that both promote to, which is a floating "    \
               "one (NotImplementedError where not)."
#define BINARY_BITS                                                                    \
    BROADCASTS "For integers and bools (NotImplementedError for floats); the result "  \
               "has the type that both promote to."
#define BINARY_COMPARE BROADCASTS "The result is of bool."

/* And of any in-place method. */
#define WRITES                                                                         \
    "\n\nThe result has to have input's shape, and a type that input's can hold "      \
    "(RuntimeError where not)."

static const dt_function rows[] = {
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    {#name, &name##_signature, name##_function, name##_method, doc UNARY_##class},     \
        {#name "_", &name##_in_place_signature, name##_in_place_function,              \
         name##_in_place_method, "In place: " doc WRITES},
#include "ops/unary.def"
#undef UNARY
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    {#name, &name##_signature, name##_function, name##_method, doc BINARY_##class},    \
        {#name "_", &name##_in_place_signature, CHOOSE(FUNCTION_##name, NULL, ~),      \
         name##_in_place_method, "In place: " doc WRITES},
/* The few whose in-place form PyTorch has as a function, too. */
#define FUNCTION_gcd   ~, gcd_in_place_function
#define FUNCTION_lcm   ~, lcm_in_place_function
#define FUNCTION_xlogy ~, xlogy_in_place_function
#include "ops/binary.def"
#undef BINARY
#define NAMED(name, row, in_place)                                                     \
    {#name, &row##_signature, row##_function, row##_method, "The same as " #row "."},  \
        {#name "_", &row##_in_place_signature, in_place, row##_in_place_method,        \
         "The same as " #row "_."},
#define UNARY_ALIAS(name, row)  NAMED(name, row, row##_in_place_function)
#define BINARY_ALIAS(name, row) NAMED(name, row, NULL)
#include "ops/alias.def"
#undef UNARY_ALIAS
#undef BINARY_ALIAS
    DT_FUNCTION(rsub, "rsub", "other minus alpha times input."),
    DT_BOTH(equal, "equal",
            "Whether both have the same shape and elements.\n\n"
            "Returns a bool; synchronizes with the GPU. RuntimeError for two devices."),
};

int dt_setup_elementwise(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
