/* Views as operations: calls of the functions of tensor/view.h. */
#include "ops/elementwise_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/view.h"

static int reshape(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    if (dt_view_reshape(c->out[0], x, c->args[1].count, c->args[1].ints) < 0)
        return -1;
    if (c->out[0]->storage != x->storage)
        c->node = "UnsafeViewBackward0";
    return 0;
}

/* The same bytes as elements of another type. Where the sizes of the types differ, the
 * last dimension has to be dense, and all strides to be multiples of the new size. */
static int view_dtype(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_dtype dtype = (dt_dtype)c->args[1].dtype;
    int64_t from = (int64_t)dt_dtype_size((dt_dtype)x->dtype),
            to = (int64_t)dt_dtype_size(dtype);
    int last = x->ndim - 1;
    int64_t up = from > to ? from / to : 1, down = to > from ? to / from : 1;
    bool fits = from == to || (last >= 0 && x->strides[last] == 1);
    if (fits && down > 1) {
        fits = x->shape[last] % down == 0 && x->offset % down == 0 &&
               (uintptr_t)dt_tensor_place(x) % (uintptr_t)to == 0;
        for (int d = 0; d < last; d++)
            fits = fits && x->strides[d] % down == 0;
    }
    if (!fits) {
        char shape[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "view(): a Tensor of shape %s and type %s cannot be viewed as "
                       "elements of type %s, which have another size; its last "
                       "dimension has to be dense, and its sizes to be multiples; see "
                       ".contiguous() and .to()",
                       dt_shape_text(x->ndim, x->shape, shape, sizeof shape),
                       dt_dtype_name((dt_dtype)x->dtype), dt_dtype_name(dtype));
    }
    dt_tensor *t = c->out[0];
    dt_tensor_alias(t, x);
    t->dtype = (unsigned char)dtype;
    t->offset = t->offset * up / down;
    t->numel = t->numel * up / down;
    for (int d = 0; d <= last; d++) {
        t->shape[d] = d == last ? t->shape[d] * up / down : t->shape[d];
        t->strides[d] = d == last && from != to ? 1 : t->strides[d] * up / down;
    }
    dt_tensor_update(t);
    return 0;
}

static int adjoint(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    DT_LOCAL(exchanged);
    const bool complex = dt_dtype_is_complex((dt_dtype)x->dtype);
    dt_tensor *into = complex ? &exchanged : c->out[0];
    if (!x->ndim)
        dt_tensor_alias(into, x);
    else if (dt_view_mT(into, x))
        return -1;
    return !complex ? 0
                    : dt_elementwise(DT_OP_conjugate, c->out[0],
                                     DT_ARGS(dt_arg_tensor(&exchanged)));
}

static int squeeze(dt_call *c)
{
    static const char *const nodes[2][3] = {
        {"SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2"},
        {"SqueezeBackward3", "SqueezeBackward4", "SqueezeBackward5"}};
    int count = c->args[1].count;
    c->node = nodes[c->in_place][count < 0 ? 0 : count == 1 ? 1 : 2];
    return dt_view_squeeze(c->out[0], c->args[0].tensor, count, c->args[1].ints);
}

static int flatten(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    if (dt_view_flatten(c->out[0], x, c->args[1].i, c->args[2].i) < 0)
        return -1;
    if (c->out[0]->storage != x->storage)
        c->node = "UnsafeViewBackward0";
    return 0;
}

#include "tensor/ops/define.h"
#include "ops/functions/view.def"
