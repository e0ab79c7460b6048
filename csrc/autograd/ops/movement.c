/* Elements in another order, or repeated. */
#include <string.h>

#include "autograd/grad.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

/* For an operation that is its own derivative: the same call on the gradient. */
int dt_same_backward(dt_grad *g)
{
    dt_value args[DT_MAX_PARAMETERS];
    int count = g->op->info->schema.count;
    memcpy(args, g->args, (size_t)count * sizeof *args);
    args[0] = TENSOR(GRAD);
    return dt_grad_set(g, 0, dt_scope_call(g->scope, g->op, count, args));
}

static int flip_along(dt_call *c, int64_t dim)
{
    const dt_tensor *x = c->args[0].tensor;
    if (x->ndim <= dim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): the Tensor has %d dimension%s; give one of at least %d",
                       c->name, x->ndim, x->ndim == 1 ? "" : "s", (int)dim + 1);
    return DT_CALL(flip, c->out[0], dt_value_tensor(x), dt_value_ints(1, &dim));
}

int dt_roll_backward(dt_grad *g)
{
    int64_t back[DT_MAX_NDIM];
    const dt_value *shifts = &g->args[1], *dims = &g->args[2];
    const dt_tensor *grad = g->gradients[0];
    for (int i = 0; i < shifts->count; i++) {
        int64_t dim = dims->count > 0 ? dims->ints[i] : 0;
        int64_t size = dims->count > 0 ? grad->shape[dim < 0 ? dim + grad->ndim : dim]
                                       : grad->numel;
        back[i] = size ? -(shifts->ints[i] % size) : 0;
    }
    return dt_grad_set(
        g, 0, CALL_OP(roll, TENSOR(GRAD), dt_value_ints(shifts->count, back), *dims));
}

int dt_rot90_backward(dt_grad *g)
{
    return dt_grad_set(
        g, 0,
        CALL_OP(rot90, TENSOR(GRAD), dt_value_int(-(g->args[1].i % 4)), g->args[2]));
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/movement.def"
