#include "tensor/ops/ops.h"

#include <inttypes.h>

#include "base/gil.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

static int diag_embed(dt_call *c, int64_t offset, int64_t dim1, int64_t dim2)
{
    const dt_tensor *t = c->args[0].tensor;
    dt_tensor *out = c->out[0];
    int64_t shape[DT_MAX_NDIM], side;
    int ndim = t->ndim + 1, a, b;
    DT_LOCAL(diagonal);
    if (!t->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the tensor has no dimension that could be a diagonal; give "
                       "it one with reshape(1)",
                       c->name);
    if (dt_shape_wrap_pair(c->name, dim1, dim2, ndim, &a, &b) ||
        dt_shape_check_ndim(c->name, ndim))
        return -1;
    if (offset == INT64_MIN ||
        __builtin_add_overflow(t->shape[t->ndim - 1], offset < 0 ? -offset : offset,
                               &side))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the offset %" PRId64 " is too large; give a smaller one",
                       c->name, offset);
    for (int d = 0, from = 0; d < ndim; d++)
        shape[d] = d == a || d == b ? side : t->shape[from++];
    if (dt_full(c->name, out, (dt_dtype)t->dtype, ndim, shape, dt_tensor_device(t),
                dt_scalar_int(0)) ||
        dt_view_diagonal(&diagonal, out, offset, a, b) ||
        dt_copy_part(c->name, &diagonal, t))
        return -1;
    out->storage->version = 0;
    return 0;
}

static int diag(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t offset = c->args[1].i;
    DT_LOCAL(diagonal);
    if (x->ndim == 1)
        return diag_embed(c, offset, 0, 1);
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "diag: the tensor has %d dimensions; give a vector or a matrix, "
                       "or use diagonal or diag_embed",
                       x->ndim);
    c->node = "DiagonalBackward0_copy";
    return dt_view_diagonal(&diagonal, x, offset, 0, 1)
               ? -1
               : dt_to(c->out[0], &diagonal, (dt_dtype)x->dtype, dt_tensor_device(x));
}

static int trace(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    DT_LOCAL(diagonal);
    if (x->ndim != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "trace: the tensor has %d dimension%s; give a matrix", x->ndim,
                       x->ndim == 1 ? "" : "s");
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "trace: not defined for bools; convert them first, e.g. with "
                       ".int()");
    return dt_view_diagonal(&diagonal, x, 0, 0, 1)
               ? -1
               : dt_reduce(DT_REDUCE_sum, c->out[0], &diagonal, 0, NULL, false, -1, 0);
}

#include "tensor/ops/define.h"
#include "ops/functions/diagonal.def"
