#include "tensor/ops/ops.h"

#include <math.h>

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

/* The classes of ops/reduce.def. */
enum { TOTAL, FLOAT, NORM, ORDER, TRUTH };

const char *const dt_reduce_names[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...) #name,
#include "ops/reduce.def"
#undef REDUCE
};
static const unsigned char reduce_class[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...) class,
#include "ops/reduce.def"
#undef REDUCE
};

/* --- which dimensions --- */

int dt_reduce_dims(const char *op_name, const dt_tensor *x, int count,
                   const int64_t *dims, bool *reduced)
{
    if (count)
        return dt_shape_wrap_dims(op_name, count, dims, x->ndim, reduced);
    for (int d = 0; d < x->ndim; d++)
        reduced[d] = true;
    return 0;
}

int dt_reduce_shape(const dt_tensor *x, const bool *reduced, bool keepdim,
                    int64_t *shape)
{
    int ndim = 0;
    for (int d = 0; d < x->ndim; d++)
        if (!reduced[d] || keepdim)
            shape[ndim++] = reduced[d] ? 1 : x->shape[d];
    return ndim;
}

/* Appends a dimension to a list, merging it into the one before where the strides allow
 * it. */
static void append(int *ndim, int64_t *shape, int64_t *strides, int64_t size,
                   int64_t stride)
{
    if (size == 1)
        return;
    if (*ndim && strides[*ndim - 1] == stride * size) {
        shape[*ndim - 1] *= size;
        strides[*ndim - 1] = stride;
        return;
    }
    shape[*ndim] = size;
    strides[*ndim] = stride;
    (*ndim)++;
}

/* Describes the input, which may wait (device/fusion.h). Reduced dimensions are walked by
 * stride where the result does not depend on their order, as they come where an index is
 * asked for. */
static void split_dims(dt_reduction *call, const dt_tensor *x, const bool *reduced,
                       bool sorted)
{
    call->input = dt_tensor_place(x);
    memset(call->storages, 0, sizeof call->storages);
    call->storages[0] = x->storage;
    call->input_dtype = (dt_dtype)x->dtype;
    int order[DT_MAX_NDIM], count = 0;
    int64_t item = (int64_t)dt_dtype_size((dt_dtype)x->dtype);
    call->kept_ndim = call->reduced_ndim = 0;
    call->kept_numel = call->reduced_numel = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (!reduced[d]) {
            call->kept_numel *= x->shape[d];
            append(&call->kept_ndim, call->kept_shape, call->kept_strides, x->shape[d],
                   x->strides[d] * item);
            continue;
        }
        call->reduced_numel *= x->shape[d];
        int at = count++;
        for (; sorted && at && x->strides[order[at - 1]] < x->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int i = 0; i < count; i++)
        append(&call->reduced_ndim, call->reduced_shape, call->reduced_strides,
               x->shape[order[i]], x->strides[order[i]] * item);
}

static int make_result(const char *op_name, dt_tensor *out, const dt_tensor *x,
                       const bool *reduced, bool keepdim, dt_dtype dtype)
{
    int64_t shape[DT_MAX_NDIM];
    int ndim = dt_reduce_shape(x, reduced, keepdim, shape);
    return dt_tensor_empty(op_name, out, dtype, ndim, shape, dt_tensor_device(x));
}

/* An error for rows without an identity whose reduced dimensions hold nothing. */
static int fail_empty(const char *op_name, const dt_tensor *x, bool whole)
{
    char text[DT_SHAPE_TEXT];
    dt_shape_text(x->ndim, x->shape, text, sizeof text);
    return dt_fail(
        whole ? DT_ERROR_RUNTIME : DT_ERROR_INDEX,
        "%s: a tensor of shape %s has no elements to choose from; give a dimension "
        "whose size is not 0, or check numel() first",
        op_name, text);
}

/* --- reduction --- */

/* The type of input and result; -1 after dt_fail. */
static int result_type(const char *op_name, int class, const dt_tensor *x, int dtype)
{
    dt_dtype own = (dt_dtype)(dtype >= 0 ? dtype : x->dtype);
    switch (class) {
    case TOTAL:
        return dtype >= 0 || dt_dtype_is_inexact(own) ? (int)own : DT_INT64;
    case FLOAT:
    case NORM:
        if (dt_dtype_is_inexact(own))
            return (int)own;
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: not defined for tensors of type %s, whose result is seldom whole; "
            "convert it first, e.g. with .float()%s",
            op_name, dt_dtype_name(own), class == FLOAT ? ", or give dtype=" : "");
    case TRUTH:
        return own == DT_UINT8 && dtype < 0 ? DT_UINT8 : DT_BOOL;
    default:
        return (int)own;
    }
}

/* The largest and the smallest of no elements do not exist. */
static bool needs_elements(dt_reduce_op op)
{
    return reduce_class[op] == ORDER || op == DT_REDUCE_norm_max ||
           op == DT_REDUCE_norm_min;
}

static inline int run_reduction(const char *op_name, dt_reduce_op op, dt_tensor *out,
                                const dt_tensor *x, const bool *reduced, bool whole,
                                bool keepdim, dt_dtype result, double parameter)
{
    dt_reduction call;
    split_dims(&call, x, reduced, true);
    if (make_result(op_name, out, x, reduced, keepdim, result))
        return -1;
    if (!out->numel)
        return 0;
    if (needs_elements(op) && !call.reduced_numel)
        return fail_empty(op_name, x, whole || reduce_class[op] == NORM);
    dt_device device = dt_tensor_device(x);
    call.output = dt_tensor_place(out);
    call.storages[1] = out->storage;
    call.output_dtype = result;
    call.index = NULL;
    call.parameter = parameter;
    return dt_storage_use(x->storage) || dt_storage_use(out->storage)
               ? -1
               : dt_backend_of(device)->reduce(dt_stream_current(device), op, &call);
}

/* The product of a complex tensor over dimensions: halves of them are multiplied until one
 * element is left of each. */
static int complex_product(dt_tensor *out, const dt_tensor *x, const bool *reduced,
                           bool keepdim)
{
    const dt_device device = dt_tensor_device(x);
    int64_t shape[DT_MAX_NDIM];
    DT_LOCAL(left);
    dt_tensor_alias(&left, x);
    for (int d = 0; d < x->ndim; d++) {
        if (!reduced[d])
            continue;
        if (!left.shape[d]) {
            int64_t ones[DT_MAX_NDIM];
            for (int k = 0; k < left.ndim; k++)
                ones[k] = k == d ? 1 : left.shape[k];
            dt_tensor_clear(&left);
            if (dt_full("prod", &left, (dt_dtype)x->dtype, x->ndim, ones, device,
                        dt_scalar_int(1)))
                return -1;
        }
        while (left.shape[d] > 1) {
            DT_LOCAL(first);
            DT_LOCAL(second);
            DT_LOCAL(rest);
            DT_LOCAL(product);
            const int64_t half = left.shape[d] / 2, odd = left.shape[d] % 2;
            if (dt_view_narrow(&first, &left, d, 0, half) ||
                dt_view_narrow(&second, &left, d, half, half) ||
                dt_elementwise(DT_OP_mul, &product,
                               DT_ARGS(dt_arg_tensor(&first), dt_arg_tensor(&second))))
                return -1;
            if (odd) {
                DT_LOCAL(end);
                if (dt_view_narrow(&rest, &left, d, 2 * half, 1) ||
                    dt_view_narrow(&end, &product, d, 0, 1) ||
                    dt_elementwise_into(
                        DT_OP_mul, &end,
                        DT_ARGS(dt_arg_tensor(&end), dt_arg_tensor(&rest))))
                    return -1;
            }
            dt_tensor_move(&left, &product);
        }
    }
    int ndim = dt_reduce_shape(x, reduced, keepdim, shape);
    DT_LOCAL(result);
    if (dt_view_reshape(&result, &left, ndim, shape) < 0)
        return -1;
    return dt_to(out, &result, (dt_dtype)x->dtype, device);
}

/* A row for a complex tensor: a sum and a mean are those of the parts, a norm that of the
 * magnitudes. */
static __attribute__((noinline)) int
reduce_complex(const char *op_name, dt_reduce_op op, dt_tensor *out, const dt_tensor *x,
               const bool *reduced, int count, bool keepdim, double parameter)
{
    DT_LOCAL(pairs);
    DT_LOCAL(parts);
    bool of_parts[DT_MAX_NDIM];
    if (reduce_class[op] == NORM)
        return dt_elementwise(DT_OP_abs, &pairs, DT_ARGS(dt_arg_tensor(x))) ||
                       run_reduction(op_name, op, out, &pairs, reduced, count <= 0,
                                     keepdim, (dt_dtype)pairs.dtype, parameter)
                   ? -1
                   : 0;
    if (op == DT_REDUCE_prod)
        return complex_product(out, x, reduced, keepdim);
    if (op != DT_REDUCE_sum && op != DT_REDUCE_mean)
        return dt_check_real(op_name, DT_ERROR_NOT_IMPLEMENTED, x);
    if (dt_complex_pairs(op_name, &pairs, x))
        return -1;
    for (int d = 0; d < x->ndim; d++)
        of_parts[d] = reduced[d];
    of_parts[x->ndim] = false;
    return run_reduction(op_name, op, &parts, &pairs, of_parts, count <= 0, keepdim,
                         (dt_dtype)pairs.dtype, 0) ||
                   dt_complex_of_pairs(op_name, out, &parts)
               ? -1
               : 0;
}

static int reduce_as(const char *op_name, dt_reduce_op op, dt_tensor *out,
                     const dt_tensor *x, int count, const int64_t *dims, bool keepdim,
                     int dtype, double parameter)
{
    bool reduced[DT_MAX_NDIM];
    DT_LOCAL(converted);
    int class = reduce_class[op];
    if (class == TRUTH && !count) /* of no dimension: each element alone */
        memset(reduced, 0, sizeof reduced);
    else if (dt_reduce_dims(op_name, x, count > 0 ? count : 0, dims, reduced))
        return -1;
    int result = result_type(op_name, class, x, dtype);
    if (result < 0)
        return -1;
    /* Backends reduce TOTAL from integers to int64 and TRUTH from any type to bool; every
     * other pair of types meets in a conversion first, or last. */
    bool whole = class == TOTAL && !dt_dtype_is_inexact((dt_dtype)result);
    if (dt_dtype_is_complex((dt_dtype)x->dtype) && class == TRUTH) {
        if (dt_to(&converted, x, DT_BOOL, dt_tensor_device(x)))
            return -1;
        x = &converted;
    }
    bool direct = x->dtype == result || class == TRUTH ||
                  (whole && !dt_dtype_is_inexact((dt_dtype)x->dtype));
    if (!direct) {
        if (dt_to(&converted, x, (dt_dtype)result, dt_tensor_device(x)))
            return dt_fail_prefix("%s: ", op_name);
        x = &converted;
    }
    if (dt_dtype_is_complex((dt_dtype)x->dtype) && class != TRUTH)
        return reduce_complex(op_name, op, out, x, reduced, count, keepdim, parameter);
    dt_dtype made = class == TRUTH ? DT_BOOL : whole ? DT_INT64 : (dt_dtype)result;
    if (run_reduction(op_name, op, out, x, reduced, count <= 0, keepdim, made,
                      parameter))
        return -1;
    /* any and all of bytes give bytes. */
    return made == (dt_dtype)result ? 0 : dt_retype(out, (dt_dtype)result);
}

int dt_reduce(dt_reduce_op op, dt_tensor *out, const dt_tensor *x, int count,
              const int64_t *dims, bool keepdim, int dtype, double parameter)
{
    return reduce_as(dt_reduce_names[op], op, out, x, count, dims, keepdim, dtype,
                     parameter);
}

/* A row of ops/reduce.def; one_dim: dim is an int. */
static int reduce(dt_call *c, dt_reduce_op op, bool one_dim, int dtype)
{
    static const char *const nodes_along_dims[DT_NREDUCE] = {
        [DT_REDUCE_sum] = "SumBackward1",
        [DT_REDUCE_prod] = "ProdBackward1",
        [DT_REDUCE_mean] = "MeanBackward1",
    };
    const dt_value *dim = &c->args[1];
    int count = one_dim ? dim->given : dim->count;
    if (count > 0 && nodes_along_dims[op])
        c->node = nodes_along_dims[op];
    return dt_reduce(op, c->out[0], c->args[0].tensor, count,
                     one_dim ? &dim->i : dim->ints, c->args[2].b, dtype, 0);
}

dt_reduce_op dt_norm_row(double p)
{
    return p == 2           ? DT_REDUCE_norm_2
           : p == 1         ? DT_REDUCE_norm_1
           : p == 0         ? DT_REDUCE_norm_0
           : p == INFINITY  ? DT_REDUCE_norm_max
           : p == -INFINITY ? DT_REDUCE_norm_min
                            : DT_REDUCE_norm_p;
}

static int norm(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[2];
    double p = c->args[1].f;
    dt_dtype own = (dt_dtype)x->dtype;
    int dtype = dt_dtype_is_inexact(own) ? c->args[5].dtype : -1;
    if (dtype >= 0 && dt_dtype_is_inexact((dt_dtype)dtype) &&
        dt_dtype_promote(own, (dt_dtype)dtype) != (dt_dtype)dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "norm: dtype is %s, which does not hold every element of %s; "
                       "give a wider one, or convert the result",
                       dt_dtype_name((dt_dtype)dtype), dt_dtype_name(own));
    return reduce_as("norm", dt_norm_row(p), c->out[0], x,
                     dims->count > 0 ? dims->count : 0, dims->ints, c->args[3].b, dtype,
                     p);
}

/* --- extremes --- */

/* The greatest or least elements along a dimension (has_dim false: of all, index into the
 * flattened tensor) and where they are. values may be NULL. */
static int extreme(dt_call *c, bool greatest, dt_tensor *values, dt_tensor *indices,
                   bool has_dim)
{
    const dt_tensor *x = c->args[0].tensor;
    bool reduced[DT_MAX_NDIM], keepdim = c->args[2].b;
    dt_reduction call;
    if (dt_check_real(c->name, DT_ERROR_RUNTIME, x) ||
        dt_reduce_dims(c->name, x, has_dim, &c->args[1].i, reduced))
        return -1;
    split_dims(&call, x, reduced, false);
    if (make_result(c->name, indices, x, reduced, keepdim, DT_INT64) ||
        (values &&
         make_result(c->name, values, x, reduced, keepdim, (dt_dtype)x->dtype)))
        return -1;
    if (!indices->numel)
        return 0;
    if (!call.reduced_numel)
        return fail_empty(c->name, x, false);
    dt_device device = dt_tensor_device(x);
    call.output_dtype = (dt_dtype)x->dtype;
    call.output = values ? dt_tensor_data(values) : NULL;
    call.index = dt_tensor_data(indices);
    call.parameter = 0;
    return dt_tensor_use(x) || dt_tensor_use(indices) || dt_tensor_use(values)
               ? -1
               : dt_backend_of(device)->argreduce(dt_stream_current(device), greatest,
                                                  &call);
}

static int argument(dt_call *c, bool greatest)
{
    if (c->args[0].tensor->dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s(): not defined for dtype bool; convert it first, for example "
            "with .int()",
            c->name);
    return extreme(c, greatest, NULL, c->out[0], c->args[1].given);
}

/* --- variances --- */

int dt_variance(const char *op_name, dt_tensor *out, dt_tensor *mean,
                const dt_tensor *x, const bool *reduced, bool keepdim,
                double correction)
{
    dt_reduction call;
    DT_LOCAL(wide);
    dt_device device = dt_tensor_device(x);
    dt_dtype dtype = dt_dtype_compute((dt_dtype)x->dtype);
    if (x->dtype != dt_stored_dtype(device, (dt_dtype)x->dtype)) {
        if (dt_to(&wide, x, dtype, device))
            return dt_fail_prefix("%s: ", op_name);
        x = &wide;
    }
    split_dims(&call, x, reduced, true);
    if (make_result(op_name, out, x, reduced, keepdim, dtype) ||
        (mean && make_result(op_name, mean, x, reduced, keepdim, dtype)))
        return -1;
    call.output_dtype = dtype;
    call.output = dt_tensor_place(out);
    call.storages[1] = out->storage;
    call.storages[2] = mean ? mean->storage : NULL;
    call.index = NULL;
    call.parameter = correction;
    return out->numel &&
                   (dt_tensor_use(x) || dt_tensor_use(out) || dt_tensor_use(mean) ||
                    dt_backend_of(device)->moments(dt_stream_current(device),
                                                   mean ? dt_tensor_place(mean) : NULL,
                                                   &call))
               ? -1
               : 0;
}

/* The variance of complex numbers is the sum of those of their parts. */
static int variance_of_parts(const char *op_name, dt_tensor *out, dt_tensor *mean,
                             const dt_tensor *x, const bool *reduced, bool keepdim,
                             double correction)
{
    for (int p = 0; p < 2; p++) {
        DT_LOCAL(part);
        DT_LOCAL(of_part);
        DT_LOCAL(mean_of_part);
        DT_LOCAL(target);
        dt_complex_part(&part, x, p);
        if (dt_variance(op_name, p ? &of_part : out, mean ? &mean_of_part : NULL, &part,
                        reduced, keepdim, correction) ||
            (p && dt_elementwise_into(
                      DT_OP_add, out,
                      DT_ARGS(dt_arg_tensor(out), dt_arg_tensor(&of_part)))) ||
            (mean && !p &&
             make_result(op_name, mean, x, reduced, keepdim, (dt_dtype)x->dtype)))
            return -1;
        if (mean)
            dt_complex_part(&target, mean, p);
        if (mean && dt_copy_part(op_name, &target, &mean_of_part))
            return -1;
    }
    return 0;
}

/* The variance over dimensions, or its root; also the mean, unless that is NULL. */
static int variance(dt_call *c, bool root, dt_tensor *mean)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[1], *correction = &c->args[2];
    dt_tensor *out = c->out[0];
    bool reduced[DT_MAX_NDIM];
    const dt_dtype dtype = (dt_dtype)x->dtype;
    const bool complex = dt_dtype_is_complex(dtype);
    if ((!complex && dt_check_float(c->name, DT_ERROR_RUNTIME, x)) ||
        dt_reduce_dims(c->name, x, dims->count > 0 ? dims->count : 0, dims->ints,
                       reduced))
        return -1;
    if ((complex ? variance_of_parts : dt_variance)(
            c->name, out, mean, x, reduced, c->args[3].b,
            correction->given ? dt_scalar_as_double(correction->scalar) : 1))
        return -1;
    if (root && dt_elementwise_into(DT_OP_sqrt, out, DT_ARGS(dt_arg_tensor(out))))
        return -1;
    return dt_retype(out, dt_dtype_part(dtype)) || (mean && dt_retype(mean, dtype)) ? -1
                                                                                    : 0;
}

#include "tensor/ops/define.h"
#include "ops/functions/reduce.def"
