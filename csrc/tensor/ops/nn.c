#include "tensor/ops/nn.h"

#include <math.h>

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

static const char *const names[DT_NNN] = {
#define NN_OP(name, ...) #name,
#include "ops/nn.def"
};

/* --- calls --- */

void dt_nn_begin(dt_nn_rows *rows, const char *what, dt_dtype dtype, dt_device device,
                 int ndim, const int64_t *shape, int dim)
{
    dt_nn_call *call = &rows->call;
    rows->dtype = dtype;
    rows->device = device;
    rows->failed = false;
    rows->keeps_type = false;
    rows->count = 0;
    call->what = what;
    call->dtype = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    call->outer = call->n = call->inner = 1;
    for (int d = 0; d < ndim; d++)
        *(dim < 0 || d == dim ? &call->n
          : d < dim           ? &call->outer
                              : &call->inner) *= shape[d];
    call->params = (dt_nn_params){.ignore_index = -1};
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        call->operands[k] = NULL;
        rows->results[k] = NULL;
    }
}

static void use(dt_nn_rows *rows, int at, const dt_tensor *t)
{
    rows->call.operands[at] = dt_tensor_data(t);
    if (dt_storage_use(t->storage))
        rows->failed = true;
}

void dt_nn_take_as_it_is(dt_nn_rows *rows, int at, const dt_tensor *t)
{
    if (!rows->failed)
        use(rows, at, t);
}

void dt_nn_take(dt_nn_rows *rows, int at, const dt_tensor *t)
{
    if (rows->failed || !t)
        return;
    bool as_it_is = t->contiguous && t->dtype == rows->call.dtype;
    if (!as_it_is) {
        dt_tensor *own = &rows->held[rows->count];
        dt_tensor row_major;
        if (dt_contiguous(&row_major, t)) {
            rows->failed = true;
            return;
        }
        if (row_major.dtype == rows->call.dtype) {
            *own = row_major;
        } else {
            int status = dt_to(own, &row_major, rows->call.dtype, rows->device);
            dt_tensor_clear(&row_major);
            if (status) {
                rows->failed = true;
                return;
            }
        }
        rows->count++;
        t = own;
    }
    use(rows, at, t);
}

void dt_nn_make(dt_nn_rows *rows, int at, dt_tensor *out, int ndim,
                const int64_t *shape)
{
    out->storage = NULL;
    if (rows->failed)
        return;
    if (dt_tensor_empty(rows->call.what, out, rows->call.dtype, ndim, shape,
                        rows->device)) {
        rows->failed = true;
        return;
    }
    rows->results[at] = out;
    use(rows, at, out);
}

/* A result in the type that was asked for. */
static int finish(dt_nn_rows *rows, dt_tensor *out)
{
    if (rows->keeps_type || rows->dtype == rows->call.dtype)
        return 0;
    dt_tensor computed = *out;
    int status = dt_to(out, &computed, rows->dtype, rows->device);
    dt_tensor_clear(&computed);
    return status;
}

int dt_nn_run(dt_nn_rows *rows, dt_nn_op op)
{
    dt_nn_call *call = &rows->call;
    call->op = op;
    if (!rows->failed && call->outer && call->n && call->inner)
        rows->failed =
            dt_backend_of(rows->device)->nn(dt_stream_current(rows->device), call) < 0;
    for (int k = 0; k < rows->count; k++)
        dt_tensor_clear(&rows->held[k]);
    for (int k = 0; k < DT_NN_OPERANDS && !rows->failed; k++)
        if (rows->results[k])
            rows->failed = finish(rows, rows->results[k]) < 0;
    for (int k = 0; k < DT_NN_OPERANDS && rows->failed; k++)
        if (rows->results[k])
            dt_tensor_clear(rows->results[k]);
    return rows->failed ? -1 : 0;
}

/* --- softmax --- */

int dt_softmax(dt_nn_op op, dt_tensor *out, const dt_tensor *x, int64_t dim, int dtype)
{
    const char *what = names[op];
    dt_nn_rows rows;
    out->storage = NULL;
    int along = dt_shape_wrap_dim(what, dim, x->ndim);
    if (along < 0)
        return -1;
    dt_dtype result = (dt_dtype)(dtype >= 0 ? dtype : x->dtype);
    if (!dt_dtype_is_float(result))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for tensors of type %s, whose shares are not "
                       "whole; convert it first, e.g. with .float(), or give "
                       "dtype=torch.float32",
                       what, dt_dtype_name(result));
    dt_nn_begin(&rows, what, result, dt_tensor_device(x), x->ndim, x->shape, along);
    NN_MAKE(&rows, softmax, y, out, x->ndim, x->shape);
    NN_TAKE(&rows, softmax, x, x);
    return dt_nn_run(&rows, op);
}

int dt_softmax_gradient(dt_nn_op op, dt_tensor *out, const dt_tensor *g,
                        const dt_tensor *y, int dim)
{
    dt_nn_rows rows;
    dt_nn_begin(&rows, names[op], (dt_dtype)y->dtype, dt_tensor_device(y), y->ndim,
                y->shape, dim);
    NN_MAKE(&rows, softmax_backward, dx, out, y->ndim, y->shape);
    NN_TAKE(&rows, softmax_backward, dy, g);
    NN_TAKE(&rows, softmax_backward, y, y);
    return dt_nn_run(&rows, op);
}

/* --- logsumexp --- */

/* Several dimensions become the last one of a permuted copy, where they are not one in
 * memory. */
static int join_dims(dt_tensor *out, const dt_tensor *x, const bool *folded)
{
    int64_t order[DT_MAX_NDIM], shape[DT_MAX_NDIM], n = 1;
    int count = 0;
    dt_tensor permuted;
    for (int d = 0; d < x->ndim; d++)
        if (!folded[d]) {
            shape[count] = x->shape[d];
            order[count++] = d;
        }
    int kept = count;
    for (int d = 0; d < x->ndim; d++)
        if (folded[d]) {
            n *= x->shape[d];
            order[count++] = d;
        }
    shape[kept] = n;
    if (dt_view_permute(&permuted, x, x->ndim, order))
        return -1;
    int status = dt_view_reshape(out, &permuted, kept + 1, shape);
    dt_tensor_clear(&permuted);
    return status;
}

int dt_logsumexp(dt_tensor *out, const dt_tensor *x, int count, const int64_t *dims,
                 bool keepdim)
{
    const char *what = "logsumexp";
    bool folded[DT_MAX_NDIM];
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0, along = -1;
    dt_tensor joined = {.storage = NULL};
    dt_nn_rows rows;
    out->storage = NULL;
    for (int d = 0; d < x->ndim; d++)
        folded[d] = count == 0;
    for (int i = 0; i < count; i++) {
        int dim = dt_shape_wrap_dim(what, dims[i], x->ndim);
        if (dim < 0)
            return -1;
        if (x->ndim && folded[dim])
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d is named twice; name each one once", what,
                           dim);
        folded[dim] = true;
        along = dim;
    }
    for (int d = 0; d < x->ndim; d++)
        if (!folded[d] || keepdim)
            shape[ndim++] = folded[d] ? 1 : x->shape[d];
    if (count > 1) {
        if (join_dims(&joined, x, folded))
            return -1;
        x = &joined;
        along = x->ndim - 1;
    }
    dt_dtype dtype =
        dt_dtype_is_float((dt_dtype)x->dtype) ? (dt_dtype)x->dtype : dt_default_dtype();
    dt_nn_begin(&rows, what, dtype, dt_tensor_device(x), x->ndim, x->shape, along);
    NN_MAKE(&rows, logsumexp, y, out, ndim, shape);
    NN_TAKE(&rows, logsumexp, x, x);
    int status = dt_nn_run(&rows, DT_NN_logsumexp);
    dt_tensor_clear(&joined);
    if (!status && out->numel && !rows.call.n)
        status = dt_fill_into(what, out, dt_scalar_float(-INFINITY));
    return status;
}

int dt_logsumexp_gradient(dt_tensor *out, const dt_tensor *g, const dt_tensor *x,
                          const dt_tensor *y, int dim)
{
    dt_nn_rows rows;
    dt_nn_begin(&rows, "logsumexp", (dt_dtype)x->dtype, dt_tensor_device(x), x->ndim,
                x->shape, dim);
    NN_MAKE(&rows, logsumexp_backward, dx, out, x->ndim, x->shape);
    NN_TAKE(&rows, logsumexp_backward, dy, g);
    NN_TAKE(&rows, logsumexp_backward, x, x);
    NN_TAKE(&rows, logsumexp_backward, y, y);
    return dt_nn_run(&rows, DT_NN_logsumexp_backward);
}

/* --- the rows of ops/functions/nn.def --- */

int dt_softmax_forward(dt_call *c)
{
    return dt_softmax(DT_NN_softmax, c->out[0], c->args[0].tensor, c->args[1].i,
                      c->args[2].dtype);
}

int dt_log_softmax_forward(dt_call *c)
{
    return dt_softmax(DT_NN_log_softmax, c->out[0], c->args[0].tensor, c->args[1].i,
                      c->args[2].dtype);
}

int dt_logsumexp_forward(dt_call *c)
{
    const dt_value *dims = &c->args[1];
    return dt_logsumexp(c->out[0], c->args[0].tensor, dims->count, dims->ints,
                        c->args[2].b);
}
