#include "tensor/ops/nn.h"

#include <math.h>

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* --- calls --- */

void dt_nn_begin(dt_nn_rows *rows, const char *op_name, dt_dtype dtype,
                 dt_device device, int ndim, const int64_t *shape, int dim)
{
    dt_nn_call *call = &rows->call;
    rows->dtype = dtype;
    rows->device = device;
    rows->failed = false;
    rows->keeps_type = false;
    rows->count = 0;
    call->op_name = op_name;
    call->dtype = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    call->stored = dt_stored_dtype(device, dtype);
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
    rows->call.operands[at] = dt_tensor_place(t); /* it may wait: device/fusion.h */
    rows->call.storages[at] = t->storage;
    if (dt_storage_use(t->storage))
        rows->failed = true;
}

void dt_nn_take_as_it_is(dt_nn_rows *rows, int at, const dt_tensor *t)
{
    if (!rows->failed)
        use(rows, at, t);
}

void dt_nn_take(dt_nn_rows *rows, int at, bool stored, const dt_tensor *t)
{
    dt_dtype dtype = stored ? rows->call.stored : rows->call.dtype;
    if (rows->failed || !t)
        return;
    if (!t->contiguous || t->dtype != dtype) {
        dt_tensor *own = &rows->held[rows->count];
        rows->failed = dt_contiguous_as(own, t, dtype, rows->device) < 0;
        if (rows->failed)
            return;
        rows->count++;
        t = own;
    }
    use(rows, at, t);
}

void dt_nn_make(dt_nn_rows *rows, int at, bool stored, dt_tensor *out, int ndim,
                const int64_t *shape)
{
    dt_dtype dtype = stored ? rows->call.stored : rows->call.dtype;
    if (rows->failed)
        return;
    if (dt_tensor_empty(rows->call.op_name, out, dtype, ndim, shape, rows->device)) {
        rows->failed = true;
        return;
    }
    if (stored || !rows->keeps_type)
        rows->results[at] = out;
    use(rows, at, out);
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
            rows->failed = dt_retype(rows->results[k], rows->dtype) < 0;
    return rows->failed ? -1 : 0;
}

/* --- softmax --- */

static int softmax(dt_call *c, dt_nn_op op)
{
    const dt_tensor *x = c->args[0].tensor;
    int dtype = c->args[2].dtype,
        along = dt_shape_wrap_dim(c->name, c->args[1].i, x->ndim);
    dt_nn_rows rows;
    if (along < 0)
        return -1;
    dt_dtype result = (dt_dtype)(dtype >= 0 ? dtype : x->dtype);
    if (!dt_dtype_is_float(result))
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for tensors of type %s: the result needs a "
                       "floating type; convert it first, e.g. with .float(), or give "
                       "dtype=torch.float32",
                       c->name, dt_dtype_name(result));
    dt_nn_begin(&rows, c->name, result, dt_tensor_device(x), x->ndim, x->shape, along);
    NN_MAKE(&rows, softmax, y, c->out[0], x->ndim, x->shape);
    NN_TAKE(&rows, softmax, x, x);
    return dt_nn_run(&rows, op);
}

int dt_softmax_gradient(dt_nn_op op, dt_tensor *out, const dt_tensor *g,
                        const dt_tensor *y, int dim)
{
    dt_nn_rows rows;
    dt_nn_begin(&rows, "softmax", (dt_dtype)y->dtype, dt_tensor_device(y), y->ndim,
                y->shape, dim);
    NN_MAKE(&rows, softmax_backward, dx, out, y->ndim, y->shape);
    NN_TAKE(&rows, softmax_backward, dy, g);
    NN_TAKE(&rows, softmax_backward, y, y);
    return dt_nn_run(&rows, op);
}

/* --- logsumexp --- */

/* Several dimensions become the last one of a permuted copy, where they are not one in
 * memory. */
static int join_dims(dt_tensor *out, const dt_tensor *x, const bool *reduced)
{
    int64_t order[DT_MAX_NDIM], shape[DT_MAX_NDIM], n = 1;
    int count = 0;
    DT_LOCAL(permuted);
    for (int d = 0; d < x->ndim; d++)
        if (!reduced[d]) {
            shape[count] = x->shape[d];
            order[count++] = d;
        }
    int kept = count;
    for (int d = 0; d < x->ndim; d++)
        if (reduced[d]) {
            n *= x->shape[d];
            order[count++] = d;
        }
    shape[kept] = n;
    return dt_view_permute(&permuted, x, x->ndim, order)
               ? -1
               : dt_view_reshape(out, &permuted, kept + 1, shape);
}

/* The logarithm of a sum of complex numbers, which are divided by the power of the greatest
 * real part first, unless that is infinite. */
static int logsumexp_complex(dt_call *c, const bool *reduced)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[1];
    int64_t shape[DT_MAX_NDIM];
    const int ndim = dt_reduce_shape(x, reduced, c->args[2].b, shape);
    DT_LOCAL(real);
    DT_LOCAL(most);
    DT_LOCAL(infinite);
    DT_LOCAL(top);
    DT_LOCAL(step);
    DT_LOCAL(power);
    DT_LOCAL(sum);
    DT_LOCAL(log);
    DT_LOCAL(found);
    const dt_arg zero = dt_arg_scalar(dt_scalar_int(0));
    dt_arg least = zero;
#define ROW(op, out, ...) dt_elementwise(DT_OP_##op, &(out), DT_ARGS(__VA_ARGS__))
#define T(t)              dt_arg_tensor(&(t))
    dt_complex_part(&real, x, 0);
    if (x->numel) {
        if (dt_reduce(DT_REDUCE_amax, &most, &real, dims->count, dims->ints, true, -1,
                      0) ||
            ROW(isinf, infinite, T(most)) ||
            ROW(where, top, T(infinite), zero, T(most)))
            return -1;
        least = T(top);
    }
    if (ROW(sub, step, dt_arg_tensor(x), least) || ROW(exp, power, T(step)) ||
        dt_reduce(DT_REDUCE_sum, &sum, &power, dims->count, dims->ints, true, -1, 0) ||
        ROW(log, log, T(sum)) || ROW(add, found, T(log), least))
        return -1;
#undef ROW
#undef T
    return dt_view_shape(c->out[0], &found, ndim, shape);
}

/* Integers become the default floating type. */
static int logsumexp(dt_call *c)
{
    const char *op_name = "logsumexp";
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[1];
    bool reduced[DT_MAX_NDIM];
    int64_t shape[DT_MAX_NDIM];
    dt_nn_rows rows;
    DT_LOCAL(joined);
    if (dt_reduce_dims(op_name, x, dims->count, dims->ints, reduced))
        return -1;
    if (dt_dtype_is_complex((dt_dtype)x->dtype))
        return logsumexp_complex(c, reduced);
    int ndim = dt_reduce_shape(x, reduced, c->args[2].b, shape), along = -1;
    for (int d = 0; d < x->ndim && dims->count; d++)
        along = reduced[d] ? d : along;
    if (dims->count > 1) {
        if (join_dims(&joined, x, reduced))
            return -1;
        x = &joined;
        along = x->ndim - 1;
    }
    dt_dtype dtype =
        dt_dtype_is_float((dt_dtype)x->dtype) ? (dt_dtype)x->dtype : dt_default_dtype();
    dt_nn_begin(&rows, op_name, dtype, dt_tensor_device(x), x->ndim, x->shape, along);
    NN_MAKE(&rows, logsumexp, y, c->out[0], ndim, shape);
    NN_TAKE(&rows, logsumexp, x, x);
    if (dt_nn_run(&rows, DT_NN_logsumexp))
        return -1;
    return c->out[0]->numel && !rows.call.n
               ? dt_fill_into(op_name, c->out[0], dt_scalar_float(-INFINITY))
               : 0;
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

#include "tensor/ops/define.h"
#include "ops/functions/nn.def"
