/* The functions of ops/functions/elementwise.def: rows under their names, with numbers and
 * options that the rows do not know. */
#include <math.h>
#include <string.h>

#include "autograd/formula.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "ops/special_codes.h"
#include "tensor/ops/ops.h"

/* Whether target has the shape of the result. */
static bool fits(const dt_tensor *target, const dt_arg *args, int count)
{
    int ndim = 0;
    int64_t shape[DT_MAX_NDIM];
    for (int i = 0; i < count; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t &&
            dt_shape_broadcast("", ndim, shape, t->ndim, t->shape, &ndim, shape) < 0) {
            dt_error_clear();
            return false;
        }
    }
    return dt_shape_equal(target->ndim, target->shape, ndim, shape);
}

/* Ends a call with the row op of args: into the first argument (in place), into out=
 * where that has the result's shape, or into a new tensor. */
static int finish_row(dt_call *c, dt_elementwise_op op, const dt_arg *args)
{
    const int arity = dt_elementwise_rows[op].arity;
    if (__builtin_expect(!c->in_place && !c->target, 1))
        return dt_recorded_elementwise(op, c->out[0], args);
    if (!c->in_place) {
        if (!fits(c->target, args, arity))
            return dt_recorded_elementwise(op, c->out[0], args);
        if (dt_elementwise_into(op, c->target, args) < 0)
            return -1;
        dt_tensor_alias(c->out[0], c->target);
        return 0;
    }
    /* Here, since the row may have another name than the function. */
    if (dt_in_place_check(c->name, c->out[0]) < 0)
        return -1;
    for (int i = 0; i < arity; i++)
        if (args[i].tensor && args[i].tensor == c->out[0])
            return dt_recorded_elementwise_into(op, c->out[0], args);
    DT_LOCAL(result);
    if (dt_recorded_elementwise(op, &result, args) < 0 ||
        dt_check_cast(c->name, (dt_dtype)result.dtype, (dt_dtype)c->out[0]->dtype) < 0)
        return -1;
    return dt_recorded_copy_into(c->name, c->out[0], &result);
}

/* The same where temporaries of scope, which ends, are among args. */
static int finish_scope(dt_scope *scope, dt_call *c, dt_elementwise_op op,
                        const dt_arg *args)
{
    int status = scope->failed ? -1 : finish_row(c, op, args);
    dt_scope_end(scope);
    return status;
}

/* A row whose operands are the first arguments. */
static inline int forward_row(dt_call *c, dt_elementwise_op op, int arity)
{
    dt_arg args[3];
    for (int i = 0; i < arity; i++)
        args[i] = dt_value_operand(&c->args[i]);
    return finish_row(c, op, args);
}

int dt_sign_forward(dt_call *c)
{
    if (dt_dtype_is_complex((dt_dtype)c->args[0].tensor->dtype))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "sign: not defined for complex tensors; call sgn(), which gives "
                       "their direction z / |z|");
    return forward_row(c, DT_OP_sign, 1);
}

/* Rounds to a number of decimals; a negative one counts digits before the point. */
int dt_round_forward(dt_call *c)
{
    const dt_arg x = dt_arg_tensor(c->args[0].tensor);
    const int64_t decimals = c->args[1].i;
    if (!decimals)
        return forward_row(c, DT_OP_round, 1);
    if (!dt_dtype_is_float((dt_dtype)x.tensor->dtype))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "round(): a tensor of type %s has no decimals; leave decimals out",
            dt_dtype_name((dt_dtype)x.tensor->dtype));
    dt_arg power = NUMBER(pow(10, fabs((double)decimals)));
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    dt_arg scaled = decimals > 0 ? MUL(x, power) : DIV(x, power);
    dt_arg rounded = dt_scope_elementwise(scope, DT_OP_round, &scaled);
    return finish_scope(scope, c, decimals > 0 ? DT_OP_div : DT_OP_mul,
                        DT_ARGS(rounded, power));
}

/* Elements below eps or above 1 - eps count as the bound. */
int dt_logit_forward(dt_call *c)
{
    if (!c->args[1].given)
        return forward_row(c, DT_OP_logit, 1);
    const dt_arg x = dt_arg_tensor(c->args[0].tensor);
    const dt_arg low = NUMBER(c->args[1].f), high = NUMBER(1 - c->args[1].f);
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    dt_arg kept = WHERE(LT(x, low), low, WHERE(GT(x, high), high, x));
    return finish_scope(scope, c, DT_OP_logit, &kept);
}

/* A row of args, of which *scaled is multiplied by parameter i, a complex number. */
static int scaled_row(dt_call *c, dt_elementwise_op op, dt_arg *args, dt_arg *scaled,
                      int i)
{
    const dt_dtype dtype = dt_result_type(args, dt_elementwise_rows[op].arity);
    dt_scope own, *scope = &own;
    dt_arg number;
    dt_scope_begin(scope);
    dt_tensor *slot = dt_scope_slot(scope);
    if (!slot || dt_call_number(c, i, dtype, slot, &number))
        scope->failed = true;
    else
        *scaled = MUL(*scaled, number);
    return finish_scope(scope, c, op, args);
}

/* a + alpha * b, or a - alpha * b. */
static int add_scaled(dt_call *c, dt_elementwise_op op, const dt_value *first,
                      const dt_value *second)
{
    dt_arg args[] = {dt_value_operand(first), dt_value_operand(second)}, *b = &args[1];
    const dt_scalar alpha = c->args[2].scalar;
    if (!c->args[2].given)
        return finish_row(c, op, args);
    if (alpha.kind == DT_KIND_COMPLEX)
        return scaled_row(c, op, args, b, 2);
    if (alpha.kind == DT_KIND_FLOAT && !dt_dtype_is_inexact(dt_result_type(args, 2)))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): alpha is the float %g, and the tensors hold integers; "
                       "give an int",
                       c->name, alpha.f);
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    if (b->tensor || b->scalar.kind == DT_KIND_FLOAT || alpha.kind == DT_KIND_FLOAT)
        *b = MUL(*b, dt_arg_scalar(alpha));
    else if (alpha.i != 1)
        b->scalar = dt_scalar_int((int64_t)((uint64_t)b->scalar.i * (uint64_t)alpha.i));
    return finish_scope(scope, c, op, args);
}

int dt_add_forward(dt_call *c)
{
    return add_scaled(c, DT_OP_add, &c->args[0], &c->args[1]);
}

int dt_sub_forward(dt_call *c)
{
    return add_scaled(c, DT_OP_sub, &c->args[0], &c->args[1]);
}

/* "trunc" is the quotient of what is left once the remainder is taken away, which is
 * exact for integers too. */
int dt_div_forward(dt_call *c)
{
    const char *mode = c->args[2].text;
    if (!mode)
        return forward_row(c, DT_OP_div, 2);
    if (!strcmp(mode, "floor"))
        return forward_row(c, DT_OP_div_floor, 2);
    if (strcmp(mode, "trunc") != 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "div(): rounding_mode is '%s'; give None, 'trunc' or 'floor'",
                       mode);
    dt_arg a = dt_value_operand(&c->args[0]), b = dt_value_operand(&c->args[1]);
    bool floats = dt_dtype_is_float(dt_result_type(DT_ARGS(a, b), 2));
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    dt_tensor *quotient = floats ? dt_scope_slot(scope) : NULL;
    /* The derivative of a rounded quotient is 0, not one of the quotient. */
    if (floats &&
        (!quotient || dt_recorded_elementwise_as(DT_OP_div_floor, DT_OP_div, quotient,
                                                 DT_ARGS(a, b)) < 0))
        scope->failed = true;
    else if (floats)
        a = dt_arg_tensor(quotient);
    else
        a = SUB(a, dt_scope_elementwise(scope, DT_OP_fmod, DT_ARGS(a, b)));
    return finish_scope(scope, c, floats ? DT_OP_trunc : DT_OP_div_floor,
                        DT_ARGS(a, b));
}

static int polygamma(dt_call *c, int64_t n, const dt_tensor *x)
{
    if (n < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "polygamma(): n is %lld; give 0 or a greater number",
                       (long long)n);
    return finish_row(c, DT_OP_polygamma, DT_ARGS(NUMBER((double)n), dt_arg_tensor(x)));
}

/* tensor1 times value. */
static int add_product(dt_call *c, dt_elementwise_op op)
{
    dt_arg args[3];
    dt_scalar value = c->args[3].scalar;
    for (int i = 0; i < 3; i++)
        args[i] = dt_arg_tensor(c->args[i].tensor);
    if (op == DT_OP_addcdiv && !dt_dtype_is_inexact(dt_result_type(args + 1, 2)))
        return dt_fail(DT_ERROR_RUNTIME,
                       "addcdiv(): tensor1 and tensor2 hold integers, whose quotients "
                       "would be rounded; convert one of them with .float()");
    if (value.kind == DT_KIND_COMPLEX)
        return scaled_row(c, op, args, &args[1], 3);
    if (value.kind == DT_KIND_FLOAT && !dt_dtype_is_inexact(dt_result_type(args, 3)))
        value = dt_scalar_int((int64_t)value.f);
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    args[1] = MUL(args[1], dt_arg_scalar(value));
    return finish_scope(scope, c, op, args);
}

int dt_addcmul_forward(dt_call *c)
{
    return add_product(c, DT_OP_addcmul);
}

int dt_addcdiv_forward(dt_call *c)
{
    return add_product(c, DT_OP_addcdiv);
}

/* The type's own limit: a bound without effect. */
static dt_arg boundless(dt_dtype dtype, bool low)
{
    if (dt_dtype_is_float(dtype))
        return NUMBER(low ? -INFINITY : INFINITY);
    int bits = 8 * (int)dt_dtype_size(dtype);
    bool is_signed = dt_dtype_is_signed(dtype);
    int64_t top = is_signed ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                            : (int64_t)(((uint64_t)1 << bits) - 1);
    if (dtype == DT_BOOL)
        return dt_arg_scalar(dt_scalar_bool(!low));
    return dt_arg_scalar(dt_scalar_int(low ? (is_signed ? -top - 1 : 0) : top));
}

/* Bools are bounded by tensors alone, as in PyTorch. */
static bool bounds_bools(const dt_arg *args)
{
    return args[1].tensor && dt_result_type(args, 2) == DT_BOOL;
}

int dt_clamp_min_forward(dt_call *c)
{
    dt_arg args[] = {dt_value_operand(&c->args[0]), dt_value_operand(&c->args[1])};
    return finish_row(c, bounds_bools(args) ? DT_OP_maximum : DT_OP_clamp_min, args);
}

int dt_clamp_max_forward(dt_call *c)
{
    dt_arg args[] = {dt_value_operand(&c->args[0]), dt_value_operand(&c->args[1])};
    return finish_row(c, bounds_bools(args) ? DT_OP_minimum : DT_OP_clamp_max, args);
}

int dt_clamp_forward(dt_call *c)
{
    dt_arg given[3];
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (c->args[i].given)
            given[count++] = dt_value_operand(&c->args[i]);
    if (count == 1)
        return dt_fail(DT_ERROR_RUNTIME, "%s(): neither min nor max is given; give one",
                       c->name);
    dt_dtype dtype = dt_result_type(given, count);
    if (count == 2 && bounds_bools(given))
        return finish_row(c, c->args[1].given ? DT_OP_maximum : DT_OP_minimum, given);
    dt_arg low = c->args[1].given ? given[1] : boundless(dtype, true);
    dt_arg high = c->args[2].given ? given[count - 1] : boundless(dtype, false);
    return finish_row(c, DT_OP_clamp, DT_ARGS(given[0], low, high));
}

int dt_celu_forward(dt_call *c)
{
    if (dt_scalar_as_double(c->args[1].scalar) == 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "celu(): alpha is 0, which divides; give another number");
    return forward_row(c, DT_OP_celu, 2);
}

int dt_gelu_forward(dt_call *c)
{
    const char *formula = c->args[1].text;
    if (!formula || !strcmp(formula, "none"))
        return forward_row(c, DT_OP_gelu, 1);
    if (!strcmp(formula, "tanh"))
        return forward_row(c, DT_OP_gelu_tanh, 1);
    return dt_fail(DT_ERROR_RUNTIME,
                   "gelu(): approximate is '%s'; give 'none' or 'tanh'", formula);
}

int dt_softshrink_forward(dt_call *c)
{
    const double lambd = dt_scalar_as_double(c->args[1].scalar);
    if (!(lambd >= 0))
        return dt_fail(DT_ERROR_RUNTIME, "softshrink(): lambd is %g; give 0 or more",
                       lambd);
    return forward_row(c, DT_OP_softshrink, 2);
}

static int hardtanh(dt_call *c, dt_scalar low, dt_scalar high)
{
    const dt_tensor *x = c->args[0].tensor;
    if (dt_scalar_as_double(low) > dt_scalar_as_double(high))
        return dt_fail(DT_ERROR_VALUE,
                       "%s(): min_val is %g and max_val %g; give a min_val that is not "
                       "greater than max_val",
                       c->name, dt_scalar_as_double(low), dt_scalar_as_double(high));
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): the input holds bools; convert it with .int()", c->name);
    if (isnan(dt_scalar_as_double(low)) || isnan(dt_scalar_as_double(high)))
        low = high = dt_scalar_float(NAN); /* so is each element */
    return finish_row(
        c, DT_OP_hardtanh,
        DT_ARGS(dt_arg_tensor(x), dt_arg_scalar(low), dt_arg_scalar(high)));
}

/* A weight for each channel is a vector along dimension 1. */
int dt_prelu_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *weight = c->args[1].tensor;
    const int64_t channels = x->ndim > 1 ? x->shape[1] : 1;
    int64_t shape[DT_MAX_NDIM] = {weight->numel};
    const int ndim = !x->ndim ? 0 : x->ndim > 1 ? x->ndim - 1 : 1;
    char text[DT_SHAPE_TEXT];
    if (weight->ndim > 1)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "prelu(): weight has shape %s; give a vector, or a tensor without "
            "dimensions",
            dt_shape_text(weight->ndim, weight->shape, text, sizeof text));
    if (weight->numel != 1 && weight->numel != channels)
        return dt_fail(DT_ERROR_RUNTIME,
                       "prelu(): weight has %lld elements; give 1, or %lld for the "
                       "channels of an input of shape %s",
                       (long long)weight->numel, (long long)channels,
                       dt_shape_text(x->ndim, x->shape, text, sizeof text));
    for (int d = 1; d < ndim; d++)
        shape[d] = 1;
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    dt_arg along = dt_arg_tensor(weight);
    if (weight->ndim)
        along = SCOPE_CALL(scope, reshape, c->args[1], dt_value_ints(ndim, shape));
    return finish_scope(scope, c, DT_OP_prelu, DT_ARGS(dt_arg_tensor(x), along));
}

int dt_glu_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const long long given = c->args[1].i;
    if (!x->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "glu(): the input has no dimensions; give at least 1");
    const int dim = dt_shape_wrap_dim(c->name, given, x->ndim);
    if (dim < 0)
        return -1;
    const int64_t size = x->shape[dim];
    if (size % 2)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "glu(): dimension %lld of the input has size %lld, an odd number; "
            "give an even one, which can be halved",
            given, (long long)size);
    dt_scope own, *scope = &own;
    dt_scope_begin(scope);
    const dt_value along = dt_value_int(dim), half = dt_value_int(size / 2);
    const dt_arg kept =
        SCOPE_CALL(scope, narrow, c->args[0], along, dt_value_int(0), half);
    const dt_arg gate = SCOPE_CALL(scope, narrow, c->args[0], along, half, half);
    return finish_scope(scope, c, DT_OP_glu, DT_ARGS(kept, gate));
}

/* The positions of the elements that are not 0: a tensor for each dimension; a tensor
 * without dimensions counts as one of one element. */
int dt_where_nonzero_forward(dt_call *c)
{
    dt_tensor x, positions;
    dt_tensor_alias(&x, c->args[0].tensor);
    if (!x.ndim) {
        x.ndim = 1;
        x.shape[0] = x.strides[0] = 1;
    }
    int ndim = x.ndim, status = dt_nonzero(&positions, &x);
    dt_tensor_clear(&x);
    if (status < 0)
        return -1;
    status = dt_call_make_list(c, ndim);
    for (int d = 0; d < ndim && !status; d++)
        status = dt_view_select(&c->list[d], &positions, 1, d);
    dt_tensor_clear(&positions);
    return status;
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/elementwise.def"
