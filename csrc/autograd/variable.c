#include "autograd/variable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "base/gil.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/copy.h"

_Thread_local bool dt_grad_enabled = true;

static void kept_free(dt_history *history)
{
    dt_kept *kept = (dt_kept *)history;
    dt_tensor_clear(&kept->grad);
    free(kept);
}

static void kept_release(void *context)
{
    dt_history_release(context); /* context is its head, or NULL */
}

static dt_free_list freed;

static void variable_free(dt_history *history)
{
    dt_variable *v = (dt_variable *)history;
    dt_node_release(v->made.node);
    dt_tensor_clear(&v->grad);
    kept_release(v->kept);
    dt_hooks_free(&v->hooks);
    dt_hooks_free(&v->after);
    if (v->base)
        dt_history_release(&v->base->head);
    free(v->geometry);
    dt_struct_free(&freed, v);
}

static int no_memory(void)
{
    return dt_fail(
        DT_ERROR_HOST_MEMORY,
        "no memory left to record an operation; free some, or compute under no_grad()");
}

dt_variable *dt_variable_new(void)
{
    dt_variable *v = dt_struct_new(&freed, _Alignof(dt_variable), sizeof *v);
    if (!v) {
        no_memory();
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

/* --- sums of gradients --- */

/* Whether nobody else refers to the memory and t fills it. */
static bool is_own(const dt_tensor *t)
{
    return __atomic_load_n(&t->storage->references, __ATOMIC_RELAXED) == 1 &&
           (t->contiguous || !dt_tensor_overlaps_itself(t)) && !t->storage->borrowed &&
           t->storage->bytes == (size_t)t->numel * dt_dtype_size((dt_dtype)t->dtype);
}

int dt_variable_add(dt_tensor *sum, const dt_tensor *gradient)
{
    dt_tensor total;
    if (dt_recorded_elementwise(DT_OP_add, &total,
                                DT_ARGS(dt_arg_tensor(sum), dt_arg_tensor(gradient))) <
        0)
        return -1;
    dt_tensor_move(sum, &total);
    return 0;
}

static int add(dt_tensor *grad, dt_tensor *gradient, bool recorded)
{
    if (!grad->storage) {
        if (recorded || is_own(gradient)) {
            dt_variable_alias(grad, gradient);
            return 0;
        }
        return dt_to(grad, gradient, (dt_dtype)gradient->dtype,
                     dt_tensor_device(gradient));
    }
    if (!recorded)
        return dt_elementwise_into(
            DT_OP_add, grad, DT_ARGS(dt_arg_tensor(grad), dt_arg_tensor(gradient)));
    return dt_variable_add(grad, gradient);
}

/* Keeps the GIL, so that sums of several threads are complete, and nobody takes the
 * gradient away. */
static int accumulate(dt_variable *v, dt_tensor *gradient)
{
    bool yielded = dt_gil_yield(false);
    int status = add(&v->grad, gradient, dt_grad_enabled);
    dt_gil_yield(yielded);
    return status;
}

/* --- edges --- */

typedef struct accumulator_data {
    dt_variable *leaf; /* first, for dt_accumulator_leaf */
    bool strided;      /* dense but not row-major */
    int64_t strides[]; /* the leaf's, if strided */
} accumulator_data;

/* Whether t is dense but not row-major. */
static bool is_strided(const dt_tensor *t)
{
    return !t->contiguous && dt_tensor_is_non_overlapping_and_dense(t);
}

static bool has_layout_of_leaf(const dt_tensor *gradient, const accumulator_data *data)
{
    if (!data->strided)
        return gradient->contiguous;
    for (int d = 0; d < gradient->ndim; d++)
        if (gradient->shape[d] > 1 && gradient->strides[d] != data->strides[d])
            return false;
    return true;
}

static int lay_as_leaf(dt_tensor *out, const dt_tensor *gradient,
                       const accumulator_data *data)
{
    if (!data->strided)
        return dt_contiguous(out, gradient);
    if (dt_tensor_empty_strided("backward", out, (dt_dtype)gradient->dtype,
                                gradient->ndim, gradient->shape, data->strides,
                                dt_tensor_device(gradient)))
        return -1;
    return dt_copy_into("backward", out, gradient);
}

/* Gives the gradient the strides of its leaf, so that an optimizer can walk both
 * together. */
static int accumulate_laid(const accumulator_data *data, dt_tensor *gradient)
{
    if (dt_grad_enabled || data->leaf->grad.storage ||
        has_layout_of_leaf(gradient, data))
        return accumulate(data->leaf, gradient);
    DT_LOCAL(laid);
    if (lay_as_leaf(&laid, gradient, data) < 0)
        return -1;
    return accumulate(data->leaf, &laid);
}

static int accumulator_apply(dt_node *node, dt_scope *scope,
                             dt_tensor *const *gradients, dt_tensor **into)
{
    const accumulator_data *data = node->data;
    (void)scope;
    (void)into;
    /* The leaf may require none any more. */
    if (!gradients[0] || !data->leaf->requires_grad)
        return 0;
    if (accumulate_laid(data, gradients[0]) < 0)
        return -1;
    return data->leaf->after ? dt_hooks_run(data->leaf->after, gradients[0], 1) : 0;
}

static void accumulator_free(dt_node *node)
{
    dt_variable *leaf = dt_accumulator_leaf(node);
    if (leaf->accumulator == node)
        leaf->accumulator = NULL;
    dt_history_release(&leaf->head);
}

const dt_node_type dt_accumulator = {accumulator_apply, accumulator_free};

/* A reference to the leaf's AccumulateGrad node, or NULL after dt_fail. */
static dt_node *accumulator_of(dt_variable *v, const dt_tensor *t)
{
    /* One without references waits to be freed. */
    if (v->accumulator && v->accumulator->references)
        return dt_node_retain(v->accumulator);
    bool strided = is_strided(t);
    size_t extra = strided ? (size_t)t->ndim * sizeof(int64_t) : 0;
    dt_node *node = dt_node_new(&dt_accumulator, "AccumulateGrad", 0, 0, 1,
                                sizeof(accumulator_data) + extra);
    if (!node)
        return NULL;
    accumulator_data *data = node->data;
    node->sequence = 0;
    dt_node_set_result(node, 0, t);
    dt_history_retain(&v->head);
    data->leaf = v;
    data->strided = strided;
    if (strided)
        memcpy(data->strides, t->strides, extra);
    v->accumulator = node;
    return node;
}

int dt_variable_refresh(const dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    if (!v || !v->base || v->version == t->storage->version)
        return 0;
    /* The base was written in place: the view's values now come from there. */
    unsigned before = v->version;
    v->version = t->storage->version;
    if ((!v->made.node && !dt_variable_requires_grad(v->base)) ||
        dt_record_as_strided(t, v) == 0)
        return 0;
    v->version = before;
    return -1;
}

static int edge_of(dt_variable *v, const dt_tensor *t, dt_edge *out)
{
    if (v->made.node) {
        out->node = dt_node_retain(v->made.node);
        out->index = v->made.index;
    } else if (v->requires_grad) {
        out->node = accumulator_of(v, t);
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

int dt_variable_set_view(dt_tensor *view, const dt_tensor *t)
{
    /* Autograd metadata is not part of the tensor's value. */
    dt_variable *of = dt_variable_ensure((dt_tensor *)t);
    dt_variable *v = of ? dt_variable_ensure(view) : NULL;
    if (!v)
        return -1;
    if (of->base) {
        of = of->base;
    } else if (!of->geometry) {
        of->geometry = malloc(sizeof *of->geometry);
        if (!of->geometry)
            return no_memory();
        dt_variable_set_geometry(of->geometry, t);
    }
    dt_history_retain(&of->head);
    if (v->base)
        dt_history_release(&v->base->head);
    v->base = of;
    v->version = t->storage->version;
    return 0;
}

int dt_variable_set_part(dt_tensor *part, const dt_tensor *whole)
{
    if (dt_variable_set_view(part, whole) < 0)
        return -1;
    dt_variable *v = dt_variable_of(part);
    assert(v && v->base);
    return v->base->made.node ? dt_record_as_strided(part, v) : 0;
}

int dt_variable_follow_slowly(dt_tensor *view, const dt_tensor *t)
{
    if (dt_variable_set_view(view, t) == 0)
        return 0;
    dt_tensor_clear(view);
    return -1;
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
    if (wanted && !dt_dtype_is_float((dt_dtype)t->dtype))
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

/* A sum is a new tensor, since the tensor's shape may have changed in place. */
static int keep(void *context, dt_tensor *gradient)
{
    dt_tensor *grad = &((dt_kept *)context)->grad;
    bool yielded = dt_gil_yield(false);
    int status = add(grad, gradient, grad->storage || dt_grad_enabled);
    dt_gil_yield(yielded);
    return status;
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
        return no_memory();
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

/* --- for the garbage collector --- */

/* Linked through the nodes: all visited nodes, whose `inside` must be reset, and
 * those whose references were all found, still to be searched. */
typedef struct walk {
    dt_node *met, *ready;
} walk;

/* Counts one reference to node from the owned part. */
static void meet(walk *w, dt_node *node)
{
    if (!node || !node->calls_back)
        return;
    if (!node->inside++) {
        node->next_met = w->met;
        w->met = node;
    }
    if (node->inside == __atomic_load_n(&node->references, __ATOMIC_RELAXED)) {
        node->next_ready = w->ready;
        w->ready = node;
    }
}

int dt_owned_visit(const dt_tensor *t, int (*visit)(void *context, const dt_node *node),
                   void *context)
{
    dt_variable *v = t->storage ? dt_variable_of(t) : NULL;
    walk w = {NULL, NULL};
    int status = 0;
    if (!v || __atomic_load_n(&v->head.references, __ATOMIC_RELAXED) != 1)
        return 0;
    meet(&w, v->made.node);
    while (w.ready && !status) {
        dt_node *node = w.ready;
        w.ready = node->next_ready;
        status = visit(context, node);
        for (int i = 0; i < node->nedges; i++)
            meet(&w, node->edges[i].node);
        for (int i = 0; i < node->nsaved; i++)
            meet(&w, node->saved[i].edge.node);
        meet(&w, node->inner);
    }
    for (dt_node *node = w.met; node; node = node->next_met)
        node->inside = 0;
    return status;
}
