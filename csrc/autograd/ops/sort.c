/* Sorting: the gradient of an element is written to its index in the input. */
#include "autograd/grad.h"

int dt_sort_backward(dt_grad *g)
{
    return dt_grad_scatter(g, 0, DT_INDEX_WRITE, g->args[1].i, dt_grad_output(g, 1));
}

int dt_msort_backward(dt_grad *g)
{
    return dt_grad_scatter(g, 0, DT_INDEX_WRITE, 0, dt_grad_output(g, 1));
}

int dt_topk_backward(dt_grad *g)
{
    return dt_grad_scatter(g, 0, DT_INDEX_WRITE, g->args[2].i, dt_grad_output(g, 1));
}

int dt_median_backward(dt_grad *g)
{
    dt_arg zeros = dt_grad_zeros(g, 0);
    if (!g->scope->failed && !zeros.tensor->numel) /* no elements, no index */
        return dt_grad_set(g, 0, zeros);
    return dt_grad_put(g, dt_grad_output(g, 1));
}

int dt_unique_backward(dt_grad *g)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "backward: %s has no derivative; call unique() on x.detach()",
                   g->node->name);
}
