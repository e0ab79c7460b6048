#include "tensor/ops/complex.h"

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/copy.h"

/* --- views --- */

static void as_parts(dt_tensor *view, const dt_tensor *t)
{
    dt_tensor_alias(view, t);
    view->dtype = (unsigned char)dt_dtype_part((dt_dtype)t->dtype);
    view->offset *= 2;
    for (int d = 0; d < t->ndim; d++)
        view->strides[d] *= 2;
}

void dt_complex_part(dt_tensor *view, const dt_tensor *t, int which)
{
    as_parts(view, t);
    view->offset += which;
    dt_tensor_update(view);
}

int dt_complex_pairs(const char *op_name, dt_tensor *view, const dt_tensor *t)
{
    if (!dt_dtype_is_complex((dt_dtype)t->dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensor is of type %s; give a complex one", op_name,
                       dt_dtype_name((dt_dtype)t->dtype));
    if (dt_shape_check_ndim(op_name, t->ndim + 1))
        return -1;
    as_parts(view, t);
    view->shape[view->ndim] = 2;
    view->strides[view->ndim++] = 1;
    view->numel *= 2;
    dt_tensor_update(view);
    return 0;
}

int dt_complex_of_pairs(const char *op_name, dt_tensor *view, const dt_tensor *t)
{
    int last = t->ndim - 1;
    if (t->dtype != DT_FLOAT32 && t->dtype != DT_FLOAT64)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensor is of type %s; give float32 or float64", op_name,
                       dt_dtype_name((dt_dtype)t->dtype));
    bool fits = last >= 0 && t->shape[last] == 2 && t->strides[last] == 1;
    const uintptr_t size = 2 * dt_dtype_size((dt_dtype)t->dtype);
    for (int d = 0; d < last; d++)
        fits = fits && (t->strides[d] % 2 == 0 || t->shape[d] == 1);
    if (!fits || t->offset % 2 || (uintptr_t)dt_tensor_data(t) % size) {
        char text[DT_SHAPE_TEXT];
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: a tensor of shape %s cannot be viewed as complex numbers; "
            "its last dimension has to be of size 2 and dense, and its pairs "
            "aligned: see .contiguous()",
            op_name, dt_shape_text(t->ndim, t->shape, text, sizeof text));
    }
    dt_tensor_alias(view, t);
    view->dtype = (unsigned char)dt_dtype_to_complex((dt_dtype)t->dtype);
    view->ndim--;
    view->numel /= 2;
    view->offset /= 2;
    for (int d = 0; d < last; d++)
        view->strides[d] /= 2;
    dt_tensor_update(view);
    return 0;
}

int dt_complex_number(const char *op_name, dt_tensor *out, dt_dtype dtype, double real,
                      double imag)
{
    if (dt_tensor_empty(op_name, out, dtype, 0, NULL, dt_device_make(DT_CPU, 0)))
        return -1;
    dt_element element = dt_element_from_complex(dtype, real, imag);
    memcpy(dt_tensor_data(out), element.bytes, dt_dtype_size(dtype));
    return 0;
}

/* --- calls of a backend --- */

/* Adds the two parts of each element to a plan as its innermost dimension. */
static int split_plan(const char *op_name, dt_plan *plan)
{
    plan->numel *= 2;
    if (plan->contiguous) {
        plan->shape[0] *= 2;
    } else {
        if (dt_shape_check_ndim(op_name, plan->ndim + 1))
            return -1;
        plan->shape[plan->ndim++] = 2;
    }
    for (int i = 0; i < plan->noperands; i++) {
        dt_operand *o = &plan->operands[i];
        o->dtype = dt_dtype_part(o->dtype);
        o->strides[plan->ndim - 1] = (int64_t)dt_dtype_size(o->dtype);
    }
    return 0;
}

/* Makes operand i of a plan the parts of its elements. */
static void take_part(dt_plan *plan, int i, int which)
{
    dt_operand *o = &plan->operands[i];
    o->dtype = dt_dtype_part(o->dtype);
    o->data = (char *)o->data + which * (int64_t)dt_dtype_size(o->dtype);
    plan->contiguous = false;
}

int dt_complex_copy(const char *op_name, dt_device device, dt_plan *plan)
{
    const dt_backend *backend = dt_backend_of(device);
    const dt_stream stream = dt_stream_current(device);
    dt_operand *to = &plan->operands[0], *from = &plan->operands[1];
    const bool into = dt_dtype_is_complex(to->dtype),
               out_of = dt_dtype_is_complex(from->dtype);
    if (into && out_of) {
        /* Elements of 8 bytes are moved as one number. */
        if (to->dtype == DT_COMPLEX64 && from->dtype == DT_COMPLEX64)
            to->dtype = from->dtype = DT_FLOAT64;
        else if (split_plan(op_name, plan))
            return -1;
        return backend->copy(stream, plan);
    }
    if (to->dtype == DT_BOOL) {
        plan->noperands = 3;
        plan->operands[2] = *from;
        plan->operands[2].scalar = true;
        plan->operands[2].data = NULL;
        plan->operands[2].value = dt_element_from_complex(from->dtype, 0, 0);
        for (int d = 0; d < plan->ndim; d++)
            plan->operands[2].strides[d] = 0;
        return backend->elementwise(stream, DT_OP_ne, plan);
    }
    take_part(plan, into ? 0 : 1, 0);
    if (backend->copy(stream, plan))
        return -1;
    if (out_of)
        return 0;
    to->data = (char *)to->data + dt_dtype_size(to->dtype);
    from->dtype = to->dtype;
    from->scalar = true;
    from->data = NULL;
    from->value = dt_element_from_scalar(to->dtype, dt_scalar_float(0));
    for (int d = 0; d < plan->ndim; d++)
        from->strides[d] = 0;
    return backend->fill(stream, plan);
}

int dt_complex_fill(dt_device device, dt_plan *plan)
{
    const dt_backend *backend = dt_backend_of(device);
    const dt_stream stream = dt_stream_current(device);
    const dt_dtype dtype = plan->operands[0].dtype;
    dt_operand *value = &plan->operands[1];
    if (dtype == DT_COMPLEX64) {
        plan->operands[0].dtype = value->dtype = DT_FLOAT64;
        return backend->fill(stream, plan);
    }
    const dt_complex128 z = value->value.as_complex128;
    value->dtype = DT_FLOAT64;
    for (int which = 0; which < 2; which++) {
        value->value.as_float64 = which ? z.imag : z.real;
        take_part(plan, 0, which); /* the second one from the first on */
        if (backend->fill(stream, plan))
            return -1;
    }
    return 0;
}

int dt_complex_index(dt_device device, dt_index_op op, dt_index_call *call)
{
    const dt_backend *backend = dt_backend_of(device);
    const dt_stream stream = dt_stream_current(device);
    if (op == DT_INDEX_MULTIPLY)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: products are not defined for tensors of type %s; multiply "
                       "with * and write the result",
                       call->op_name, dt_dtype_name(call->dtype));
    if (call->dtype == DT_COMPLEX64 && op != DT_INDEX_ADD) {
        call->dtype = DT_FLOAT64;
        return backend->index(stream, op, call);
    }
    if (dt_shape_check_ndim(call->op_name, call->ndim + 1))
        return -1;
    call->dtype = dt_dtype_part(call->dtype);
    call->numel *= 2;
    call->shape[call->ndim] = 2;
    call->table_strides[call->ndim] = call->value_strides[call->ndim] =
        (int64_t)dt_dtype_size(call->dtype);
    for (int k = 0; k < call->nindices; k++)
        call->indices[k].strides[call->ndim] = 0;
    call->ndim++;
    return backend->index(stream, op, call);
}

/* --- functions with real results, and what is made of others --- */

static int run_row(dt_elementwise_op op, dt_tensor *out, dt_tensor *target,
                   const dt_arg *args)
{
    return target ? dt_elementwise_into(op, target, args)
                  : dt_elementwise(op, out, args);
}

/* a + weight (b - a) */
static int complex_lerp(dt_tensor *out, dt_tensor *target, const dt_arg *args)
{
    DT_LOCAL(step);
    DT_LOCAL(part);
    if (dt_elementwise(DT_OP_sub, &step, DT_ARGS(args[1], args[0])) ||
        dt_elementwise(DT_OP_mul, &part, DT_ARGS(args[2], dt_arg_tensor(&step))))
        return -1;
    return run_row(DT_OP_add, out, target, DT_ARGS(args[0], dt_arg_tensor(&part)));
}

/* x sigmoid(x) */
static int complex_silu(dt_tensor *out, dt_tensor *target, const dt_arg *args)
{
    DT_LOCAL(factor);
    return dt_elementwise(DT_OP_sigmoid, &factor, args)
               ? -1
               : run_row(DT_OP_mul, out, target,
                         DT_ARGS(args[0], dt_arg_tensor(&factor)));
}

/* sin(pi x) / (pi x), 1 at 0 */
static int complex_sinc(dt_tensor *out, dt_tensor *target, const dt_arg *args)
{
    DT_LOCAL(turned);
    DT_LOCAL(sine);
    DT_LOCAL(zero);
    DT_LOCAL(ratio);
    const dt_arg pi = dt_arg_scalar(dt_scalar_float(3.14159265358979323846)),
                 none = dt_arg_scalar(dt_scalar_int(0)),
                 one = dt_arg_scalar(dt_scalar_int(1));
    if (dt_elementwise(DT_OP_mul, &turned, DT_ARGS(args[0], pi)) ||
        dt_elementwise(DT_OP_sin, &sine, DT_ARGS(dt_arg_tensor(&turned))) ||
        dt_elementwise(DT_OP_div, &ratio,
                       DT_ARGS(dt_arg_tensor(&sine), dt_arg_tensor(&turned))) ||
        dt_elementwise(DT_OP_eq, &zero, DT_ARGS(args[0], none)))
        return -1;
    return run_row(DT_OP_where, out, target,
                   DT_ARGS(dt_arg_tensor(&zero), one, dt_arg_tensor(&ratio)));
}

/* The real parts of an operand, a view; itself where it is real. */
static dt_arg real_part(dt_tensor *view, dt_arg x)
{
    if (!x.tensor || !dt_dtype_is_complex((dt_dtype)x.tensor->dtype))
        return x;
    dt_complex_part(view, x.tensor, 0);
    return dt_arg_tensor(view);
}

/* a + log(1 + exp(b - a)), where a has the greater real part; b where both are infinite. */
static int complex_logaddexp(dt_tensor *out, dt_tensor *target, const dt_arg *args)
{
    DT_LOCAL(first);
    DT_LOCAL(second);
    DT_LOCAL(greater);
    DT_LOCAL(a);
    DT_LOCAL(b);
    DT_LOCAL(step);
    DT_LOCAL(power);
    DT_LOCAL(rest);
    DT_LOCAL(sum);
    DT_LOCAL(same);
    DT_LOCAL(infinite);
    DT_LOCAL(both);
#define ROW(op, out, ...) dt_elementwise(DT_OP_##op, &(out), DT_ARGS(__VA_ARGS__))
#define T(t)              dt_arg_tensor(&(t))
    const dt_arg x = real_part(&first, args[0]), y = real_part(&second, args[1]);
    if (ROW(ge, greater, x, y) || ROW(where, a, T(greater), args[0], args[1]) ||
        ROW(where, b, T(greater), args[1], args[0]) || ROW(sub, step, T(b), T(a)) ||
        ROW(exp, power, T(step)) || ROW(log1p, rest, T(power)) ||
        ROW(add, sum, T(a), T(rest)) || ROW(eq, same, x, y) ||
        ROW(isinf, infinite, x) || ROW(logical_and, both, T(same), T(infinite)))
        return -1;
    return run_row(DT_OP_where, out, target, DT_ARGS(T(both), T(b), T(sum)));
#undef ROW
#undef T
}

int dt_complex_elementwise(dt_elementwise_op op, dt_tensor *out, dt_tensor *target,
                           const dt_arg *args)
{
    const dt_tensor *x = args[0].tensor;
    const char *name = dt_elementwise_rows[op].name;
    DT_LOCAL(real);
    DT_LOCAL(imag);
    DT_LOCAL(size);
    DT_LOCAL(bounded);
    DT_LOCAL(zero);
    if (op == DT_OP_lerp)
        return complex_lerp(out, target, args);
    if (op == DT_OP_silu)
        return complex_silu(out, target, args);
    if (op == DT_OP_sinc)
        return complex_sinc(out, target, args);
    if (op == DT_OP_logaddexp)
        return complex_logaddexp(out, target, args);
    if (op != DT_OP_abs && op != DT_OP_angle && op != DT_OP_sign && op != DT_OP_isreal)
        return dt_fail(op == DT_OP_maximum || op == DT_OP_minimum
                           ? DT_ERROR_RUNTIME
                           : DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for complex tensors; take .real, .imag or "
                       ".abs() first",
                       name);
    if (target && op != DT_OP_sign && dt_dtype_is_complex((dt_dtype)target->dtype))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the result is real, and is not written to a complex tensor; "
            "use the form that makes a new tensor",
            name);
    if (!x || !dt_dtype_is_complex((dt_dtype)x->dtype))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED, "%s: give one complex tensor", name);
    dt_complex_part(&real, x, 0);
    dt_complex_part(&imag, x, 1);
    if (op == DT_OP_isreal) {
        const dt_arg *zero_too =
            DT_ARGS(dt_arg_tensor(&imag), dt_arg_scalar(dt_scalar_int(0)));
        return run_row(DT_OP_eq, out, target, zero_too);
    }
    const dt_arg re = dt_arg_tensor(&real), im = dt_arg_tensor(&imag);
    const dt_elementwise_op of_parts = op == DT_OP_angle ? DT_OP_atan2 : DT_OP_hypot;
    const dt_arg parts[] = {op == DT_OP_angle ? im : re, op == DT_OP_angle ? re : im};
    if (op != DT_OP_sign)
        return run_row(of_parts, out, target, parts);
    /* 0 has no direction. */
    const dt_arg one = dt_arg_scalar(dt_scalar_int(1));
    if (dt_elementwise(DT_OP_hypot, &size, parts) ||
        dt_elementwise(
            DT_OP_eq, &zero,
            DT_ARGS(dt_arg_tensor(&size), dt_arg_scalar(dt_scalar_int(0)))) ||
        dt_elementwise(DT_OP_where, &bounded,
                       DT_ARGS(dt_arg_tensor(&zero), one, dt_arg_tensor(&size))))
        return -1;
    return run_row(DT_OP_div, out, target, DT_ARGS(args[0], dt_arg_tensor(&bounded)));
}

int dt_check_imag(const char *op_name, dt_dtype dtype, const dt_tensor *number)
{
    if (dtype == DT_BOOL || dt_dtype_is_complex(dtype) ||
        !dt_dtype_is_complex((dt_dtype)number->dtype) ||
        !dt_device_is_host(dt_tensor_device(number)))
        return 0;
    if (dt_tensor_used_by_host(op_name, number))
        return -1;
    const void *data = dt_tensor_data(number);
    const double imag = dt_element_imag((dt_dtype)number->dtype, data);
    if (imag == 0)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the number %g%+gj is complex, and a tensor of type %s has no "
                   "place for its imaginary part; convert the tensor first, e.g. with "
                   ".to(complex64)",
                   op_name, dt_element_to_scalar((dt_dtype)number->dtype, data).f, imag,
                   dt_dtype_name(dtype));
}

int dt_check_real(const char *op_name, dt_error_code code, const dt_tensor *t)
{
    return dt_dtype_is_complex((dt_dtype)t->dtype)
               ? dt_fail(code,
                         "%s: not defined for tensors of type %s; take .real, .imag or "
                         ".abs() first",
                         op_name, dt_dtype_name((dt_dtype)t->dtype))
               : 0;
}
