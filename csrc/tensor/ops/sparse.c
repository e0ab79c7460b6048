/* Products of sparse and dense matrices. */
#include "device/backend.h"
#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

/* The operands of a call: two vectors of indices, and two tensors of one type. */
typedef struct operands {
    dt_tensor index[2], x[2];
} operands;

static void clear(operands *o)
{
    for (int i = 0; i < 2; i++) {
        dt_tensor_clear(&o->index[i]);
        dt_tensor_clear(&o->x[i]);
    }
}

static int take(const dt_call *c, operands *o, dt_sparse_call *call)
{
    const dt_tensor *a = c->args[2].tensor, *b = c->args[3].tensor;
    const dt_device device = dt_tensor_device(b);
    const dt_dtype dtype = (dt_dtype)b->dtype;
    call->dtype = dtype == DT_FLOAT64          ? DT_FLOAT64
                  : dt_dtype_is_inexact(dtype) ? DT_FLOAT32
                                               : DT_INT64;
    if (dtype == DT_BOOL || dt_dtype_kind(dtype) > DT_KIND_FLOAT ||
        a->dtype != b->dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the matrices are of %s and %s; give two of one type, which "
                       "is not bool; convert one with .to()",
                       c->name, dt_dtype_name((dt_dtype)a->dtype),
                       dt_dtype_name(dtype));
    for (int i = 0; i < 2; i++) {
        const dt_tensor *index = c->args[i].tensor;
        if (index->ndim != 1)
            return dt_fail(DT_ERROR_RUNTIME, "%s: indices have %d dimensions; give 1",
                           c->name, index->ndim);
        if (dt_contiguous_as(&o->index[i], index, DT_INT64, device) ||
            dt_contiguous_as(&o->x[i], c->args[2 + i].tensor, call->dtype, device) ||
            dt_tensor_use(&o->index[i]) || dt_tensor_use(&o->x[i]))
            return -1;
    }
    call->inner = b->shape[0];
    call->n = b->ndim > 1 ? b->shape[1] : 0;
    call->count = o->index[1].numel;
    call->columns = dt_tensor_data(&o->index[1]);
    call->x = dt_tensor_data(&o->x[1]);
    return 0;
}

int dt_sparse_product_forward(dt_call *c)
{
    const dt_tensor *starts = c->args[0].tensor, *columns = c->args[1].tensor;
    const dt_tensor *values = c->args[2].tensor, *dense = c->args[3].tensor;
    dt_tensor *out = c->out[0];
    dt_sparse_call call = {.rows = starts->numel - 1};
    operands o = {0};
    int status = -1;
    if (dense->ndim != 2 || values->ndim != 1 || values->numel != columns->numel ||
        call.rows < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: dense has %d dimensions, and there are %lld columns and "
                       "%lld values; give 2, and as many of both",
                       c->name, dense->ndim, (long long)columns->numel,
                       (long long)values->numel);
    const int64_t shape[] = {call.rows, dense->shape[1]};
    if (take(c, &o, &call) ||
        dt_tensor_empty(c->name, out, call.dtype, 2, shape, dt_tensor_device(dense)))
        goto done;
    call.starts = dt_tensor_data(&o.index[0]);
    call.values = dt_tensor_data(&o.x[0]);
    call.y = dt_tensor_data(out);
    if (out->numel && (dt_tensor_use(out) ||
                       dt_backend_of(dt_tensor_device(dense))
                           ->sparse(dt_stream_current(dt_tensor_device(dense)), &call)))
        goto done;
    status = dt_retype(out, (dt_dtype)dense->dtype);
done:
    clear(&o);
    return status;
}

int dt_sparse_sampled_product_forward(dt_call *c)
{
    const dt_tensor *rows = c->args[0].tensor, *columns = c->args[1].tensor;
    const dt_tensor *left = c->args[2].tensor, *right = c->args[3].tensor;
    dt_tensor *out = c->out[0];
    dt_sparse_call call = {0};
    operands o = {0};
    int status = -1;
    if (left->ndim != 2 || right->ndim != 2 || left->shape[1] != right->shape[1] ||
        rows->numel != columns->numel)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: left and right are not matrices of rows of one length, or "
                       "there are %lld rows and %lld columns; give as many of both",
                       c->name, (long long)rows->numel, (long long)columns->numel);
    if (take(c, &o, &call) || dt_tensor_empty(c->name, out, call.dtype, 1, &call.count,
                                              dt_tensor_device(right)))
        goto done;
    call.rows = left->shape[0];
    call.row_of = dt_tensor_data(&o.index[0]);
    call.values = dt_tensor_data(out);
    call.y = dt_tensor_data(&o.x[0]);
    if (!call.n && dt_fill_into(c->name, out, dt_scalar_int(0)))
        goto done;
    if (call.n && call.count &&
        (dt_tensor_use(out) ||
         dt_backend_of(dt_tensor_device(right))
             ->sparse(dt_stream_current(dt_tensor_device(right)), &call)))
        goto done;
    status = dt_retype(out, (dt_dtype)right->dtype);
done:
    clear(&o);
    return status;
}
