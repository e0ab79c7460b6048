/* cat and stack, and what they are made of. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"

typedef struct join_data {
    bool stack;
    int dim;
    int64_t lengths[]; /* of the inputs along dim; -1: left out */
} join_data;

/* The gradient of an input is its part of the result's. */
static int join_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const join_data *data = node->data;
    dt_tensor *g = gradients[0];
    int64_t start = 0;
    if (!g)
        return 0;
    for (int i = 0; i < node->nedges; i++) {
        int64_t length = data->lengths[i];
        if (dt_node_wants(node, i) && length >= 0) {
            dt_tensor *part = dt_scope_slot(scope);
            int status = !part         ? -1
                         : data->stack ? dt_recorded_select("SelectBackward0", part, g,
                                                            data->dim, start)
                                       : dt_recorded_narrow("SliceBackward0", part, g,
                                                            data->dim, start, length);
            if (status < 0)
                return -1;
            into[i] = part;
        }
        start += length > 0 ? length : 0;
    }
    return 0;
}
static const dt_node_type join_type = {join_apply, NULL};

int dt_recorded_cat(dt_tensor *out, const dt_cat *join)
{
    bool recording = false;
    if (dt_cat_new(out, join) < 0)
        return -1;
    for (int64_t i = 0; i < join->count && !recording; i++)
        recording = dt_recording(join->tensors[i]);
    if (!recording || !dt_dtype_is_float(join->dtype))
        return 0;
    dt_node *node = dt_record_node(
        &join_type, join->stack ? "StackBackward0" : "CatBackward0", (int)join->count,
        join->tensors, 0, 1, sizeof(join_data) + (size_t)join->count * sizeof(int64_t));
    if (node) {
        join_data *data = node->data;
        data->stack = join->stack;
        data->dim = join->dim;
        for (int64_t i = 0; i < join->count; i++)
            data->lengths[i] = join->stack ? 1
                               : dt_cat_skips(join, i)
                                   ? -1
                                   : join->tensors[i]->shape[join->dim];
    }
    return dt_record_steal(out, node);
}

int dt_recorded_atleast(int n, dt_tensor *out, const dt_tensor *x)
{
    static const int64_t ones[] = {1, 1, 1};
    if (x->ndim >= n) {
        dt_variable_alias(out, x);
        return 0;
    }
    if (!x->ndim)
        return dt_recorded_reshape(out, x, n, ones);
    if (n == 2 || x->ndim == 2)
        return dt_recorded_unsqueeze(out, x, x->ndim == 2 ? 2 : 0);
    dt_tensor row; /* of three dimensions, the vector in the middle */
    if (dt_recorded_unsqueeze(&row, x, 0) < 0)
        return -1;
    int status = dt_recorded_unsqueeze(out, &row, 2);
    dt_tensor_clear(&row);
    return status;
}
