/* Losses over classes: the forward pass keeps two numbers of a row instead of its
 * softmax, and the backward pass is one operation. */
#include <string.h>

#include "autograd/recorded.h"
#include "autograd/backward/nn.h"
#include "autograd/temporaries.h"
#include "autograd/formula.h"
#include "tensor/ops/create.h"

enum { INPUT, TARGET, WEIGHT, MAX, LOG_SUM, TOTAL, NSAVED };

typedef struct loss_data {
    dt_loss_options options;
    int dim; /* of the classes */
} loss_data;

/* What was kept at i; *out is NULL where that is nothing. */
static int restore(dt_node *node, int i, dt_scope *scope, dt_tensor **out)
{
    *out = NULL;
    if (i > TARGET && !node->saved[i].tensor.storage && !node->used)
        return 0;
    *out = dt_node_saved(node, i, scope);
    return *out ? 0 : -1;
}

static dt_arg sum_of_classes(dt_scope *scope, dt_arg x, int dim)
{
    int64_t dims[] = {dim};
    return SCOPE_CALL(scope, sum, TENSOR(x), dt_value_ints(1, dims),
                      dt_value_bool(true));
}

static dt_arg softmax_of(dt_scope *scope, dt_nn_op op, const dt_tensor *x, int dim)
{
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    if (!out || dt_recorded_softmax(op, out, x, dim, -1) < 0) {
        scope->failed = true;
        return dt_arg_tensor(x);
    }
    return dt_arg_tensor(out);
}

/* The weights along the dimension of the classes. */
static dt_arg along_classes(dt_scope *scope, const dt_tensor *weight,
                            const dt_tensor *x, int dim)
{
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == dim ? x->shape[d] : 1;
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    if (!out || dt_view_shape(out, weight, x->ndim, shape) < 0) {
        scope->failed = true;
        return dt_arg_tensor(weight);
    }
    return dt_arg_tensor(out);
}

/* How much of the loss a class has of its logarithm of the softmax: a tensor like x.
 * Classes are no numbers to differentiate by, shares are. */
static dt_arg parts(dt_scope *scope, const loss_data *data, const dt_loss_kept *kept,
                    const dt_tensor *x, const dt_tensor *target,
                    const dt_tensor *weight)
{
    const dt_loss_options *o = &data->options;
    if (o->shares) {
        double classes = (double)x->shape[data->dim];
        dt_arg part = ADD(MUL(dt_arg_tensor(target), NUMBER(1 - o->smoothing)),
                          NUMBER(o->smoothing / classes));
        return weight ? MUL(part, along_classes(scope, weight, x, data->dim)) : part;
    }
    dt_loss_options plain = *o;
    dt_loss_kept none = *kept;
    plain.scores = false;
    plain.reduction = DT_LOSS_SUM;
    none.total.storage = NULL;
    dt_tensor *out = dt_scope_slot(scope), *one = dt_scope_slot(scope);
    if (!out || !one ||
        dt_full(o->what, one, (dt_dtype)x->dtype, 0, NULL, dt_tensor_device(x),
                dt_scalar_float(-1)) < 0 ||
        dt_class_loss_backward(out, one, &none, x, target, weight, &plain) < 0) {
        scope->failed = true;
        return dt_arg_tensor(x);
    }
    return dt_arg_tensor(out);
}

/* The gradient of each row's loss, so that it broadcasts against x. */
static dt_arg scaled(dt_scope *scope, const loss_data *data, const dt_loss_kept *kept,
                     dt_tensor *g, const dt_tensor *x)
{
    const dt_loss_options *o = &data->options;
    if (o->reduction == DT_LOSS_SUM)
        return dt_arg_tensor(g);
    if (o->reduction == DT_LOSS_MEAN && o->shares) {
        int64_t rows = x->numel / x->shape[data->dim];
        return DIV(dt_arg_tensor(g), NUMBER((double)rows));
    }
    if (o->reduction == DT_LOSS_MEAN)
        return DIV(dt_arg_tensor(g), dt_arg_tensor(&kept->total));
    dt_tensor *out = dt_scope_slot(scope);
    if (!out || dt_recorded_unsqueeze(out, g, data->dim) < 0) {
        scope->failed = true;
        return dt_arg_tensor(g);
    }
    return dt_arg_tensor(out);
}

static int loss_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const loss_data *data = node->data;
    const dt_loss_options *o = &data->options;
    dt_tensor *g = gradients[0], *saved[NSAVED];
    bool wants_target = node->nedges > 1 && dt_node_wants(node, 1);
    if (!g)
        return 0;
    for (int i = 0; i < NSAVED; i++)
        if (restore(node, i, scope, &saved[i]) < 0)
            return -1;
    dt_tensor *x = saved[INPUT], *target = saved[TARGET], *weight = saved[WEIGHT];
    dt_loss_kept kept; /* lent */
    memset(&kept, 0, sizeof kept);
    if (saved[MAX])
        kept.max = *saved[MAX];
    if (saved[LOG_SUM])
        kept.log_sum = *saved[LOG_SUM];
    if (saved[TOTAL])
        kept.total = *saved[TOTAL];
    bool recorded = dt_recording(g) || dt_recording(x) || dt_recording(target);
    if (dt_node_wants(node, 0) && !recorded) {
        dt_tensor *out = dt_scope_slot(scope);
        if (!out || dt_class_loss_backward(out, g, &kept, x, target, weight, o) < 0)
            return -1;
        into[0] = out;
    }
    if (!x->numel || (!recorded && !wants_target)) {
        if (x->numel || into[0] || !dt_node_wants(node, 0))
            return 0;
        into[0] = dt_scope_slot(scope);
        return into[0] ? dt_full(o->what, into[0], (dt_dtype)x->dtype, x->ndim,
                                 x->shape, dt_tensor_device(x), dt_scalar_float(0))
                       : -1;
    }
    dt_arg G = scaled(scope, data, &kept, g, x);
    if (dt_node_wants(node, 0) && recorded) {
        dt_arg part = parts(scope, data, &kept, x, target, weight), down = NEG(part);
        if (o->scores) {
            dt_arg all = sum_of_classes(scope, part, data->dim);
            down = SUB(MUL(all, softmax_of(scope, DT_NN_softmax, x, data->dim)), part);
        }
        into[0] = dt_scope_tensor(scope, MUL(G, down), x);
        if (!into[0])
            return -1;
    }
    if (wants_target) {
        dt_arg logs = softmax_of(scope, DT_NN_log_softmax, x, data->dim);
        if (weight)
            logs = MUL(logs, along_classes(scope, weight, x, data->dim));
        into[1] = dt_scope_tensor(scope, MUL(MUL(G, NUMBER(-(1 - o->smoothing))), logs),
                                  target);
        if (!into[1])
            return -1;
    }
    return 0;
}
static const dt_node_type loss_type = {loss_apply, NULL};

/* PyTorch's graph ends in one of several operations. */
static const char *name_of(const dt_loss_options *o, int ndim)
{
    if (o->shares)
        return o->reduction == DT_LOSS_MEAN ? "DivBackward1" : "NegBackward0";
    if (o->scores && o->smoothing > 0)
        return "AddBackward0";
    if (o->reduction == DT_LOSS_EACH && (ndim == 3 || ndim > 4))
        return "ViewBackward0";
    return ndim > 2 ? "NllLoss2DBackward0" : "NllLossBackward0";
}

int dt_recorded_class_loss(dt_tensor *out, const dt_tensor *x, const dt_tensor *target,
                           const dt_tensor *weight, const dt_loss_options *options)
{
    dt_loss_kept kept;
    if (dt_class_loss(out, &kept, x, target, weight, options) < 0)
        return -1;
    int status = 0;
    if (dt_recording(x) || (options->shares && dt_recording(target))) {
        const dt_tensor *inputs[] = {x, target};
        dt_node *node = dt_record_node(&loss_type, name_of(options, x->ndim),
                                       options->shares ? 2 : 1, inputs, NSAVED, 1,
                                       sizeof(loss_data));
        if (node) {
            loss_data *data = node->data;
            data->options = *options;
            data->dim = dt_loss_dim(x->ndim);
            dt_node_save(node, INPUT, x, -1);
            dt_node_save(node, TARGET, target, -1);
            if (weight)
                dt_node_save(node, WEIGHT, weight, -1);
            if (kept.max.storage)
                dt_node_save(node, MAX, &kept.max, -1);
            if (kept.log_sum.storage)
                dt_node_save(node, LOG_SUM, &kept.log_sum, -1);
            if (kept.total.storage)
                dt_node_save(node, TOTAL, &kept.total, -1);
        }
        status = dt_record_steal(out, node);
    }
    dt_loss_kept_clear(&kept);
    return status;
}
