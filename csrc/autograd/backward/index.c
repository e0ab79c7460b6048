/* Elements chosen by index tensors. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/create.h"

typedef struct choice_data {
    dt_indexing choice; /* its indices are the node's saved tensors */
    dt_index_op op;
    int64_t padding; /* of an embedding; -1: none */
    bool by_frequency;
    int ndim; /* of what was read from, or of the values that were written */
    int64_t shape[DT_MAX_NDIM];
} choice_data;

static dt_node *record(const dt_node_type *type, const char *name, int ninputs,
                       const dt_tensor *const *inputs, const dt_indexing *choice,
                       dt_index_op op, const dt_tensor *shaped)
{
    dt_node *node = dt_record_node(type, name, ninputs, inputs, choice->count, 1,
                                   sizeof(choice_data));
    if (!node)
        return NULL;
    choice_data *data = node->data;
    data->choice = *choice;
    data->op = op;
    data->ndim = shaped->ndim;
    for (int d = 0; d < shaped->ndim; d++)
        data->shape[d] = shaped->shape[d];
    for (int k = 0; k < choice->count; k++)
        dt_node_save(node, k, choice->indices[k], -1);
    return node;
}

/* The choice with its index tensors, which live in scope. */
static int restore(dt_indexing *out, dt_node *node, dt_scope *scope)
{
    const choice_data *data = node->data;
    *out = data->choice;
    for (int k = 0; k < out->count; k++)
        if (!(out->indices[k] = dt_node_saved(node, k, scope)))
            return -1;
    return 0;
}

static dt_tensor *zeros_in(dt_scope *scope, dt_node *node, const dt_tensor *like,
                           int ndim, const int64_t *shape)
{
    dt_tensor *out = dt_scope_slot(scope);
    if (!out || dt_full(node->name, out, (dt_dtype)like->dtype, ndim, shape,
                        dt_tensor_device(like), dt_scalar_float(0)) < 0)
        return NULL;
    return out;
}

/* --- reading --- */

/* g where choice chose it, added up, and zeros around it. */
static dt_tensor *put_back(dt_scope *scope, dt_node *node, const char *name,
                           const dt_indexing *choice, const dt_tensor *g)
{
    const choice_data *data = node->data;
    dt_tensor *whole = zeros_in(scope, node, g, data->ndim, data->shape);
    return whole && dt_recorded_index_write(name, DT_INDEX_ADD, whole, choice, g) == 0
               ? whole
               : NULL;
}

static int read_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    dt_indexing choice;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    if (restore(&choice, node, scope) < 0)
        return -1;
    into[0] = put_back(scope, node, "IndexPutBackward0", &choice, gradients[0]);
    return into[0] ? 0 : -1;
}
static const dt_node_type read_type = {read_apply, NULL};

int dt_recorded_index_read(const char *name, dt_tensor *out, const dt_tensor *x,
                           const dt_indexing *choice)
{
    if (dt_index_read(out, x, choice) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    return dt_record_steal(out,
                           record(&read_type, name, 1, &x, choice, DT_INDEX_READ, x));
}

/* --- writing --- */

/* gather's counterpart may take a part of its values only: the gradient of the rest is
 * zero. */
static dt_tensor *pad(dt_scope *scope, dt_node *node, dt_tensor *g)
{
    const choice_data *data = node->data;
    bool smaller = data->choice.form == DT_INDEXING_ALONG && data->ndim == g->ndim;
    dt_subscript items[DT_MAX_NDIM] = {0};
    bool same = true, one = true;
    for (int d = 0; d < g->ndim && smaller; d++) {
        smaller = g->shape[d] <= data->shape[d];
        same = same && g->shape[d] == data->shape[d];
        one = one && data->shape[d] == 1;
        items[d].kind = DT_SUBSCRIPT_SLICE;
        items[d].step = 1;
        items[d].has_stop = true;
        items[d].stop = g->shape[d];
    }
    if (!smaller || same || one)
        return g;
    dt_tensor *whole = zeros_in(scope, node, g, data->ndim, data->shape);
    dt_tensor *part = whole ? dt_scope_slot(scope) : NULL;
    if (!part || dt_view_index(part, whole, items, g->ndim) < 0 ||
        (dt_recording(g) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_copy_into(node->name, part, g) < 0)
        return NULL;
    return whole;
}

static int write_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const choice_data *data = node->data;
    dt_indexing choice;
    dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    if (restore(&choice, node, scope) < 0)
        return -1;
    if (dt_node_wants(node, 0) && data->op == DT_INDEX_ADD) {
        into[0] = g;
    } else if (dt_node_wants(node, 0)) { /* what was overwritten did not matter */
        dt_tensor *zero = zeros_in(scope, node, g, 0, NULL);
        dt_tensor *rest = zero ? dt_scope_slot(scope) : NULL;
        if (!rest ||
            dt_recorded_to(rest, g, (dt_dtype)g->dtype, dt_tensor_device(g)) < 0 ||
            dt_recorded_index_write("IndexPutBackward0", DT_INDEX_WRITE, rest, &choice,
                                    zero) < 0)
            return -1;
        into[0] = rest;
    }
    if (node->nedges > 1 && dt_node_wants(node, 1)) {
        dt_tensor *part = dt_scope_slot(scope);
        if (!part || dt_recorded_index_read("IndexBackward0", part, g, &choice) < 0)
            return -1;
        into[1] = pad(scope, node, part);
        if (!into[1])
            return -1;
    }
    return 0;
}
static const dt_node_type write_type = {write_apply, NULL};

int dt_recorded_index_write(const char *name, dt_index_op op, dt_tensor *target,
                            const dt_indexing *choice, const dt_tensor *values)
{
    if (!target->history && !dt_recording(values))
        return dt_index_write(op, target, choice, values);
    if (dt_in_place_check(choice->what, target) < 0)
        return -1;
    if ((!dt_recording(values) && !dt_recording(target)) ||
        !dt_dtype_is_float((dt_dtype)target->dtype))
        return dt_index_write(op, target, choice, values);
    if (op == DT_INDEX_MULTIPLY)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: multiplying in place has no derivative here yet; call it "
                       "under no_grad()",
                       choice->what);
    const dt_tensor *inputs[] = {target, values};
    dt_node *node = record(&write_type, name, 2, inputs, choice, op, values);
    if (!node || dt_index_write(op, target, choice, values) < 0) {
        dt_node_release(node);
        return -1;
    }
    return dt_in_place_steal(target, node);
}

/* --- embeddings --- */

/* g divided by how often each row was chosen. */
static dt_tensor *per_frequency(dt_scope *scope, dt_node *node, dt_tensor *g,
                                const dt_indexing *choice)
{
    const choice_data *data = node->data;
    dt_tensor *counts = zeros_in(scope, node, g, 1, data->shape);
    dt_tensor *one = counts ? dt_scope_slot(scope) : NULL;
    dt_tensor *shares = one ? dt_scope_slot(scope) : NULL;
    dt_tensor *column = shares ? dt_scope_slot(scope) : NULL;
    dt_tensor *scaled = column ? dt_scope_slot(scope) : NULL;
    if (!scaled ||
        dt_full(node->name, one, (dt_dtype)g->dtype, 0, NULL, dt_tensor_device(g),
                dt_scalar_float(1)) < 0 ||
        dt_index_write(DT_INDEX_ADD, counts, choice, one) < 0 ||
        dt_index_read(shares, counts, choice) < 0 ||
        dt_recorded_unsqueeze(column, shares, -1) < 0 ||
        dt_recorded_binary(DT_BINARY_div, scaled, dt_arg_tensor(g),
                           dt_arg_tensor(column)) < 0)
        return NULL;
    return scaled;
}

static int embedding_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                           dt_tensor **into)
{
    const choice_data *data = node->data;
    dt_indexing choice;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    if (restore(&choice, node, scope) < 0 ||
        (data->by_frequency && !(g = per_frequency(scope, node, g, &choice))))
        return -1;
    dt_tensor *whole =
        put_back(scope, node, "EmbeddingDenseBackwardBackward0", &choice, g);
    if (!whole)
        return -1;
    if (data->padding >= 0) {
        dt_tensor *row = dt_scope_slot(scope);
        if (!row ||
            dt_recorded_select("SelectBackward0", row, whole, 0, data->padding) < 0 ||
            dt_recorded_fill_into(node->name, row, dt_scalar_float(0)) < 0)
            return -1;
    }
    into[0] = whole;
    return 0;
}
static const dt_node_type embedding_type = {embedding_apply, NULL};

int dt_recorded_embedding(dt_tensor *out, const dt_tensor *weight,
                          const dt_tensor *indices, int64_t padding, bool by_frequency)
{
    dt_indexing choice = {
        .what = "embedding",
        .code = DT_ERROR_INDEX,
        .form = DT_INDEXING_INDEX,
        .count = 1,
        .indices = {indices},
    };
    if (dt_index_read(out, weight, &choice) < 0)
        return -1;
    if (!dt_recording(weight))
        return 0;
    dt_node *node = record(&embedding_type, "EmbeddingBackward0", 1, &weight, &choice,
                           DT_INDEX_READ, weight);
    if (node) {
        choice_data *data = node->data;
        data->padding = padding;
        data->by_frequency = by_frequency;
    }
    return dt_record_steal(out, node);
}
