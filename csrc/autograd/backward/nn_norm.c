/* Normalising layers: the forward pass keeps mean and 1 / deviation, and the backward
 * pass is one or two operations; for higher derivatives it is written in words. */
#include "autograd/backward/nn_norm.h"

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"

enum { INPUT, MEAN, RSTD, WEIGHT, NSAVED };

typedef struct normal_data {
    int count; /* dimensions of a row of layer_norm; 0: batch_norm */
    bool training;
    double eps;
} normal_data;

/* The dimensions that go into one mean (within), or the others. */
static int dims_of(const normal_data *data, const dt_tensor *x, bool within,
                   int64_t *dims)
{
    int count = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool in = data->count ? d >= x->ndim - data->count : d != 1;
        if (in == within)
            dims[count++] = d;
    }
    return count;
}

static dt_arg fold(dt_scope *scope, dt_op *op, dt_arg x, int count, const int64_t *dims,
                   bool keepdim)
{
    const dt_value values[] = {TENSOR(x), dt_value_ints(count, dims),
                               dt_value_bool(keepdim)};
    return count ? dt_scope_call(scope, op, 3, values) : x;
}

/* An element a channel, so that it broadcasts against x. */
static dt_arg along_channels(dt_scope *scope, const dt_tensor *t, const dt_tensor *x)
{
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == 1 ? x->shape[1] : 1;
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    if (!out || dt_recorded_reshape(out, t, x->ndim, shape) < 0) {
        scope->failed = true;
        return dt_arg_tensor(t);
    }
    return dt_arg_tensor(out);
}

/* What apply does, in words. */
static int apply_recorded(dt_node *node, dt_scope *scope, dt_tensor *g, dt_tensor *x,
                          dt_tensor *mean, dt_tensor *rstd, dt_tensor *weight,
                          dt_tensor **into)
{
    const normal_data *data = node->data;
    int64_t within[DT_MAX_NDIM], across[DT_MAX_NDIM];
    int nwithin = dims_of(data, x, true, within);
    int nacross = dims_of(data, x, false, across);
    /* The parameters' gradients are sums over the rows of a layer, and over what makes
     * up a channel. */
    const int64_t *summed = data->count ? across : within;
    int nsummed = data->count ? nacross : nwithin;
    dt_arg G = dt_arg_tensor(g), X = dt_arg_tensor(x), centred, scale;
#define AVERAGE(a) fold(scope, &dt_op_mean, a, nwithin, within, true)
    if (data->training) {
        centred = SUB(X, AVERAGE(X));
        scale = DIV(ONE, SQRT(ADD(AVERAGE(MUL(centred, centred)), NUMBER(data->eps))));
    } else {
        centred = SUB(X, along_channels(scope, mean, x));
        scale = along_channels(scope, rstd, x);
    }
    dt_arg normal = MUL(centred, scale);
    if (dt_node_wants(node, 0)) {
        dt_arg part = G;
        if (weight)
            part = MUL(G, data->count ? dt_arg_tensor(weight)
                                      : along_channels(scope, weight, x));
        if (data->training)
            part =
                SUB(SUB(part, AVERAGE(part)), MUL(normal, AVERAGE(MUL(part, normal))));
        into[0] = dt_scope_tensor(scope, MUL(part, scale), x);
        if (!into[0])
            return -1;
    }
#undef AVERAGE
    if (dt_node_wants(node, 1)) {
        into[1] = dt_scope_tensor(
            scope, fold(scope, &dt_op_sum, MUL(G, normal), nsummed, summed, false), x);
        if (!into[1])
            return -1;
    }
    if (dt_node_wants(node, 2)) {
        into[2] = dt_scope_tensor(
            scope, fold(scope, &dt_op_sum, G, nsummed, summed, false), x);
        if (!into[2])
            return -1;
    }
    return 0;
}

static int normal_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const normal_data *data = node->data;
    dt_tensor *g = gradients[0], *saved[NSAVED] = {NULL}, *wanted[3] = {NULL};
    if (!g)
        return 0;
    for (int i = 0; i < NSAVED; i++) {
        if (i == WEIGHT && !node->saved[i].tensor.storage && !node->used)
            continue;
        saved[i] = dt_node_saved(node, i, scope);
        if (!saved[i])
            return -1;
    }
    dt_tensor *x = saved[INPUT], *mean = saved[MEAN], *rstd = saved[RSTD],
              *weight = saved[WEIGHT];
    if (x->numel &&
        (dt_recording(g) || dt_recording(x) || (weight && dt_recording(weight))))
        return apply_recorded(node, scope, g, x, mean, rstd, weight, into);
    for (int i = 0; i < 3; i++)
        if (dt_node_wants(node, i) && !(wanted[i] = dt_scope_slot(scope)))
            return -1;
    int status = data->count
                     ? dt_layer_norm_backward(wanted[0], wanted[1], wanted[2], g, x,
                                              data->count, weight, mean, rstd)
                     : dt_batch_norm_backward(wanted[0], wanted[1], wanted[2], g, x,
                                              weight, mean, rstd, data->training);
    if (status < 0)
        return -1;
    for (int i = 0; i < 3; i++)
        into[i] = wanted[i];
    return 0;
}
static const dt_node_type normal_type = {normal_apply, NULL};

static int record(const char *name, dt_tensor *out, dt_tensor *mean, dt_tensor *rstd,
                  const dt_tensor *x, const dt_tensor *weight, const dt_tensor *bias,
                  normal_data like)
{
    const dt_tensor *inputs[] = {x, weight, bias};
    int status = 0;
    if (dt_recording(x) || (weight && dt_recording(weight)) ||
        (bias && dt_recording(bias))) {
        dt_node *node = dt_record_node(&normal_type, name, 3, inputs, NSAVED, 1,
                                       sizeof(normal_data));
        if (node) {
            *(normal_data *)node->data = like;
            dt_node_save(node, INPUT, x, -1);
            dt_node_save(node, MEAN, mean, -1);
            dt_node_save(node, RSTD, rstd, -1);
            if (weight)
                dt_node_save(node, WEIGHT, weight, -1);
        }
        status = dt_record_steal(out, node);
    }
    dt_tensor_clear(mean);
    dt_tensor_clear(rstd);
    return status;
}

int dt_recorded_layer_norm(dt_tensor *out, const dt_tensor *x, int count,
                           const int64_t *shape, const dt_tensor *weight,
                           const dt_tensor *bias, double eps)
{
    dt_tensor mean, rstd;
    if (dt_layer_norm(out, &mean, &rstd, x, count, shape, weight, bias, eps) < 0)
        return -1;
    return record("NativeLayerNormBackward0", out, &mean, &rstd, x, weight, bias,
                  (normal_data){count, true, eps});
}

int dt_recorded_batch_norm(dt_tensor *out, const dt_tensor *x, const dt_tensor *weight,
                           const dt_tensor *bias, dt_tensor *running_mean,
                           dt_tensor *running_variance, const dt_batch_norm_options *o)
{
    dt_tensor mean, rstd;
    if ((running_mean && dt_recording(running_mean)) ||
        (running_variance && dt_recording(running_variance)))
        return dt_fail(DT_ERROR_RUNTIME,
                       "batch_norm: the running statistics want a gradient, and have "
                       "none; give them detach()ed");
    if (dt_batch_norm(out, &mean, &rstd, x, weight, bias, running_mean,
                      running_variance, o) < 0)
        return -1;
    return record("NativeBatchNormBackward0", out, &mean, &rstd, x, weight, bias,
                  (normal_data){0, o->training, o->eps});
}

/* --- dropout --- */

/* Of the gradient goes on what went on of the input. */
static int dropout_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *mask = dt_node_saved(node, 0, scope), *out = dt_scope_slot(scope);
    if (!mask || !out ||
        dt_recorded_dropout(node->name, out, gradients[0], mask,
                            *(const double *)node->data) < 0)
        return -1;
    into[0] = out;
    return 0;
}
static const dt_node_type dropout_type = {dropout_apply, NULL};

int dt_recorded_dropout(const char *name, dt_tensor *out, const dt_tensor *x,
                        const dt_tensor *mask, double kept)
{
    if (dt_dropout(out, x, mask, kept) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    dt_node *node = dt_record_node(&dropout_type, name, 1, &x, 1, 1, sizeof kept);
    if (node) {
        *(double *)node->data = kept;
        dt_node_save(node, 0, mask, -1);
    }
    return dt_record_steal(out, node);
}
