#include "tensor/ops/scan.h"

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"

static const char *const scan_names[DT_NSCAN] = {
    [DT_SCAN_SUM] = "cumsum",
    [DT_SCAN_PRODUCT] = "cumprod",
    [DT_SCAN_LOGSUMEXP] = "logcumsumexp",
    [DT_SCAN_MAX] = "cummax",
    [DT_SCAN_MIN] = "cummin",
};

void dt_nn_of(const dt_tensor *x, int dim, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = *inner = *n = 1;
    for (int d = 0; d < x->ndim; d++)
        *(d < dim ? outer : d > dim ? inner : n) *= x->shape[d];
}

/* The type of the result; -1 after dt_fail. */
static int result_type(dt_scan_op op, const dt_tensor *x, int dtype)
{
    dt_dtype own = (dt_dtype)(dtype >= 0 ? dtype : x->dtype);
    if (op == DT_SCAN_MAX || op == DT_SCAN_MIN)
        return (int)own;
    if (op == DT_SCAN_LOGSUMEXP && !dt_dtype_is_float(own))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "logcumsumexp: not defined for tensors of type %s; convert it "
                       "first, e.g. with .float()",
                       dt_dtype_name(own));
    if (dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for dtype bool; give another dtype",
                       scan_names[op]);
    return dtype >= 0 || dt_dtype_is_float(own) ? (int)own : DT_INT64;
}

/* t, as an alias where it is row-major and of dtype already. */
static int row_major_as(dt_tensor *out, const dt_tensor *t, dt_dtype dtype)
{
    if (t->dtype == dtype)
        return dt_contiguous(out, t);
    dt_tensor converted;
    if (dt_to(&converted, t, dtype, dt_tensor_device(t)))
        return -1;
    int status = dt_contiguous(out, &converted);
    dt_tensor_clear(&converted);
    return status;
}

int dt_cumulative(dt_scan_op op, dt_tensor *out, dt_tensor *indices, const dt_tensor *x,
                  int64_t dim, int dtype, bool backward)
{
    const char *what = scan_names[op];
    dt_device device = dt_tensor_device(x);
    dt_tensor input, made;
    out->storage = input.storage = made.storage = NULL;
    if (indices)
        indices->storage = NULL;
    int at = dt_shape_wrap_dim(what, dim, x->ndim);
    int result = at < 0 ? -1 : result_type(op, x, dtype);
    if (result < 0)
        return -1;
    dt_dtype compute = dt_dtype_is_float((dt_dtype)result)
                           ? (result == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32)
                           : DT_INT64;
    dt_scan call = {.dtype = compute, .backward = backward};
    /* To a narrower dtype, convert before adding. */
    if (x->dtype != result && (int)compute != result && dtype >= 0) {
        if (dt_to(&made, x, (dt_dtype)result, device))
            goto fail;
        x = &made;
    }
    if (row_major_as(&input, x, compute))
        goto fail;
    dt_tensor_clear(&made);
    if (dt_tensor_empty(what, &made, compute, input.ndim, input.shape, device) ||
        (indices &&
         dt_tensor_empty(what, indices, DT_INT64, input.ndim, input.shape, device)))
        goto fail;
    dt_nn_of(&input, at, &call.outer, &call.n, &call.inner);
    if (made.numel) {
        call.x = dt_tensor_data(&input);
        call.out = dt_tensor_data(&made);
        call.index = indices ? dt_tensor_data(indices) : NULL;
        if (dt_storage_use(input.storage) || dt_storage_use(made.storage) ||
            (indices && dt_storage_use(indices->storage)) ||
            dt_backend_of(device)->scan(dt_stream_current(device), op, &call))
            goto fail;
    }
    if (made.dtype == result) {
        *out = made;
        made.storage = NULL;
    } else if (dt_to(out, &made, (dt_dtype)result, device)) {
        goto fail;
    }
    dt_tensor_clear(&made);
    dt_tensor_clear(&input);
    return 0;
fail:
    dt_tensor_clear(&made);
    dt_tensor_clear(&input);
    if (indices)
        dt_tensor_clear(indices);
    return -1;
}

/* --- the rows of ops/functions/scan.def --- */

static int scan(dt_call *c, dt_scan_op op, int dtype, bool from_end)
{
    const dt_tensor *x = c->args[0].tensor;
    if (c->in_place) {
        if (dtype >= 0 && dtype != x->dtype)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s_(): the tensor is of dtype %s and cannot become %s in "
                           "place; leave dtype out, or call %s()",
                           c->name, dt_dtype_name((dt_dtype)x->dtype),
                           dt_dtype_name((dt_dtype)dtype), c->name);
        dtype = x->dtype;
    }
    return dt_cumulative(op, c->out[0],
                         op == DT_SCAN_MAX || op == DT_SCAN_MIN ? c->out[1] : NULL, x,
                         c->args[1].i, dtype, from_end);
}

int dt_cumsum_forward(dt_call *c)
{
    return scan(c, DT_SCAN_SUM, c->args[2].dtype, false);
}

int dt_reverse_cumsum_forward(dt_call *c)
{
    return scan(c, DT_SCAN_SUM, -1, true);
}

int dt_cumprod_forward(dt_call *c)
{
    return scan(c, DT_SCAN_PRODUCT, c->args[2].dtype, false);
}

int dt_logcumsumexp_forward(dt_call *c)
{
    return scan(c, DT_SCAN_LOGSUMEXP, -1, false);
}

int dt_reverse_logcumsumexp_forward(dt_call *c)
{
    return scan(c, DT_SCAN_LOGSUMEXP, -1, true);
}

int dt_cummax_forward(dt_call *c)
{
    return scan(c, DT_SCAN_MAX, -1, false);
}

int dt_cummin_forward(dt_call *c)
{
    return scan(c, DT_SCAN_MIN, -1, false);
}
