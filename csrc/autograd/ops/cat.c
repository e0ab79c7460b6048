/* cat and stack: the gradient of an input is its part of the result's. */
#include "autograd/grad.h"
#include "autograd/recorded.h"

/* Wraps dim, for a tensor of ndim dimensions. */
static int64_t wrapped(int64_t dim, int ndim)
{
    return dim < 0 ? dim + ndim : dim;
}

int dt_cat_backward(dt_grad *g)
{
    int64_t dim = wrapped(g->args[1].i, g->gradients[0]->ndim), start = 0;
    for (int i = 0; i < g->args[0].count; i++) {
        int ndim;
        const int64_t *shape = dt_grad_item(g, i, &ndim);
        /* Vectors without elements, which cat leaves out among larger shapes. */
        bool left_out = ndim == 1 && !shape[0];
        int64_t length = left_out ? 0 : shape[dim];
        if (dt_node_wants(g->node, i)) {
            dt_arg part = CALL_OP(narrow, TENSOR(GRAD), dt_value_int(dim),
                                  dt_value_int(start), dt_value_int(length));
            if (left_out)
                part = CALL_OP(reshape, TENSOR(part), dt_value_ints(1, shape));
            g->into[i] = dt_scope_tensor(g->scope, part, g->gradients[0]);
        }
        start += length;
    }
    return 0;
}

int dt_stack_backward(dt_grad *g)
{
    for (int i = 0; i < g->args[0].count; i++) {
        if (!dt_node_wants(g->node, i))
            continue;
        dt_arg part = CALL_OP(select, TENSOR(GRAD), g->args[1], dt_value_int(i));
        g->into[i] = dt_scope_tensor(g->scope, part, g->gradients[0]);
    }
    return 0;
}
