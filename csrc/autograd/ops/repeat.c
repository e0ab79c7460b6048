/* Elements several times: derivatives and composites. */
#include "autograd/grad.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

/* The sum of x over one dimension, which stays with size 1 if keep. */
static dt_arg sum_along(dt_grad *g, dt_arg x, int64_t dim, bool keep)
{
    return CALL_OP(sum, TENSOR(x), dt_value_ints(1, &dim), dt_value_bool(keep));
}

static dt_arg reshape(dt_grad *g, dt_arg x, int ndim, const int64_t *shape)
{
    return CALL_OP(reshape, TENSOR(x), dt_value_ints(ndim, shape));
}

/* Sums over the `count` copies of `size` elements along dim. */
static dt_arg sum_copies(dt_grad *g, dt_arg x, int dim, int64_t count, int64_t size)
{
    int64_t shape[DT_MAX_NDIM], outer = 1, inner = size;
    const dt_tensor *t = x.tensor;
    if (g->scope->failed)
        return x;
    for (int d = 0; d < t->ndim; d++) {
        shape[d] = d == dim ? size : t->shape[d];
        *(d < dim ? &outer : &inner) *= d == dim ? 1 : t->shape[d];
    }
    /* As three dimensions, since one more than the tensor has may be too many. */
    const int64_t apart[] = {outer, count, inner};
    return reshape(g, sum_along(g, reshape(g, x, 3, apart), 1, false), t->ndim, shape);
}

int dt_repeat_backward(dt_grad *g)
{
    const dt_result *x = dt_grad_like(g, 0);
    const dt_value *repeats = &g->args[1];
    int extra = repeats->count - x->ndim;
    dt_arg sum = GRAD;
    for (int d = 0; d < repeats->count; d++) {
        if (d < extra) {
            sum = sum_along(g, sum, 0, false);
            continue;
        }
        int64_t size = x->shape[d - extra];
        if (repeats->ints[d] == 1)
            continue;
        sum = size == 1 ? sum_along(g, sum, d - extra, true)
                        : sum_copies(g, sum, d - extra, repeats->ints[d], size);
    }
    return dt_grad_set(g, 0, sum);
}

int dt_tile_forward(dt_call *c)
{
    int64_t repeats[DT_MAX_NDIM];
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[1];
    int missing = x->ndim > dims->count ? x->ndim - dims->count : 0;
    for (int d = 0; d < missing + dims->count; d++)
        repeats[d] = d < missing ? 1 : dims->ints[d - missing];
    return DT_CALL(repeat, c->out[0], dt_value_tensor(x),
                   dt_value_ints(missing + dims->count, repeats));
}

/* repeats is an int: copies along a new dimension. */
static int repeat_each(dt_call *c, const dt_tensor *x, int dim)
{
    int64_t shape[DT_MAX_NDIM], repeats = c->args[1].i;
    if (repeats < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: the repeats are negative; give 0 or more");
    if (x->ndim == DT_MAX_NDIM)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "repeat_interleave: a tensor of %d dimensions leaves no room for "
            "the copies; reshape it to fewer first",
            x->ndim);
    long long size = repeats * x->shape[dim];
    if (c->args[3].given && c->args[3].i >= 0 && c->args[3].i != size)
        return dt_fail(DT_ERROR_RUNTIME,
                       "repeat_interleave: output_size is %lld, and the repeats make "
                       "%lld; leave it out, or give that",
                       (long long)c->args[3].i, size);
    for (int d = 0; d < x->ndim; d++)
        shape[d <= dim ? d : d + 1] = x->shape[d];
    shape[dim + 1] = repeats;
    DT_LOCAL(apart);
    DT_LOCAL(spread);
    DT_LOCAL(copies);
    if (DT_CALL(unsqueeze, &apart, dt_value_tensor(x), dt_value_int(dim + 1)) < 0 ||
        DT_CALL(expand, &spread, dt_value_tensor(&apart),
                dt_value_ints(x->ndim + 1, shape)) < 0 ||
        dt_recorded_to_format(&copies, &spread, (dt_dtype)x->dtype, dt_tensor_device(x),
                              DT_FORMAT_CONTIGUOUS, false) < 0)
        return -1;
    return DT_CALL(flatten, c->out[0], dt_value_tensor(&copies), dt_value_int(dim),
                   dt_value_int(dim + 1));
}

int dt_repeat_interleave_forward(dt_call *c)
{
    DT_LOCAL(flat);
    DT_LOCAL(index);
    const dt_tensor *x = c->args[0].tensor;
    if (!c->args[2].given) {
        if (DT_CALL(flatten, &flat, c->args[0]) < 0)
            return -1;
        x = &flat;
    }
    int dim = dt_shape_wrap_dim(c->name, c->args[2].i, x->ndim);
    if (dim >= 0 && !x->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "repeat_interleave: the tensor has no dimension to repeat "
                       "along; leave dim out");
    if (dim < 0)
        return -1;
    if (!c->args[1].tensor)
        return repeat_each(c, x, dim);
    if (dt_repeat_index(&index, c->args[1].tensor, x->shape[dim],
                        c->args[3].given ? c->args[3].i : -1) < 0)
        return -1;
    return DT_CALL(index_select, c->out[0], dt_value_tensor(x), dt_value_int(dim),
                   dt_value_tensor(&index));
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/repeat.def"
