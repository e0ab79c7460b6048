#include "autograd/record.h"

#include "tensor/ops/ops.h"

dt_node *dt_record_node(const dt_node_type *type, const char *name, int ninputs,
                        const dt_tensor *const *inputs, int nsaved, int nresults,
                        size_t data_bytes)
{
    dt_node *node = dt_node_new(type, name, ninputs, nsaved, nresults, data_bytes);
    for (int i = 0; node && i < ninputs; i++) {
        dt_edge edge;
        if (!inputs[i] || !inputs[i]->history)
            continue;
        if (dt_variable_edge(inputs[i], &edge) < 0) {
            dt_node_release(node);
            return NULL;
        }
        dt_node_lead(node, i, edge);
    }
    return node;
}

int dt_record_result(dt_tensor *out, dt_node *node, int i)
{
    dt_node_set_result(node, i, out);
    return dt_variable_set_made(out, node, i);
}

/* Makes out the only result of node, whose reference is taken over. */
static int set_result(dt_tensor *out, dt_node *node)
{
    int status = node ? dt_record_result(out, node, 0) : -1;
    dt_node_release(node);
    return status;
}

int dt_record_steal(dt_tensor *out, dt_node *node)
{
    if (set_result(out, node) == 0)
        return 0;
    dt_tensor_clear(out);
    return -1;
}

int dt_record_view_steal(dt_tensor *out, const dt_tensor *x, dt_node *node)
{
    if (set_result(out, node) == 0 && dt_variable_set_view(out, x) == 0)
        return 0;
    dt_tensor_clear(out);
    return -1;
}

/* Edge 0 leads to the gradient, the others to inputs that it does not depend on. */
static int flat_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    into[0] = gradients[0];
    for (int e = 1; e < node->nedges && *(dt_flat *)node->data == DT_FLAT_ZERO; e++) {
        if (!dt_node_wants(node, e))
            continue;
        const dt_result *like = &node->edges[e].node->results[node->edges[e].index];
        into[e] = dt_scope_slot(scope);
        if (!into[e] || dt_full("backward", into[e], like->dtype, like->ndim,
                                like->shape, like->device, dt_scalar_float(0)) < 0)
            return -1;
    }
    return 0;
}
static const dt_node_type flat_type = {flat_apply, NULL, NULL};

int dt_record_flat(dt_scope *scope, dt_tensor **gradient, const dt_node *node,
                   unsigned inputs, dt_flat flat)
{
    const dt_tensor *value = *gradient;
    int count = 0;
    for (int e = 0; e < node->nedges; e++)
        count += inputs >> e & 1 && dt_node_wants(node, e);
    /* Where nothing reaches the inputs, a history of another kind will do. */
    if (!dt_grad_enabled || !count || (flat == DT_FLAT_NONE && dt_requires_grad(value)))
        return 0;
    dt_edge self = {NULL, 0};
    dt_tensor *out = dt_scope_slot(scope);
    dt_node *made =
        out ? dt_node_new(&flat_type, "FlatBackward0", 1 + count, 0, 1, sizeof flat)
            : NULL;
    if (!made || (value->history && dt_variable_edge(value, &self) < 0)) {
        dt_node_release(made);
        return -1;
    }
    *(dt_flat *)made->data = flat;
    dt_node_lead(made, 0, self);
    for (int e = 0, at = 1; e < node->nedges; e++) {
        if (!(inputs >> e & 1) || !dt_node_wants(node, e))
            continue;
        dt_node_retain(node->edges[e].node);
        dt_node_lead(made, at++, node->edges[e]);
    }
    dt_tensor_alias(out, value);
    *gradient = out;
    return set_result(out, made);
}

static int refusal_apply(dt_node *node, struct dt_scope *scope,
                         dt_tensor *const *gradients, dt_tensor **into)
{
    (void)scope, (void)gradients, (void)into;
    return dt_fail(DT_ERROR_RUNTIME,
                   "backward: %s with out= has no derivative; leave out= away",
                   *(const char **)node->data);
}
static const dt_node_type refusal_type = {refusal_apply, NULL, NULL};

int dt_record_refusal(dt_tensor *out, const char *what, const dt_tensor *x)
{
    dt_node *node =
        dt_record_node(&refusal_type, "NotImplemented", 1, &x, 0, 1, sizeof what);
    if (!node)
        return -1;
    *(const char **)node->data = what;
    return set_result(out, node);
}
