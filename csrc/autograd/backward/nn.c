/* Operations on rows: softmax and its relatives. */
#include "autograd/backward/nn.h"

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"

/* --- softmax --- */

typedef struct softmax_data {
    dt_nn_op backward;
    int dim;
} softmax_data;

/* The sum over the row, as size 1. */
static dt_arg row_sum(dt_scope *scope, dt_arg x, int dim)
{
    int64_t dims[] = {dim};
    return SCOPE_CALL(scope, sum, TENSOR(x), dt_value_ints(1, dims),
                      dt_value_bool(true));
}

static int softmax_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const softmax_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *y = dt_node_saved(node, 0, scope);
    if (!y)
        return -1;
    if (!dt_recording(g) && !dt_recording(y)) {
        dt_tensor *out = dt_scope_slot(scope);
        if (!out || dt_softmax_backward(data->backward, out, g, y, data->dim) < 0)
            return -1;
        into[0] = out;
        return 0;
    }
    dt_arg G = dt_arg_tensor(g), Y = dt_arg_tensor(y), result;
    if (data->backward == DT_NN_softmax_backward) {
        dt_arg share = MUL(G, Y);
        result = SUB(share, MUL(Y, row_sum(scope, share, data->dim)));
    } else {
        result = SUB(G, MUL(EXP(Y), row_sum(scope, G, data->dim)));
    }
    into[0] = dt_scope_tensor(scope, result, y);
    return into[0] ? 0 : -1;
}
static const dt_node_type softmax_type = {softmax_apply, NULL};

int dt_recorded_softmax(dt_nn_op op, dt_tensor *out, const dt_tensor *x, int64_t dim,
                        int dtype)
{
    bool plain = op == DT_NN_softmax;
    if (dt_softmax(op, out, x, dim, dtype) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    dt_node *node = dt_record_node(&softmax_type,
                                   plain ? "SoftmaxBackward0" : "LogSoftmaxBackward0",
                                   1, &x, 1, 1, sizeof(softmax_data));
    if (node) {
        softmax_data *data = node->data;
        data->backward = plain ? DT_NN_softmax_backward : DT_NN_log_softmax_backward;
        data->dim = (int)(dim < 0 ? dim + (x->ndim ? x->ndim : 1) : dim);
        dt_node_save(node, 0, out, 0);
    }
    return dt_record_steal(out, node);
}

/* --- logsumexp --- */

typedef struct logsumexp_data {
    int dim;  /* -1: several, or all */
    int ndim; /* of the result, with sizes of 1 for the dimensions that went */
    int64_t shape[DT_MAX_NDIM];
} logsumexp_data;

static int logsumexp_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                           dt_tensor **into)
{
    const logsumexp_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *x = dt_node_saved(node, 0, scope), *y = NULL;
    if (!x || !(y = dt_node_saved(node, 1, scope)))
        return -1;
    dt_tensor *wide_g = dt_scope_slot(scope), *wide_y = dt_scope_slot(scope);
    if (!wide_g || !wide_y)
        return -1;
    if (data->dim >= 0 && !dt_recording(g) && !dt_recording(x) &&
        x->dtype == y->dtype) {
        if (dt_logsumexp_backward(wide_g, g, x, y, data->dim) < 0)
            return -1;
        into[0] = wide_g;
        return 0;
    }
    if (dt_recorded_reshape(wide_g, g, data->ndim, data->shape) < 0 ||
        dt_recorded_reshape(wide_y, y, data->ndim, data->shape) < 0)
        return -1;
    into[0] = dt_scope_tensor(
        scope,
        MUL(dt_arg_tensor(wide_g), EXP(SUB(dt_arg_tensor(x), dt_arg_tensor(wide_y)))),
        x);
    return into[0] ? 0 : -1;
}
static const dt_node_type logsumexp_type = {logsumexp_apply, NULL};

int dt_recorded_logsumexp(dt_tensor *out, const dt_tensor *x, int count,
                          const int64_t *dims, bool keepdim)
{
    if (dt_logsumexp(out, x, count, dims, keepdim) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    dt_node *node = dt_record_node(&logsumexp_type, "LogsumexpBackward0", 1, &x, 2, 1,
                                   sizeof(logsumexp_data));
    if (node) {
        logsumexp_data *data = node->data;
        data->ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->shape[d] = count ? x->shape[d] : 1;
        for (int i = 0; i < count && x->ndim; i++)
            data->shape[dims[i] < 0 ? dims[i] + x->ndim : dims[i]] = 1;
        data->dim = -1;
        if (count == 1)
            data->dim =
                (int)(dims[0] < 0 ? dims[0] + (x->ndim ? x->ndim : 1) : dims[0]);
        dt_node_save(node, 0, x, -1);
        dt_node_save(node, 1, out, 0);
    }
    return dt_record_steal(out, node);
}
