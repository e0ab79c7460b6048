/* Hanging nodes on results. */
#include "autograd/recorded.h"

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

/* Makes out the only result of node, whose reference is taken over. */
static int set_result(dt_tensor *out, dt_node *node)
{
    if (!node)
        return -1;
    dt_node_set_result(node, 0, out);
    int status = dt_variable_set_made(out, node, 0);
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

static int refusal_apply(dt_node *node, struct dt_scope *scope,
                         dt_tensor *const *gradients, dt_tensor **into)
{
    (void)scope, (void)gradients, (void)into;
    return dt_fail(DT_ERROR_RUNTIME,
                   "backward: %s with out= has no derivative; leave out= away",
                   *(const char **)node->data);
}
static const dt_node_type refusal_type = {refusal_apply, NULL};

int dt_record_refusal(dt_tensor *out, const char *what, const dt_tensor *x)
{
    dt_node *node =
        dt_record_node(&refusal_type, "NotImplemented", 1, &x, 0, 1, sizeof what);
    if (!node)
        return -1;
    *(const char **)node->data = what;
    return set_result(out, node);
}
