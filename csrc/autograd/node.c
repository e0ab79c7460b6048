#include "autograd/node.h"

#include <stdlib.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/recall.h"
#include "autograd/temporaries.h"
#include "autograd/variable.h"
#include "device/activity.h"
#include "tensor/ops/copy.h"

static uint64_t last_sequence;

static uint64_t next_sequence(void)
{
    return __atomic_add_fetch(&last_sequence, 1, __ATOMIC_RELAXED);
}

/* The parts of a node share one allocation, each padded to 16 bytes. */
static size_t rounded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

dt_node *dt_node_new(const dt_node_type *type, const char *name, int nedges, int nsaved,
                     int nresults, size_t data_bytes)
{
    size_t head = rounded(sizeof(dt_node));
    size_t edges = rounded((size_t)nedges * sizeof(dt_edge));
    size_t saved = rounded((size_t)nsaved * sizeof(dt_saved));
    size_t results = rounded((size_t)nresults * sizeof(dt_result));
    char *block = malloc(head + edges + saved + results + rounded(data_bytes));
    if (!block) {
        dt_fail(DT_ERROR_HOST_MEMORY,
                "%s: no memory left to record the operation; free some, or compute "
                "under no_grad()",
                name);
        return NULL;
    }
    dt_node *node = (dt_node *)(void *)block;
    node->references = 1;
    node->nedges = nedges;
    node->nsaved = nsaved;
    node->nresults = nresults;
    node->sequence = next_sequence();
    node->type = type;
    node->name = name;
    node->edges = (dt_edge *)(void *)(block + head);
    node->saved = (dt_saved *)(void *)(block + head + edges);
    node->results = (dt_result *)(void *)(block + head + edges + saved);
    node->data = block + head + edges + saved + results;
    node->inner = NULL;
    node->stream = NULL;
    node->fused = dt_fusion_on();
    node->used = false;
    node->packs = false;
    node->calls_back = false;
    node->inside = 0;
    node->hooks = node->before = node->after = NULL;
    node->place = dt_anomaly.on ? dt_anomaly.place() : NULL;
    node->line = dt_observers_of_lines ? dt_activity_line() : -1;
    node->pending = NULL;
    memset(node->edges, 0, (size_t)nedges * sizeof(dt_edge));
    for (int i = 0; i < nsaved; i++) {
        node->saved[i].tensor.storage = NULL;
        node->saved[i].edge = (dt_edge){NULL, 0};
        node->saved[i].recall = NULL;
    }
    for (int i = 0; i < nresults; i++)
        node->results[i].ndim = -1;
    memset(node->data, 0, data_bytes);
    return node;
}

void dt_node_lead(dt_node *node, int i, dt_edge to)
{
    node->edges[i] = to;
    if (!to.node)
        return;
    node->calls_back |= to.node->calls_back;
    if (to.node->sequence > node->sequence)
        node->sequence = next_sequence();
}

/* --- destruction --- */

/* Unreferenced nodes of the calling thread, and whether a loop is freeing them: a
 * chain of nodes can be longer than the stack is deep. */
static _Thread_local dt_node *waiting;
static _Thread_local bool freeing;

static void free_one(dt_node *node)
{
    if (node->type->free)
        node->type->free(node);
    dt_node_free_saved(node);
    if (node->inner)
        dt_node_release(node->inner);
    dt_hooks_free(&node->hooks);
    dt_hooks_free(&node->before);
    dt_hooks_free(&node->after);
    for (int i = 0; i < node->nedges; i++)
        dt_node_release(node->edges[i].node);
    free(node->place);
    free(node);
}

void dt_node_release(dt_node *node)
{
    if (!node || !dt_count_down(&node->references))
        return;
    node->pending = waiting;
    waiting = node;
    if (freeing)
        return;
    freeing = true;
    while (waiting) {
        dt_node *next = waiting;
        waiting = next->pending;
        free_one(next);
    }
    freeing = false;
}

/* --- saved tensors --- */

void dt_node_set_result(dt_node *node, int i, const dt_tensor *t)
{
    dt_result *result = &node->results[i];
    result->dtype = (dt_dtype)t->dtype;
    result->device = dt_tensor_home(t);
    result->ndim = t->ndim;
    for (int d = 0; d < t->ndim; d++)
        result->shape[d] = t->shape[d];
    if (i == 0)
        node->stream = dt_stream_current(result->device).handle;
}

static void drop_saved(dt_saved *saved)
{
    dt_tensor_clear(&saved->tensor);
    dt_recall_release(saved->recall);
    saved->recall = NULL;
}

static void set_saved(dt_saved *saved, const dt_tensor *t, int output)
{
    saved->output = output;
    saved->version = saved->tensor.storage->version;
    dt_node_release(saved->edge.node);
    saved->edge = (dt_edge){NULL, 0};
    if (output < 0 && t->history && dt_variable_edge(t, &saved->edge) < 0) {
        /* Out of memory. Without the edge first derivatives are right, and
         * dt_node_saved rejects higher ones. */
        dt_error_clear();
        saved->edge.index = -1;
    }
}

/* Lets a saved alias of t have its recall, if there is one. */
static __attribute__((noinline)) int recall_instead(dt_node *node, dt_saved *saved,
                                                    const dt_tensor *t)
{
    if (dt_recall_instead(&saved->tensor, t, &saved->recall) < 0) {
        dt_tensor_clear(&saved->tensor);
        return -1;
    }
    if (saved->recall && !saved->recall->storage)
        node->packs = node->calls_back = true;
    return 0;
}

int dt_node_save(dt_node *node, int i, const dt_tensor *t, int output)
{
    dt_saved *saved = &node->saved[i];
    drop_saved(saved);
    dt_tensor_alias(&saved->tensor, t);
    if (__builtin_expect(dt_recalls != NULL, 0) && recall_instead(node, saved, t) < 0)
        return -1;
    set_saved(saved, t, output);
    return 0;
}

int dt_node_save_copy(dt_node *node, int i, const dt_tensor *t)
{
    dt_saved *saved = &node->saved[i];
    drop_saved(saved);
    if (dt_to(&saved->tensor, t, (dt_dtype)t->dtype, dt_tensor_device(t)) < 0)
        return -1;
    if (dt_recalls) {
        DT_LOCAL(copy);
        dt_tensor_alias(&copy, &saved->tensor);
        if (recall_instead(node, saved, &copy) < 0)
            return -1;
    }
    set_saved(saved, t, -1);
    return 0;
}

dt_tensor *dt_node_saved(dt_node *node, int i, dt_scope *scope)
{
    dt_tensor *t = dt_scope_slot(scope);
    return t && dt_node_unpack(node, i, t, dt_grad_enabled) == 0 ? t : NULL;
}

int dt_node_unpack(dt_node *node, int i, dt_tensor *t, bool connected)
{
    dt_saved *saved = &node->saved[i];
    if (!saved->tensor.storage)
        return dt_fail(DT_ERROR_RUNTIME,
                       node->used
                           ? "backward: the tensors that %s saved were freed by an "
                             "earlier backward pass; compute the result again, or pass "
                             "retain_graph=True to the first pass"
                           : "backward: %s saved no tensor for its gradient",
                       node->name);
    if (saved->version != saved->tensor.storage->version) {
        char shape[DT_SHAPE_TEXT];
        return dt_fail(
            DT_ERROR_RUNTIME,
            "backward: %s needs a tensor of shape %s as it was in the forward pass, "
            "and it has been modified by an inplace operation since (it is at version "
            "%u, saved at version %u); write to a clone() instead, or compute out of "
            "place",
            node->name,
            dt_shape_text(saved->tensor.ndim, saved->tensor.shape, shape, sizeof shape),
            saved->tensor.storage->version, saved->version);
    }
    dt_tensor_alias(t, &saved->tensor);
    if (saved->recall && dt_recall_bring(saved->recall, t) < 0)
        return -1;
    if (!connected)
        return 0;
    int status = 0;
    if (saved->output >= 0)
        status = dt_variable_set_made(t, node, saved->output);
    else if (!saved->edge.node && saved->edge.index < 0)
        status =
            dt_fail(DT_ERROR_HOST_MEMORY, "backward: %s is out of memory", node->name);
    else if (saved->edge.node && saved->edge.node->type == &dt_accumulator)
        t->history = dt_history_retain(&dt_accumulator_leaf(saved->edge.node)->head);
    else if (saved->edge.node)
        status = dt_variable_set_made(t, saved->edge.node, saved->edge.index);
    return status;
}

void dt_node_forget_unpacked(const dt_node *node)
{
    for (int i = 0; i < node->nsaved; i++)
        if (node->saved[i].recall)
            dt_tensor_clear(&node->saved[i].recall->found);
    if (node->inner)
        dt_node_forget_unpacked(node->inner);
}

void dt_node_free_saved(dt_node *node)
{
    for (int i = 0; i < node->nsaved; i++) {
        drop_saved(&node->saved[i]);
        dt_node *made = node->saved[i].edge.node;
        node->saved[i].edge.node = NULL;
        dt_node_release(made);
    }
}
