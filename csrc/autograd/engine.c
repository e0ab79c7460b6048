#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "ops/elementwise_ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/recorded.h"
#include "autograd/sparse_gradient.h"
#include "autograd/temporaries.h"
#include "base/interrupt.h"
#include "device/activity.h"

/* Nodes that run before the time is first read, which costs 6 ns each. */
#define FEW 8

/* A node in the current pass. */
typedef struct task {
    dt_node *node; /* one reference */
    bool queued;
    bool needed;           /* on a path to a requested input */
    dt_tensor gradients[]; /* gradients of its results; may be empty */
} task;

typedef struct pass {
    /* Tasks by node: open addressing, the size is a power of two. */
    task **table;
    size_t size, count;
    /* Ready tasks, highest sequence number on top. */
    task **heap;
    size_t waiting, room;
    bool keep_graph, create_graph, restricted;
    int ninputs;
    const dt_edge *inputs;
    dt_tensor *into;
} pass;

static int no_memory(void)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "backward: no memory left for the pass; free some");
}

/* --- tasks --- */

static size_t slot_of(const pass *p, const dt_node *node)
{
    size_t mask = p->size - 1;
    size_t at = ((uintptr_t)node >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20 & mask;
    while (p->table[at] && p->table[at]->node != node)
        at = (at + 1) & mask;
    return at;
}

static int grow(pass *p)
{
    pass wider = *p;
    wider.size = p->size ? 2 * p->size : 64;
    wider.table = calloc(wider.size, sizeof *wider.table);
    if (!wider.table)
        return no_memory();
    for (size_t i = 0; i < p->size; i++)
        if (p->table[i])
            wider.table[slot_of(&wider, p->table[i]->node)] = p->table[i];
    free(p->table);
    *p = wider;
    return 0;
}

/* The node's task, created if necessary. NULL after dt_fail. */
static task *task_of(pass *p, dt_node *node)
{
    if (2 * p->count >= p->size && grow(p) < 0)
        return NULL;
    size_t at = slot_of(p, node);
    if (!p->table[at]) {
        size_t bytes = sizeof(task) + (size_t)node->nresults * sizeof(dt_tensor);
        task *t = malloc(bytes);
        if (!t) {
            no_memory();
            return NULL;
        }
        t->node = dt_node_retain(node);
        t->queued = t->needed = false;
        for (int i = 0; i < node->nresults; i++)
            t->gradients[i].storage = NULL;
        p->table[at] = t;
        p->count++;
    }
    return p->table[at];
}

static int push(pass *p, task *t)
{
    if (t->queued)
        return 0;
    if (p->waiting == p->room) {
        size_t room = p->room ? 2 * p->room : 32;
        task **heap = realloc(p->heap, room * sizeof *heap);
        if (!heap)
            return no_memory();
        p->heap = heap;
        p->room = room;
    }
    t->queued = true;
    size_t at = p->waiting++;
    while (at && p->heap[(at - 1) / 2]->node->sequence < t->node->sequence) {
        p->heap[at] = p->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    p->heap[at] = t;
    return 0;
}

static task *pop(pass *p)
{
    task *top = p->heap[0], *last = p->heap[--p->waiting];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= p->waiting)
            break;
        if (child + 1 < p->waiting &&
            p->heap[child + 1]->node->sequence > p->heap[child]->node->sequence)
            child++;
        if (p->heap[child]->node->sequence <= last->node->sequence)
            break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    if (p->waiting)
        p->heap[at] = last;
    top->queued = false;
    return top;
}

static void pass_end(pass *p)
{
    for (size_t i = 0; i < p->size; i++) {
        task *t = p->table[i];
        if (!t)
            continue;
        for (int r = 0; r < t->node->nresults; r++)
            dt_tensor_clear(&t->gradients[r]);
        dt_node_release(t->node);
        free(t);
    }
    free(p->table);
    free(p->heap);
}

/* --- nodes on paths to the requested inputs --- */

static int by_sequence(const void *a, const void *b)
{
    uint64_t x = (*(task *const *)a)->node->sequence;
    uint64_t y = (*(task *const *)b)->node->sequence;
    return x < y ? -1 : x > y;
}

typedef struct task_list {
    task **items;
    size_t count, room;
} task_list;

static int append(task_list *list, task *t)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        task **longer = realloc(list->items, room * sizeof *longer);
        if (!longer)
            return no_memory();
        list->items = longer;
        list->room = room;
    }
    list->items[list->count++] = t;
    return 0;
}

/* The node's task; appends it to list on the first visit. */
static int meet(pass *p, task_list *list, dt_node *node)
{
    size_t before = p->count;
    task *t = task_of(p, node);
    if (!t)
        return -1;
    return p->count == before ? 0 : append(list, t);
}

static int mark_needed(pass *p, int nroots, const dt_edge *roots)
{
    task_list list = {NULL, 0, 0};
    int status = -1;
    for (int i = 0; i < nroots; i++)
        if (roots[i].node && meet(p, &list, roots[i].node) < 0)
            goto done;
    /* Breadth-first: the list also serves as the queue. */
    for (size_t next = 0; next < list.count; next++) {
        dt_node *node = list.items[next]->node;
        for (int e = 0; e < node->nedges; e++)
            if (node->edges[e].node && meet(p, &list, node->edges[e].node) < 0)
                goto done;
    }
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, by_sequence);
    for (size_t i = 0; i < list.count; i++) {
        task *t = list.items[i];
        for (int k = 0; k < p->ninputs; k++)
            t->needed |= p->inputs[k].node == t->node;
        for (int e = 0; e < t->node->nedges && !t->needed; e++)
            if (t->node->edges[e].node)
                t->needed = p->table[slot_of(p, t->node->edges[e].node)]->needed;
    }
    status = 0;
done:
    free(list.items);
    return status;
}

/* --- gradients --- */

/* Converts gradient to the shape, type and device of result `index` of node. The
 * tensor belongs to the scope, or is gradient itself; NULL after dt_fail. */
static dt_tensor *fitted(dt_scope *scope, dt_tensor *gradient, const dt_node *node,
                         int index, const char *from)
{
    const dt_result *want = &node->results[index];
    if (want->ndim < 0)
        return gradient;
    if (dt_gradient_is_sparse(gradient)) {
        if (gradient->dtype == want->dtype &&
            dt_shape_equal(gradient->ndim, gradient->shape, want->ndim, want->shape))
            return gradient;
        if (dt_sparse.make_dense(gradient) < 0)
            return NULL;
    }
    if (!dt_shape_equal(gradient->ndim, gradient->shape, want->ndim, want->shape)) {
        char is[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        bool fits = gradient->ndim >= want->ndim;
        for (int d = 1; fits && d <= want->ndim; d++) {
            int64_t to = want->shape[want->ndim - d];
            fits = to == 1 || to == gradient->shape[gradient->ndim - d];
        }
        if (!fits) {
            dt_fail(DT_ERROR_RUNTIME,
                    "backward: %s returned a gradient of shape %s for an input of "
                    "shape %s; return each gradient in the shape of its input",
                    from, dt_shape_text(gradient->ndim, gradient->shape, is, sizeof is),
                    dt_shape_text(want->ndim, want->shape, wants, sizeof wants));
            return NULL;
        }
        dt_tensor *sum = dt_scope_slot(scope);
        if (!sum || dt_recorded_sum_to(sum, gradient, want->ndim, want->shape) < 0)
            return NULL;
        gradient = sum;
    }
    if (gradient->dtype != want->dtype ||
        !dt_device_equal(dt_tensor_device(gradient), want->device)) {
        dt_tensor *converted = dt_scope_slot(scope);
        if (!converted ||
            dt_recorded_to(converted, gradient, want->dtype, want->device) < 0)
            return NULL;
        gradient = converted;
    }
    return gradient;
}

/* Adds gradient to the sum of a result. */
static int add(const pass *p, dt_tensor *sum, const dt_tensor *gradient)
{
    if (!sum->storage) {
        dt_variable_alias(sum, gradient);
        return 0;
    }
    if (dt_gradient_is_sparse(sum) || dt_gradient_is_sparse(gradient))
        return dt_sparse.add(sum, gradient, true);
    /* Add in place if nobody else refers to the sum. A formula's temporary and our
     * own hold two references, so only a sum made here has one. */
    if (!p->create_graph && sum->storage->references == 1 && !sum->history &&
        !sum->storage->read_only && !sum->storage->borrowed &&
        !dt_tensor_overlaps_itself(sum))
        return dt_elementwise_into(
            DT_OP_add, sum, DT_ARGS(dt_arg_tensor(sum), dt_arg_tensor(gradient)));
    return dt_variable_add(sum, gradient);
}

static int deliver(pass *p, dt_scope *scope, dt_edge edge, dt_tensor *gradient,
                   const char *from)
{
    task *t = task_of(p, edge.node);
    if (!t)
        return -1;
    if (p->restricted && !t->needed)
        return 0;
    gradient = fitted(scope, gradient, edge.node, edge.index, from);
    if (!gradient || add(p, &t->gradients[edge.index], gradient) < 0)
        return -1;
    return push(p, t);
}

/* Makes the current stream wait for gradients that were computed on another stream
 * of the device; the host does not wait. */
static int switch_stream(dt_device device, void *stream, void **previous)
{
    *previous = dt_stream_current(device).handle;
    if (*previous == stream)
        return 0;
    const dt_backend *backend = dt_backend_of(device);
    void *event = NULL;
    if (dt_fusion_order("another stream") ||
        backend->event_new(device.index, 0, &event))
        return -1;
    int status = backend->event_record(event, dt_stream_current(device));
    if (!status)
        status = dt_stream_set_current(device, stream);
    if (!status)
        status = backend->stream_wait_event(event, dt_stream_current(device));
    backend->event_free(event);
    return status;
}

/* In a pass for given inputs: whether gradients of the node's inputs are needed. */
static bool leads_on(const pass *p, const dt_node *node)
{
    for (int e = 0; e < node->nedges; e++)
        if (node->edges[e].node && p->table[slot_of(p, node->edges[e].node)]->needed)
            return true;
    return false;
}

/* The hooks that see gradients of inputs get them as they are delivered. */
static int run_after(task *t, dt_scope *scope, dt_tensor **into)
{
    const dt_node *node = t->node;
    for (int i = 0; i < node->nedges; i++) {
        dt_edge edge = node->edges[i];
        if (!edge.node || !into[i])
            continue;
        into[i] = fitted(scope, into[i], edge.node, edge.index, node->name);
        if (!into[i])
            return -1;
    }
    return dt_node_hooks_run(node->after, node, scope, t->gradients, into);
}

static int run_task(pass *p, task *t)
{
    dt_node *node = t->node;
    bool leaf = node->type == &dt_accumulator;
    dt_hook *hooks = leaf ? dt_accumulator_leaf(node)->hooks : node->hooks;
    if (hooks && dt_hooks_run(hooks, t->gradients, node->nresults) < 0)
        return -1;
    for (int i = 0; p->into && i < p->ninputs; i++)
        if (p->inputs[i].node == node && t->gradients[p->inputs[i].index].storage &&
            !p->into[i].storage)
            dt_variable_alias(&p->into[i], &t->gradients[p->inputs[i].index]);
    if (p->restricted && !leads_on(p, node) && !(leaf && !p->into))
        return 0;

    dt_scope scope;
    dt_scope_begin(&scope);
    dt_tensor *given_here[4], *into_here[4], **given = given_here, **into = into_here;
    int status = -1;
    void *stream = NULL;
    dt_device device =
        node->results[0].ndim < 0 ? dt_device_make(DT_CPU, 0) : node->results[0].device;
    bool switched = false;
    const int outer = dt_activity_node;
    if (node->nresults > 4)
        given = malloc((size_t)node->nresults * sizeof *given);
    if (node->nedges > 4)
        into = malloc((size_t)node->nedges * sizeof *into);
    if (!given || !into) {
        no_memory();
        goto done;
    }
    if (dt_device_has_streams(device)) {
        if (switch_stream(device, node->stream, &stream) < 0)
            goto done;
        switched = stream != node->stream;
    }
    if (node->before &&
        dt_node_hooks_run(node->before, node, &scope, t->gradients, NULL) < 0)
        goto done;
    for (int i = 0; i < node->nresults; i++) {
        given[i] = t->gradients[i].storage ? &t->gradients[i] : NULL;
        if (given[i] && !leaf && dt_gradient_is_sparse(given[i]) &&
            dt_sparse.make_dense(given[i]) < 0)
            goto done;
    }
    for (int i = 0; i < node->nedges; i++)
        into[i] = NULL;
    dt_activity_node = node->line;
    int applied = node->type->apply(node, &scope, given, into);
    if (node->packs)
        dt_node_forget_unpacked(node);
    if (applied < 0 || (dt_anomaly.on && dt_anomaly_check(node, into) < 0)) {
        dt_anomaly_explain(node);
        goto done;
    }
    if (node->after && run_after(t, &scope, into) < 0)
        goto done;
    if (!p->keep_graph && !leaf) {
        node->used = true;
        dt_node_free_saved(node);
    }
    status = 0;
    for (int i = 0; i < node->nedges && !status; i++)
        if (node->edges[i].node && into[i])
            status = deliver(p, &scope, node->edges[i], into[i], node->name);
done:
    dt_activity_node = outer;
    if (switched) {
        void *unused;
        int back = switch_stream(device, stream, &unused);
        status = status ? status : back;
    }
    dt_scope_end(&scope);
    if (given != given_here)
        free(given);
    if (into != into_here)
        free(into);
    for (int i = 0; i < node->nresults; i++)
        dt_tensor_clear(&t->gradients[i]);
    return status;
}

int dt_backward(int nroots, const dt_edge *roots, dt_tensor *const *gradients,
                int ninputs, const dt_edge *inputs, dt_tensor *into, bool keep_graph,
                bool create_graph)
{
    pass p = {.keep_graph = keep_graph,
              .create_graph = create_graph,
              .restricted = ninputs > 0,
              .ninputs = ninputs,
              .inputs = inputs,
              .into = into};
    dt_scope scope;
    dt_scope_begin(&scope);
    bool mode = dt_grad_enabled;
    dt_grad_enabled = create_graph;
    bool casts = dt_autocast_pause();
    for (int i = 0; into && i < ninputs; i++)
        into[i].storage = NULL;
    int status = grow(&p);
    if (!status && ninputs)
        status = mark_needed(&p, nroots, roots);
    for (int i = 0; i < nroots && !status; i++)
        if (roots[i].node)
            status = deliver(&p, &scope, roots[i], gradients[i], "backward()");
    bool fuses = false;
    for (size_t ran = 0; !status && p.waiting; ran++) {
        task *next = pop(&p);
        if (next->node->fused && !fuses) {
            fuses = true;
            dt_fusion_begin();
        }
        status = ran > FEW && dt_interrupt_check_rarely() < 0 ? -1 : run_task(&p, next);
    }
    if (fuses && dt_fusion_end())
        status = -1;
    dt_scope_end(&scope);
    pass_end(&p);
    dt_autocast_resume(casts);
    dt_grad_enabled = mode;
    for (int i = 0; status && into && i < ninputs; i++)
        dt_tensor_clear(&into[i]);
    return status;
}
