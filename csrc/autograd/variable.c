#include "autograd/variable.h"

#include "autograd/sparse_gradient.h"

#include <stdlib.h>

_Thread_local bool dt_grad_enabled = true;

static dt_free_list freed;

static void variable_free(dt_history *history)
{
    dt_variable *v = (dt_variable *)history;
    dt_node_release(v->made.node);
    dt_tensor_clear(&v->grad);
    dt_history_release((dt_history *)v->kept); /* its head, or NULL */
    dt_hooks_free(&v->hooks);
    dt_hooks_free(&v->after);
    if (v->base)
        dt_history_release(&v->base->head);
    if (v->geometry)
        free(v->geometry);
    if (v->sparse)
        dt_sparse.free(v->sparse);
    dt_struct_free(&freed, v);
}

int dt_variable_no_memory(void)
{
    return dt_fail(
        DT_ERROR_HOST_MEMORY,
        "no memory left to record an operation; free some, or compute under no_grad()");
}

dt_variable *dt_variable_new(void)
{
    dt_variable *v = dt_struct_new(&freed, _Alignof(dt_variable), sizeof *v);
    if (!v) {
        dt_variable_no_memory();
        return NULL;
    }
    v->head.references = 1;
    v->head.free = variable_free;
    v->requires_grad = false;
    v->kept = NULL;
    v->made.node = NULL;
    v->made.index = 0;
    v->accumulator = NULL;
    v->grad.storage = NULL;
    v->hooks = NULL;
    v->after = NULL;
    v->base = NULL;
    v->version = 0;
    v->geometry = NULL;
    v->object = NULL;
    v->sparse = NULL;
    return v;
}

dt_variable *dt_variable_ensure(dt_tensor *t)
{
    if (!t->history) {
        dt_variable *v = dt_variable_new();
        t->history = v ? &v->head : NULL;
    }
    return dt_variable_of(t);
}

void dt_variable_alias(dt_tensor *out, const dt_tensor *t)
{
    dt_tensor_alias(out, t);
    out->history = dt_history_retain(t->history);
}

/* --- edges --- */

static int edge_of(dt_variable *v, const dt_tensor *t, dt_edge *out)
{
    if (v->made.node) {
        out->node = dt_node_retain(v->made.node);
        out->index = v->made.index;
    } else if (v->requires_grad) {
        out->node = dt_accumulator_of(v, t);
        if (!out->node)
            return -1;
    }
    return 0;
}

int dt_variable_edge(const dt_tensor *t, dt_edge *out)
{
    dt_variable *v = dt_variable_of(t);
    out->node = NULL;
    out->index = 0;
    if (!v)
        return 0;
    return dt_variable_refresh(t) < 0 ? -1 : edge_of(v, t, out);
}

int dt_variable_base_edge(const dt_variable *v, dt_storage *storage, dt_edge *out)
{
    dt_tensor base = *v->base->geometry;
    base.storage = storage; /* borrowed, for its device */
    out->node = NULL;
    out->index = 0;
    return edge_of(v->base, &base, out);
}

static void lead_to(dt_variable *v, dt_node *node, int index)
{
    dt_node *old = v->made.node;
    v->made.node = dt_node_retain(node);
    v->made.index = index;
    dt_node_release(old);
}

void dt_variable_become(dt_variable *v, dt_node *node, int index)
{
    if (v->kept && v->kept->hook)
        dt_hook_move(v->kept->hook, &node->hooks, index);
    lead_to(v, node, index);
}

int dt_variable_set_made(dt_tensor *t, dt_node *node, int index)
{
    dt_variable *v = dt_variable_ensure(t);
    if (!v)
        return -1;
    dt_variable_become(v, node, index);
    return 0;
}

int dt_variable_reshape(dt_tensor *t, dt_node *node, int index)
{
    dt_variable *v = dt_variable_ensure(t);
    if (!v)
        return -1;
    lead_to(v, node, index);
    return 0;
}

/* --- leaves --- */

void dt_variable_detach(dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    if (!v)
        return;
    dt_node *made = v->made.node;
    v->requires_grad = false;
    v->made = (dt_edge){NULL, 0};
    if (v->kept)
        v->kept->hook = NULL; /* it stays with its node */
    dt_node_release(made);
}

int dt_variable_require(dt_tensor *t, bool wanted)
{
    dt_variable *v = dt_variable_of(t);
    if (!wanted && (!v || !dt_variable_requires_grad(v)))
        return 0;
    if (dt_variable_refresh(t) < 0)
        return -1;
    if (v && v->made.node) {
        if (wanted)
            return 0;
        return dt_fail(DT_ERROR_RUNTIME,
                       "requires_grad: this tensor is the output of %s and not a leaf, "
                       "so its requires_grad cannot be cleared; use detach() for a "
                       "tensor without a graph",
                       v->made.node->name);
    }
    if (wanted && !dt_dtype_is_differentiable((dt_dtype)t->dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "requires_grad: only Tensors of floating point dtype can "
                       "require gradients, and this one has dtype %s; convert it "
                       "first, e.g. with .float()",
                       dt_dtype_name((dt_dtype)t->dtype));
    v = dt_variable_ensure(t);
    if (!v)
        return -1;
    v->requires_grad = wanted;
    return 0;
}
