/* Gradients that tensors keep though they are not leaves: retain_grad(). */
#include <stdlib.h>

#include "autograd/variable.h"

static void kept_free(dt_history *history)
{
    dt_kept *kept = (dt_kept *)history;
    dt_tensor_clear(&kept->grad);
    free(kept);
}

static void kept_release(void *context)
{
    dt_history_release(context); /* context is its head */
}

/* A sum is a new tensor, since the tensor's shape may have changed in place. */
static int keep(void *context, dt_tensor *gradient, dt_shown *shown)
{
    (void)shown;
    dt_tensor *grad = &((dt_kept *)context)->grad;
    return dt_gradient_add(grad, gradient, grad->storage || dt_grad_enabled);
}

int dt_variable_retain_grad(const dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    dt_edge edge;
    if (!v || v->requires_grad || v->kept)
        return 0;
    if (dt_variable_edge(t, &edge) < 0)
        return -1;
    if (!edge.node) /* a view taken before its base required gradients */
        return 0;
    dt_kept *kept = malloc(sizeof *kept);
    if (!kept) {
        dt_node_release(edge.node);
        return dt_variable_no_memory();
    }
    kept->head.references = 2; /* the variable's and the hook's */
    kept->head.free = kept_free;
    kept->object = NULL;
    kept->grad.storage = NULL;
    v->kept = kept;
    kept->hook =
        dt_hooks_add(&edge.node->hooks, edge.index, true, keep, kept_release, kept);
    dt_node_release(edge.node);
    return kept->hook ? 0 : -1;
}
