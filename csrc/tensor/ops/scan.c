#include "tensor/ops/ops.h"

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/view.h"

static const char *const scan_names[DT_NSCAN] = {
    [DT_SCAN_SUM] = "cumsum",
    [DT_SCAN_PRODUCT] = "cumprod",
    [DT_SCAN_LOGSUMEXP] = "logcumsumexp",
    [DT_SCAN_MAX] = "cummax",
    [DT_SCAN_MIN] = "cummin",
};

/* The type of the result; -1 after dt_fail. */
static int result_type(dt_scan_op op, const dt_tensor *x, int dtype)
{
    dt_dtype own = (dt_dtype)(dtype >= 0 ? dtype : x->dtype);
    if (op == DT_SCAN_MAX || op == DT_SCAN_MIN)
        return (int)own;
    if (op == DT_SCAN_LOGSUMEXP &&
        dt_check_float(scan_names[op], DT_ERROR_NOT_IMPLEMENTED, x))
        return -1;
    if (dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for dtype bool; give another dtype",
                       scan_names[op]);
    return dtype >= 0 || dt_dtype_is_inexact(own) ? (int)own : DT_INT64;
}

static int run_scan(const char *op_name, dt_scan_op op, dt_tensor *out,
                    dt_tensor *indices, const dt_tensor *input, int at, bool backward);

/* Products and the like of complex numbers, by a row of two operands: each element with what
 * is 1, 2, 4, ... before it (backward: after it). */
static int scan_by_doubling(dt_scan_op op, dt_tensor *out, const dt_tensor *x, int at,
                            bool backward)
{
    const char *op_name = scan_names[op];
    const dt_elementwise_op row = op == DT_SCAN_PRODUCT ? DT_OP_mul : DT_OP_logaddexp;
    DT_LOCAL(left);
    const int64_t n = x->ndim ? x->shape[at] : 1;
    dt_tensor_alias(&left, x);
    for (int64_t step = 1; step < n; step *= 2) {
        DT_LOCAL(next);
        DT_LOCAL(target);
        DT_LOCAL(before);
        if (dt_tensor_empty(op_name, &next, (dt_dtype)x->dtype, x->ndim, x->shape,
                            dt_tensor_device(x)) ||
            dt_copy_part(op_name, &next, &left) ||
            dt_view_narrow(&target, &next, at, backward ? 0 : step, n - step) ||
            dt_view_narrow(&before, &left, at, backward ? step : 0, n - step) ||
            dt_elementwise_into(
                row, &target, DT_ARGS(dt_arg_tensor(&target), dt_arg_tensor(&before))))
            return -1;
        dt_tensor_move(&left, &next);
    }
    if (left.storage == x->storage) /* out is a tensor of its own */
        return dt_tensor_empty(op_name, out, (dt_dtype)x->dtype, x->ndim, x->shape,
                               dt_tensor_device(x)) ||
                       dt_copy_part(op_name, out, x)
                   ? -1
                   : 0;
    dt_tensor_move(out, &left);
    return 0;
}

/* A sum of complex numbers is that of their parts. */
static int scan_complex(dt_scan_op op, dt_tensor *out, const dt_tensor *x, int at,
                        int dtype, bool backward)
{
    DT_LOCAL(converted);
    DT_LOCAL(pairs);
    DT_LOCAL(sums);
    if (op == DT_SCAN_MAX || op == DT_SCAN_MIN)
        return dt_check_real(scan_names[op], DT_ERROR_NOT_IMPLEMENTED, x);
    if (dt_contiguous_as(&converted, x, (dt_dtype)(dtype >= 0 ? dtype : x->dtype),
                         dt_tensor_device(x)))
        return -1;
    if (op != DT_SCAN_SUM || !x->ndim)
        return scan_by_doubling(op, out, &converted, at, backward);
    return dt_complex_pairs(scan_names[op], &pairs, &converted) ||
                   run_scan(scan_names[op], op, &sums, NULL, &pairs, at, backward) ||
                   dt_complex_of_pairs(scan_names[op], out, &sums)
               ? -1
               : 0;
}

/* Element i of the result is what elements 0 to i along dim give (backward: i to the last).
 * dtype -1: int64 for sums and products of integers and bools, else input's own. */
static int scan(dt_call *c, dt_scan_op op, int dtype, bool backward)
{
    const char *op_name = scan_names[op];
    const dt_tensor *x = c->args[0].tensor;
    bool extremes = op == DT_SCAN_MAX || op == DT_SCAN_MIN;
    dt_tensor *out = c->out[0], *indices = extremes ? c->out[1] : NULL;
    dt_device device = dt_tensor_device(x);
    DT_LOCAL(narrow);
    DT_LOCAL(input);
    if (c->in_place) {
        if (dtype >= 0 && dtype != x->dtype)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s_(): the tensor is of dtype %s and cannot become %s in "
                           "place; leave dtype out, or call %s()",
                           c->name, dt_dtype_name((dt_dtype)x->dtype),
                           dt_dtype_name((dt_dtype)dtype), c->name);
        dtype = x->dtype;
    }
    int at = dt_shape_wrap_dim(op_name, c->args[1].i, x->ndim);
    if (at >= 0 && dt_dtype_is_complex((dt_dtype)(dtype >= 0 ? dtype : x->dtype)))
        return scan_complex(op, out, x, at, dtype, backward);
    int result = at < 0 ? -1 : result_type(op, x, dtype);
    if (result < 0)
        return -1;
    dt_dtype compute = dt_dtype_is_float((dt_dtype)result)
                           ? (result == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32)
                           : DT_INT64;
    /* Convert before adding if the result has a narrower dtype. */
    if (x->dtype != result && (int)compute != result && dtype >= 0) {
        if (dt_to(&narrow, x, (dt_dtype)result, device))
            return -1;
        x = &narrow;
    }
    return dt_contiguous_as(&input, x, compute, device) ||
                   run_scan(op_name, op, out, indices, &input, at, backward)
               ? -1
               : dt_retype(out, (dt_dtype)result);
}

/* The scan of a row-major tensor of a type that backends scan. */
static int run_scan(const char *op_name, dt_scan_op op, dt_tensor *out,
                    dt_tensor *indices, const dt_tensor *input, int at, bool backward)
{
    const dt_device device = dt_tensor_device(input);
    const dt_dtype compute = (dt_dtype)input->dtype;
    if (dt_tensor_empty(op_name, out, compute, input->ndim, input->shape, device) ||
        (indices && dt_tensor_empty(op_name, indices, DT_INT64, input->ndim,
                                    input->shape, device)))
        return -1;
    dt_scan call = {.dtype = compute,
                    .backward = backward,
                    .outer = 1,
                    .n = 1,
                    .inner = 1,
                    .x = dt_tensor_data(input),
                    .out = dt_tensor_data(out),
                    .index = indices ? dt_tensor_data(indices) : NULL};
    for (int d = 0; d < input->ndim; d++)
        *(d < at ? &call.outer : d > at ? &call.inner : &call.n) *= input->shape[d];
    if (out->numel &&
        (dt_tensor_use(input) || dt_tensor_use(out) || dt_tensor_use(indices) ||
         dt_backend_of(device)->scan(dt_stream_current(device), op, &call)))
        return -1;
    return 0;
}

#include "tensor/ops/define.h"
#include "ops/functions/scan.def"
