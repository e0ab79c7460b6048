/* Functions of elements: a function, a method and an in-place method for each row of
 * ops/elementwise.def. */
#include <math.h>
#include <string.h>

#include "python/types/device.h"
#include "python/functions.h"
#include "python/output.h"
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"

/* --- calls --- */

/* Instead of the index of a function's parameter `out`. */
enum { IN_PLACE = -1, NO_OUT = -2 };

/* The operands of a call are its first parameters, of the kinds of the signature. */
static int take_operands(const dt_args *args, int count, dt_arg *out)
{
    for (int i = 0; i < count; i++) {
        dt_tensor *t;
        if (args->signature->parameters[i].type == DT_PARAM_VALUE) {
            if (dt_take_value(args, i, &out[i]) < 0)
                return -1;
        } else {
            if (dt_take_tensor(args, i, &t) < 0)
                return -1;
            out[i] = dt_arg_tensor(t);
        }
    }
    return 0;
}

/* The shape of out is that of the result: it can be written straight. */
static bool fits_output(const dt_tensor *out, const dt_arg *operands, int count)
{
    int ndim = 0;
    int64_t shape[DT_MAX_NDIM];
    for (int i = 0; i < count; i++) {
        const dt_tensor *t = operands[i].tensor;
        if (t &&
            dt_shape_broadcast("", ndim, shape, t->ndim, t->shape, &ndim, shape) < 0) {
            dt_error_clear();
            return false;
        }
    }
    return dt_shape_equal(out->ndim, out->shape, ndim, shape);
}

static PyObject *call_into(dt_elementwise_op op, PyObject *target,
                           const dt_arg *operands, bool releases)
{
    int status;
    DT_RUN(status, releases,
           dt_recorded_elementwise_into(op, dt_tensor_of(target), operands));
    return status < 0 ? dt_raise() : Py_NewRef(target);
}

/* The row `op` of operands: into the first argument (IN_PLACE), into `out` where one is
 * given, or a new Tensor. */
static PyObject *call(dt_elementwise_op op, dt_arg *operands, const dt_args *args,
                      int out_at)
{
    const int arity = dt_elementwise_rows[op].arity;
    bool releases = false, has_tensor = false, reads_target = false, records = false;
    for (int i = 0; i < arity; i++) {
        const dt_tensor *t = operands[i].tensor;
        releases |= t && t->numel > DT_LONG_NUMEL;
        has_tensor |= t != NULL;
        reads_target |= out_at == IN_PLACE && t == dt_tensor_of(args->slots[0]);
        records |= dt_recording_arg(operands[i]);
    }
    if (reads_target)
        return call_into(op, args->slots[0], operands, releases);
    if (out_at >= 0 && dt_given(args, out_at) && has_tensor) {
        dt_tensor *target;
        if (dt_take_tensor(args, out_at, &target) < 0)
            return NULL;
        if (records || dt_recording(target)) {
            dt_output_refuse(args->signature->name);
            return NULL;
        }
        if (fits_output(target, operands, arity))
            return call_into(op, args->slots[out_at], operands, releases);
    }
    dt_tensor first; /* an initializer would clear all of it, at every call */
    first.storage = NULL;
    if (!has_tensor) { /* of numbers: the first becomes a tensor */
        dt_device device;
        if (dt_default_device(&device) < 0)
            return NULL;
        if (dt_full(args->signature->name, &first, dt_result_type(operands, 1), 0, NULL,
                    device, operands[0].scalar) < 0)
            return dt_raise();
        operands[0] = dt_arg_tensor(&first);
    }
    dt_tensor_object *out = dt_tensor_object_new();
    int status = -1;
    if (out) {
        DT_RUN(status, releases, dt_recorded_elementwise(op, &out->tensor, operands));
    }
    dt_tensor_clear(&first);
    if (!out)
        return NULL;
    if (out_at >= 0)
        return dt_finish(args, out_at, out, status);
    PyObject *result = dt_tensor_result(out, status);
    if (out_at == NO_OUT || !result)
        return result;
    status =
        dt_copy_to_output(args->signature->name, args->slots[0], dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

/* As call, when temporaries in `scope` are among the operands. Ends the scope. */
static PyObject *call_end(dt_scope *scope, dt_elementwise_op op, dt_arg *operands,
                          const dt_args *args, int out_at)
{
    PyObject *result = scope->failed ? dt_raise() : call(op, operands, args, out_at);
    dt_scope_end(scope);
    return result;
}

/* --- rows whose parameters are their operands --- */

static PyObject *regular(dt_elementwise_op op, const dt_args *args, bool in_place)
{
    dt_arg operands[3];
    const int arity = dt_elementwise_rows[op].arity;
    if (take_operands(args, arity, operands) < 0)
        return NULL;
    return call(op, operands, args, in_place ? IN_PLACE : arity);
}

#define REGULAR(name, first, rest)                                                     \
    DT_PUBLIC(name, #name "(input: " #first rest ", *, out: Tensor = None)")           \
    {                                                                                  \
        return regular(DT_OP_##name, args, false);                                     \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor" rest ")")                       \
    {                                                                                  \
        return regular(DT_OP_##name, args, true);                                      \
    }
#define NOTHING(...)
#define CALL_INPUT                         REGULAR, Tensor, ""
#define CALL_INPUT_AND(kind, rest)         REGULAR, kind, ", " rest
#define CALL_OWN                           NOTHING, ~, ~
#define CALL_OTHER                         NOTHING, ~, ~
#define DEFINE_(name, define, first, rest) define(name, first, rest)
#define DEFINE(...)                        DEFINE_(__VA_ARGS__)
#define ELEMENTWISE(name, arity, class, flags, low, high, call, ...)                   \
    DEFINE(name, CALL_##call)
#include "ops/elementwise.def"

/* --- others --- */

/* round to a number of decimals, before the point where that is negative. */
static PyObject *round_to(const dt_args *args, int out_at)
{
    dt_arg operands[2];
    int64_t decimals;
    if (take_operands(args, 1, operands) < 0 || dt_take_int(args, 1, &decimals) < 0)
        return NULL;
    if (!decimals)
        return call(DT_OP_round, operands, args, out_at);
    dt_dtype dtype = (dt_dtype)operands[0].tensor->dtype;
    if (!dt_dtype_is_float(dtype)) {
        PyErr_Format(PyExc_RuntimeError,
                     "round(): a tensor of type %s has no decimals; leave decimals out",
                     dt_dtype_name(dtype));
        return NULL;
    }
    dt_elementwise_op up = decimals > 0 ? DT_OP_mul : DT_OP_div;
    dt_elementwise_op down = decimals > 0 ? DT_OP_div : DT_OP_mul;
    double places = fabs((double)decimals);
    operands[1] =
        dt_arg_scalar(dt_scalar_float(places > 308 ? INFINITY : pow(10, places)));
    dt_scope scope;
    dt_scope_begin(&scope);
    DT_BEGIN_ALLOW_THREADS
    operands[0] = dt_scope_elementwise(&scope, up, operands);
    operands[0] = dt_scope_elementwise(&scope, DT_OP_round, operands);
    DT_END_ALLOW_THREADS
    return call_end(&scope, down, operands, args, out_at);
}
DT_PUBLIC(round, "round(input: Tensor, *, decimals: int = 0, out: Tensor = None)")
{
    return round_to(args, 2);
}
DT_PUBLIC(round_in_place, "round_(input: Tensor, *, decimals: int = 0)")
{
    return round_to(args, IN_PLACE);
}

/* Elements below eps or above 1 - eps count as the bound. */
static PyObject *logit_of(const dt_args *args, int out_at)
{
    dt_arg operands[1];
    double eps;
    if (take_operands(args, 1, operands) < 0)
        return NULL;
    if (!dt_given(args, 1))
        return call(DT_OP_logit, operands, args, out_at);
    if (dt_take_float(args, 1, &eps) < 0)
        return NULL;
    dt_arg low = dt_arg_scalar(dt_scalar_float(eps)),
           high = dt_arg_scalar(dt_scalar_float(1 - eps));
    dt_scope scope;
    dt_scope_begin(&scope);
    DT_BEGIN_ALLOW_THREADS
    dt_arg below = dt_scope_elementwise(&scope, DT_OP_lt, DT_ARGS(operands[0], low)),
           above = dt_scope_elementwise(&scope, DT_OP_gt, DT_ARGS(operands[0], high));
    operands[0] =
        dt_scope_elementwise(&scope, DT_OP_where, DT_ARGS(above, high, operands[0]));
    operands[0] =
        dt_scope_elementwise(&scope, DT_OP_where, DT_ARGS(below, low, operands[0]));
    DT_END_ALLOW_THREADS
    return call_end(&scope, DT_OP_logit, operands, args, out_at);
}
DT_PUBLIC(logit, "logit(input: Tensor, eps: float = None, *, out: Tensor = None)")
{
    return logit_of(args, 2);
}
DT_PUBLIC(logit_in_place, "logit_(input: Tensor, eps: float = None)")
{
    return logit_of(args, IN_PLACE);
}

/* a + alpha * b, or a - alpha * b. */
static PyObject *add_scaled(dt_elementwise_op op, dt_arg a, dt_arg b,
                            const dt_args *args, int out_at)
{
    dt_arg operands[] = {a, b};
    dt_scalar alpha;
    if (!args->slots[2])
        return call(op, operands, args, out_at);
    if (dt_take_number(args, 2, &alpha) < 0)
        return NULL;
    if (alpha.kind == DT_KIND_FLOAT &&
        !dt_dtype_is_float(dt_result_type(operands, 2))) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): alpha is the float %R, and the tensors hold integers; give an int",
            args->signature->name, args->slots[2]);
        return NULL;
    }
    dt_scope scope;
    dt_scope_begin(&scope);
    if (!b.tensor && b.scalar.kind != DT_KIND_FLOAT && alpha.kind != DT_KIND_FLOAT) {
        if (alpha.i != 1)
            operands[1].scalar =
                dt_scalar_int((int64_t)((uint64_t)b.scalar.i * (uint64_t)alpha.i));
    } else {
        DT_BEGIN_ALLOW_THREADS
        operands[1] =
            dt_scope_elementwise(&scope, DT_OP_mul, DT_ARGS(b, dt_arg_scalar(alpha)));
        DT_END_ALLOW_THREADS
    }
    return call_end(&scope, op, operands, args, out_at);
}
static PyObject *add_or_sub(dt_elementwise_op op, const dt_args *args, int out_at)
{
    dt_arg operands[2];
    if (take_operands(args, 2, operands) < 0)
        return NULL;
    return add_scaled(op, operands[0], operands[1], args, out_at);
}
#define SCALED(name)                                                                   \
    DT_PUBLIC(name, #name "(input: Value, other: Value, *, alpha: Number = 1, "        \
                          "out: Tensor = None)")                                       \
    {                                                                                  \
        return add_or_sub(DT_OP_##name, args, 3);                                      \
    }                                                                                  \
    DT_PUBLIC(name##_in_place,                                                         \
              #name "_(input: Tensor, other: Value, *, alpha: Number = 1)")            \
    {                                                                                  \
        return add_or_sub(DT_OP_##name, args, IN_PLACE);                               \
    }
SCALED(add)
SCALED(sub)

DT_PUBLIC(rsub, "rsub(input: Tensor, other: Value, *, alpha: Number = 1)")
{
    dt_arg operands[2];
    if (take_operands(args, 2, operands) < 0)
        return NULL;
    return add_scaled(DT_OP_sub, operands[1], operands[0], args, NO_OUT);
}

/* div: without rounding_mode the row; "floor" another row; "trunc" that of what is left
 * once the remainder is taken away, which is exact for integers too. */
static PyObject *divide(const dt_args *args, int out_at)
{
    dt_arg operands[2];
    const char *mode;
    if (take_operands(args, 2, operands) < 0 || dt_take_str(args, 2, &mode) < 0)
        return NULL;
    if (!mode)
        return call(DT_OP_div, operands, args, out_at);
    if (!strcmp(mode, "floor"))
        return call(DT_OP_floor_divide, operands, args, out_at);
    if (strcmp(mode, "trunc") != 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "div(): rounding_mode is '%s'; give None, 'trunc' or 'floor'",
                     mode);
        return NULL;
    }
    if (!operands[0].tensor && !operands[1].tensor) {
        PyErr_SetString(PyExc_TypeError,
                        "div(): input and other are both numbers; give a Tensor "
                        "for one of them, or use Python's own division");
        return NULL;
    }
    dt_elementwise_op last = DT_OP_floor_divide;
    dt_scope scope;
    dt_scope_begin(&scope);
    DT_BEGIN_ALLOW_THREADS
    if (dt_dtype_is_float(dt_result_type(operands, 2))) {
        operands[0] = dt_scope_elementwise(&scope, DT_OP_div, operands);
        last = DT_OP_trunc;
    } else {
        dt_arg rest = dt_scope_elementwise(&scope, DT_OP_fmod, operands);
        operands[0] =
            dt_scope_elementwise(&scope, DT_OP_sub, DT_ARGS(operands[0], rest));
    }
    DT_END_ALLOW_THREADS
    return call_end(&scope, last, operands, args, out_at);
}
DT_PUBLIC(div, "div(input: Value, other: Value, *, rounding_mode: str = None, "
               "out: Tensor = None)")
{
    return divide(args, 3);
}
DT_PUBLIC(div_in_place,
          "div_(input: Tensor, other: Value, *, rounding_mode: str = None)")
{
    return divide(args, IN_PLACE);
}

DT_PUBLIC(pow, "pow(input: Value, exponent: Value, *, out: Tensor = None)")
{
    if (dt_tensor_check(args->slots[0]) || dt_tensor_check(args->slots[1]))
        return regular(DT_OP_pow, args, false);
    dt_argument_error(args, 0);
    return NULL;
}
DT_PUBLIC(pow_in_place, "pow_(input: Tensor, exponent: Value)")
{
    return regular(DT_OP_pow, args, true);
}

static PyObject *polygamma_of(const dt_args *args, int n_at, int out_at)
{
    int64_t n;
    dt_tensor *input;
    if (dt_take_int(args, n_at, &n) < 0 || dt_take_tensor(args, 1 - n_at, &input) < 0)
        return NULL;
    if (n < 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "polygamma(): n is %lld; give 0 or a greater number",
                     (long long)n);
        return NULL;
    }
    dt_arg operands[] = {dt_arg_scalar(dt_scalar_float((double)n)),
                         dt_arg_tensor(input)};
    return call(DT_OP_polygamma, operands, args, out_at);
}
DT_PUBLIC(polygamma, "polygamma(n: int, input: Tensor, *, out: Tensor = None) | "
                     "polygamma(input: Tensor, n: int, *, out: Tensor = None)")
{
    return polygamma_of(args, args->form, 2);
}
DT_PUBLIC(polygamma_in_place, "polygamma_(input: Tensor, n: int)")
{
    return polygamma_of(args, 1, IN_PLACE);
}

/* addcmul, addcdiv: tensor1 times value. */
static PyObject *add_product(dt_elementwise_op op, const dt_args *args, int out_at)
{
    dt_arg operands[3];
    dt_scalar value;
    if (take_operands(args, 3, operands) < 0 || dt_take_number(args, 3, &value) < 0)
        return NULL;
    if (op == DT_OP_addcdiv && !dt_dtype_is_float(dt_result_type(operands + 1, 2))) {
        PyErr_SetString(PyExc_RuntimeError,
                        "addcdiv(): tensor1 and tensor2 hold integers, whose quotients "
                        "would be rounded; convert one of them with .float()");
        return NULL;
    }
    if (value.kind == DT_KIND_FLOAT && !dt_dtype_is_float(dt_result_type(operands, 3)))
        value = dt_scalar_int((int64_t)value.f);
    dt_scope scope;
    dt_scope_begin(&scope);
    DT_BEGIN_ALLOW_THREADS
    operands[1] = dt_scope_elementwise(&scope, DT_OP_mul,
                                       DT_ARGS(operands[1], dt_arg_scalar(value)));
    DT_END_ALLOW_THREADS
    return call_end(&scope, op, operands, args, out_at);
}
#define PRODUCT(name)                                                                  \
    DT_PUBLIC(name, #name "(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, "      \
                          "value: Number = 1, out: Tensor = None)")                    \
    {                                                                                  \
        return add_product(DT_OP_##name, args, 4);                                     \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, tensor1: Tensor, "              \
                                     "tensor2: Tensor, *, value: Number = 1)")         \
    {                                                                                  \
        return add_product(DT_OP_##name, args, IN_PLACE);                              \
    }
PRODUCT(addcmul)
PRODUCT(addcdiv)

/* No bound: what no element of the type lies beyond. */
static dt_arg boundless(dt_dtype dtype, bool low)
{
    if (dt_dtype_is_float(dtype))
        return dt_arg_scalar(dt_scalar_float(low ? -INFINITY : INFINITY));
    int bits = 8 * (int)dt_dtype_size(dtype);
    dt_element minus = dt_element_from_scalar(dtype, dt_scalar_int(-1));
    bool is_signed = dt_scalar_as_double(dt_element_to_scalar(dtype, &minus)) < 0;
    int64_t top = is_signed ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                            : (int64_t)(((uint64_t)1 << bits) - 1);
    if (dtype == DT_BOOL)
        top = 1;
    return dt_arg_scalar(dt_scalar_int(low ? (is_signed ? -top - 1 : 0) : top));
}

static PyObject *clamp_to(const dt_args *args, int out_at)
{
    dt_arg operands[3], given[3];
    int count = 1;
    if (take_operands(args, 1, operands) < 0)
        return NULL;
    given[0] = operands[0];
    for (int i = 1; i < 3; i++)
        if (dt_given(args, i) && dt_take_value(args, i, &given[count++]) < 0)
            return NULL;
    if (count == 1) {
        PyErr_Format(PyExc_RuntimeError, "%s(): neither min nor max is given; give one",
                     args->signature->name);
        return NULL;
    }
    dt_dtype dtype = dt_result_type(given, count);
    operands[1] = dt_given(args, 1) ? given[1] : boundless(dtype, true);
    operands[2] = dt_given(args, 2) ? given[count - 1] : boundless(dtype, false);
    return call(DT_OP_clamp, operands, args, out_at);
}
DT_PUBLIC(clamp, "clamp(input: Tensor, min: Value = None, max: Value = None, *, "
                 "out: Tensor = None)")
{
    return clamp_to(args, 3);
}
DT_PUBLIC(clamp_in_place, "clamp_(input: Tensor, min: Value = None, max: Value = None)")
{
    return clamp_to(args, IN_PLACE);
}

/* where(condition) alone: as nonzero(as_tuple=True). */
DT_PUBLIC(where, "where(condition: Tensor, input: Value, other: Value, *, "
                 "out: Tensor = None) | where(condition: Tensor)")
{
    dt_tensor *condition;
    if (args->form == 0)
        return regular(DT_OP_where, args, false);
    return dt_take_tensor(args, 0, &condition) < 0 ? NULL : dt_nonzero_tuple(condition);
}
DT_PUBLIC(where_of, "where(input: Tensor, condition: Tensor, other: Value)")
{
    dt_arg operands[3];
    if (take_operands(args, 3, operands) < 0)
        return NULL;
    dt_arg input = operands[0];
    operands[0] = operands[1];
    operands[1] = input;
    return call(DT_OP_where, operands, args, NO_OUT);
}

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
        status = dt_recorded_elementwise(DT_OP_eq, &same,
                                         DT_ARGS(dt_arg_tensor(a), dt_arg_tensor(b)));
    if (status == 0)
        status = DT_CALL(all, &total, dt_value_tensor(&same));
    if (status == 0)
        status = dt_item("equal", &total, &verdict);
    dt_tensor_clear(&total);
    dt_tensor_clear(&same);
    DT_END_ALLOW_THREADS
    if (status < 0)
        return dt_raise();
    return PyBool_FromLong(verdict.i != 0);
}

/* --- names and docstrings --- */

/* doc is the last column of a class. */
#define CLASS_DOC(...) CLASS_DOC_(__VA_ARGS__)
#define CLASS_DOC_(b, i, f, truth, choice, exact, cost, rule, doc) doc
#define ARITY_DOC_1                                                ""
#define ARITY_DOC_2                                                                    \
    "The shapes broadcast and the devices are one (RuntimeError where not). "
#define ARITY_DOC_3 ARITY_DOC_2
#define WRITES                                                                         \
    "\n\nThe result has to have input's shape, and a type that input's can hold "      \
    "(RuntimeError where not)."

/* Whether name_ is a function of the module, too. */
enum {
#define ELEMENTWISE(name, arity, class, flags, ...)                                    \
    IS_FUNCTION_##name = arity == 1 || ((flags) & DT_IN_PLACE_FUNCTION),
#include "ops/elementwise.def"
};

static const dt_function rows[] = {
#define DOC(arity, class, doc) doc "\n\n" ARITY_DOC_##arity CLASS_DOC(DT_CLASS_##class)
#define ENTRIES(name, arity, class, doc)                                               \
    {#name, &name##_signature, name##_function, name##_method,                         \
     DOC(arity, class, doc)},                                                          \
        {#name "_", &name##_in_place_signature,                                        \
         IS_FUNCTION_##name ? name##_in_place_function : NULL, name##_in_place_method, \
         "In place: " doc WRITES},
#define ENTRIES_INPUT           ENTRIES
#define ENTRIES_INPUT_AND(a, b) ENTRIES
#define ENTRIES_OWN             ENTRIES
#define ENTRIES_OTHER           FUNCTION_ONLY
#define FUNCTION_ONLY(name, arity, class, doc)                                         \
    {#name, &name##_signature, name##_function, NULL, DOC(arity, class, doc)},
#define ENTER(entries, ...) entries(__VA_ARGS__)
#define ELEMENTWISE(name, arity, class, flags, low, high, call, value, derivatives,    \
                    doc, ...)                                                          \
    ENTER(ENTRIES_##call, name, arity, class, doc)
#define ALIAS(name, row)                                                               \
    {#name, &row##_signature, row##_function, row##_method, "The same as " #row "."},  \
        {#name "_", &row##_in_place_signature,                                         \
         IS_FUNCTION_##row ? row##_in_place_function : NULL, row##_in_place_method,    \
         "The same as " #row "_."},
#include "ops/elementwise.def"
    DT_METHOD(where_of, "where", "self where condition holds, else other."),
    DT_FUNCTION(rsub, "rsub", "other minus alpha times input."),
    DT_BOTH(equal, "equal",
            "Whether both have the same shape and elements.\n\n"
            "Returns a bool; synchronizes with the GPU. RuntimeError for two devices."),
};

int dt_setup_elementwise(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
