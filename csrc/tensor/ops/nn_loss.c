#include "tensor/ops/nn.h"

#include <inttypes.h>
#include <string.h>

#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"

/* --- checks --- */

/* The shape of x without its classes. */
static int row_shape(const dt_tensor *x, int64_t *shape)
{
    int ndim = 0, dim = dt_loss_dim(x->ndim);
    for (int d = 0; d < x->ndim; d++)
        if (d != dim)
            shape[ndim++] = x->shape[d];
    return ndim;
}

static int check_type(const dt_loss_options *o, const dt_tensor *target)
{
    if (target->dtype == DT_INT64 || target->dtype == DT_UINT8)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the target is of type %s; class indices are int64 or "
                   "uint8, use target.long(), or give shares of classes in the "
                   "input's shape and type",
                   o->op_name, dt_dtype_name((dt_dtype)target->dtype));
}

static int check_classes(const dt_loss_options *o, const dt_tensor *x,
                         const dt_tensor *target)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT], of[DT_SHAPE_TEXT];
    int64_t shape[DT_MAX_NDIM];
    int ndim = row_shape(x, shape);
    if (dt_shape_equal(ndim, shape, target->ndim, target->shape) ||
        (!ndim && target->ndim == 1 && target->numel == 1))
        return check_type(o, target);
    /* PyTorch's types: a batch of another size is a bad value, a bad shape is not. */
    int64_t batch = target->ndim ? target->shape[0] : 0;
    bool value = ndim ? batch != shape[0] : target->ndim == 1;
    return dt_fail(
        value ? DT_ERROR_VALUE : DT_ERROR_RUNTIME,
        "%s: an input of shape %s, with classes in dimension %d, takes a target "
        "of shape %s, and was given %s; reshape one, or choose as many of both",
        o->op_name, dt_shape_text(x->ndim, x->shape, of, sizeof of),
        dt_loss_dim(x->ndim), dt_shape_text(ndim, shape, wants, sizeof wants),
        dt_shape_text(target->ndim, target->shape, has, sizeof has));
}

static int check(const dt_loss_options *o, const dt_tensor *x, const dt_tensor *target,
                 const dt_tensor *weight)
{
    char has[DT_SHAPE_TEXT];
    int dim = dt_loss_dim(x->ndim);
    if (!x->ndim)
        return dt_fail(o->scores ? DT_ERROR_RUNTIME : DT_ERROR_VALUE,
                       "%s: the input has no dimension for classes; give (N, C, ...), "
                       "or (C)",
                       o->op_name);
    if (dt_check_float(o->op_name, DT_ERROR_NOT_IMPLEMENTED, x))
        return -1;
    if (weight && (weight->ndim != 1 || weight->shape[0] != x->shape[dim]))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: there are %" PRId64 " classes, and weight has shape %s; "
                       "give a weight for each class, or none",
                       o->op_name, x->shape[dim],
                       dt_shape_text(weight->ndim, weight->shape, has, sizeof has));
    if (weight && weight->dtype != x->dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the input is of type %s and weight of type %s; convert one "
                       "of them",
                       o->op_name, dt_dtype_name((dt_dtype)x->dtype),
                       dt_dtype_name((dt_dtype)weight->dtype));
    return o->shares ? 0 : check_classes(o, x, target);
}

/* The classes as int64 and row-major: target itself, or a copy. */
static int prepare_target(dt_tensor *out, const dt_tensor *target)
{
    return dt_contiguous_as(out, target, DT_INT64, dt_tensor_device(target));
}

/* --- forward --- */

static dt_dtype type_of(const dt_loss_options *o, const dt_tensor *x,
                        const dt_tensor *target)
{
    dt_dtype own = (dt_dtype)x->dtype;
    return o->shares ? dt_dtype_promote(own, (dt_dtype)target->dtype) : own;
}

static void begin_loss(dt_nn_rows *rows, const dt_loss_options *o, const dt_tensor *x,
                       const dt_tensor *target)
{
    int dim = dt_loss_dim(x->ndim);
    dt_nn_begin(rows, o->op_name, type_of(o, x, target), dt_tensor_device(x), x->ndim,
                x->shape, dim);
    rows->call.params.ignore_index = o->ignored;
    rows->call.params.smoothing = o->smoothing;
    rows->call.params.dim = dim;
}

/* The loss of each row, and what each adds to the divisor of a mean. */
static int row_losses(dt_tensor *losses, dt_tensor *weights, dt_call *c,
                      const dt_tensor *target, const dt_loss_options *o)
{
    const dt_tensor *x = c->args[0].tensor, *weight = c->args[2].tensor;
    dt_nn_rows rows;
    int64_t shape[DT_MAX_NDIM];
    int ndim = row_shape(x, shape);
    bool weighs = o->reduction == DT_LOSS_MEAN && !o->shares;
    begin_loss(&rows, o, x, target);
    rows.keeps_type = true;
    NN_MAKE(&rows, nll_loss, loss, losses, ndim, shape);
    if (!o->scores) {
        if (weighs)
            NN_MAKE(&rows, nll_loss, target_weight, weights, ndim, shape);
        NN_TAKE(&rows, nll_loss, x, x);
        NN_TAKE_AS_IT_IS(&rows, nll_loss, target, target);
        NN_TAKE(&rows, nll_loss, weight, weight);
        return dt_nn_run(&rows, DT_NN_nll_loss);
    }
    if (o->shares) {
        NN_MAKE(&rows, soft_cross_entropy, max, c->out[1], ndim, shape);
        NN_MAKE(&rows, soft_cross_entropy, log_sum, c->out[2], ndim, shape);
        NN_TAKE(&rows, soft_cross_entropy, x, x);
        NN_TAKE(&rows, soft_cross_entropy, target, target);
        NN_TAKE(&rows, soft_cross_entropy, weight, weight);
        return dt_nn_run(&rows, DT_NN_soft_cross_entropy);
    }
    if (weighs)
        NN_MAKE(&rows, cross_entropy, target_weight, weights, ndim, shape);
    NN_MAKE(&rows, cross_entropy, max, c->out[1], ndim, shape);
    NN_MAKE(&rows, cross_entropy, log_sum, c->out[2], ndim, shape);
    NN_TAKE(&rows, cross_entropy, x, x);
    NN_TAKE_AS_IT_IS(&rows, cross_entropy, target, target);
    NN_TAKE(&rows, cross_entropy, weight, weight);
    return dt_nn_run(&rows, DT_NN_cross_entropy);
}

/* Without classes, or without rows, there is nothing to run. */
static int without_elements(const dt_loss_options *o, dt_tensor *losses,
                            dt_tensor *weights, const dt_tensor *x)
{
    int64_t classes = x->shape[dt_loss_dim(x->ndim)];
    if (losses->numel && !classes && !o->shares)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the dimension of classes is empty; give an input with "
                       "classes",
                       o->op_name);
    if (losses->numel && dt_fill_into(o->op_name, losses, dt_scalar_float(0)))
        return -1;
    return weights->storage && weights->numel
               ? dt_fill_into(o->op_name, weights, dt_scalar_float(1))
               : 0;
}

static int mean(dt_call *c, const dt_tensor *losses, const dt_tensor *weights,
                const dt_loss_options *o)
{
    dt_tensor *out = c->out[0], *total = c->out[3];
    dt_nn_rows rows;
    const int64_t shape[] = {1, losses->numel}; /* rows of one column */
    dt_nn_begin(&rows, o->op_name, (dt_dtype)losses->dtype, dt_tensor_device(losses), 2,
                shape, 0);
    rows.call.params.scale = 1;
    rows.call.params.ratio = true;
    NN_MAKE(&rows, weighted_mean, mean, out, 0, NULL);
    NN_MAKE(&rows, weighted_mean, total, total, 0, NULL);
    NN_TAKE(&rows, weighted_mean, x, losses);
    NN_TAKE(&rows, weighted_mean, weight, weights);
    if (dt_nn_run(&rows, DT_NN_weighted_mean))
        return -1;
    if (losses->numel)
        return 0;
    return dt_fill_into(o->op_name, out, dt_scalar_float(__builtin_nan(""))) ||
                   dt_fill_into(o->op_name, total, dt_scalar_float(0))
               ? -1
               : 0;
}

/* PyTorch's graph ends in one of several operations. */
static const char *node_of(const dt_loss_options *o, int ndim)
{
    if (o->shares)
        return o->reduction == DT_LOSS_MEAN ? "DivBackward1" : "NegBackward0";
    if (o->scores && o->smoothing > 0)
        return "AddBackward0";
    if (o->reduction == DT_LOSS_EACH && (ndim == 3 || ndim > 4))
        return "ViewBackward0";
    return ndim > 2 ? "NllLoss2DBackward0" : "NllLossBackward0";
}

/* Results: the loss, and for the backward function the maximum and log-sum of each row of
 * scores, and what a mean was divided by. A class out of range is an IndexError on the
 * CPU; a GPU reports it at the next synchronization, and leaves the row out. */
static int class_loss(dt_call *c, bool scores)
{
    const dt_tensor *x = c->args[0].tensor, *target = c->args[1].tensor;
    dt_tensor *out = c->out[0];
    dt_loss_options options, *o = &options;
    DT_LOCAL(losses);
    DT_LOCAL(weights);
    DT_LOCAL(classes);
    if (dt_loss_options_of(o, scores, c->args, x, target) ||
        check(o, x, target, c->args[2].tensor))
        return -1;
    c->node = node_of(o, x->ndim);
    if (!o->shares) {
        if (prepare_target(&classes, target))
            return -1;
        target = &classes;
    }
    if (row_losses(&losses, &weights, c, target, o) ||
        (!x->numel && without_elements(o, &losses, &weights, x)))
        return -1;
    if (o->reduction == DT_LOSS_EACH) {
        dt_tensor_move(out, &losses);
    } else if (o->reduction == DT_LOSS_MEAN && !o->shares) {
        if (mean(c, &losses, &weights, o))
            return -1;
    } else {
        const dt_arg rows = dt_arg_scalar(dt_scalar_float((double)losses.numel));
        if (dt_reduce(DT_REDUCE_sum, out, &losses, 0, NULL, false, -1, 0) ||
            (o->reduction == DT_LOSS_MEAN &&
             dt_elementwise_into(DT_OP_div, out, DT_ARGS(dt_arg_tensor(out), rows))))
            return -1;
    }
    return dt_retype(out, type_of(o, x, target));
}

/* --- backward --- */

int dt_class_loss_gradient(dt_tensor *out, const dt_tensor *g, const dt_loss_kept *kept,
                           const dt_tensor *x, const dt_tensor *target,
                           const dt_tensor *weight, const dt_loss_options *o)
{
    dt_nn_rows rows;
    const dt_tensor *total = kept->total.storage ? &kept->total : NULL;
    bool each = o->reduction == DT_LOSS_EACH;
    DT_LOCAL(classes);
    if (!o->shares) {
        if (prepare_target(&classes, target))
            return -1;
        target = &classes;
    }
    begin_loss(&rows, o, x, target);
    NN_MAKE(&rows, nll_loss_backward, dx, out, x->ndim, x->shape);
    if (!o->scores) {
        NN_TAKE_AS_IT_IS(&rows, nll_loss_backward, target, target);
        NN_TAKE(&rows, nll_loss_backward, weight, weight);
        NN_TAKE(&rows, nll_loss_backward, dloss, each ? g : NULL);
        NN_TAKE(&rows, nll_loss_backward, dloss_all, each ? NULL : g);
        NN_TAKE(&rows, nll_loss_backward, total, total);
        return dt_nn_run(&rows, DT_NN_nll_loss_backward);
    }
    /* The operands of soft_cross_entropy_backward are the same, but for total. */
    NN_TAKE(&rows, cross_entropy_backward, x, x);
    NN_TAKE(&rows, cross_entropy_backward, max, &kept->max);
    NN_TAKE(&rows, cross_entropy_backward, log_sum, &kept->log_sum);
    NN_TAKE(&rows, cross_entropy_backward, weight, weight);
    NN_TAKE(&rows, cross_entropy_backward, dloss, each ? g : NULL);
    NN_TAKE(&rows, cross_entropy_backward, dloss_all, each ? NULL : g);
    if (o->shares) {
        NN_TAKE(&rows, soft_cross_entropy_backward, target, target);
        rows.call.params.scale =
            o->reduction == DT_LOSS_MEAN ? 1 / (double)kept->max.numel : 1;
        return dt_nn_run(&rows, DT_NN_soft_cross_entropy_backward);
    }
    NN_TAKE_AS_IT_IS(&rows, cross_entropy_backward, target, target);
    NN_TAKE(&rows, cross_entropy_backward, total, total);
    return dt_nn_run(&rows, DT_NN_cross_entropy_backward);
}
_Static_assert(NN_AT(cross_entropy_backward, dloss_all) ==
                   NN_AT(soft_cross_entropy_backward, dloss_all),
               "one order of operands");

/* --- options --- */

int dt_loss_options_of(dt_loss_options *o, bool scores, const dt_value *args,
                       const dt_tensor *x, const dt_tensor *target)
{
    const char *reduction = args[4].text ? args[4].text : "mean";
    *o = (dt_loss_options){.op_name = scores ? "cross_entropy" : "nll_loss",
                           .scores = scores,
                           .ignored = args[3].i};
    if (scores && args[5].f > 0)
        o->smoothing = args[5].f;
    if (!strcmp(reduction, "none"))
        o->reduction = DT_LOSS_EACH;
    else if (!strcmp(reduction, "mean"))
        o->reduction = DT_LOSS_MEAN;
    else if (!strcmp(reduction, "sum"))
        o->reduction = DT_LOSS_SUM;
    else
        return dt_fail(DT_ERROR_VALUE,
                       "%s is not a valid value for reduction; give 'mean', 'sum' or "
                       "'none'",
                       reduction);
    o->shares =
        scores && dt_shape_equal(x->ndim, x->shape, target->ndim, target->shape);
    if (o->shares && !dt_dtype_is_float((dt_dtype)target->dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "cross_entropy: the target has the input's shape, so it holds "
                       "class probabilities, which are floats, not %s; give floats, or "
                       "class indices without the dimension of the classes",
                       dt_dtype_name((dt_dtype)target->dtype));
    if (o->shares && o->ignored >= 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "cross_entropy: ignore_index is not supported for a target of "
                       "class probabilities; leave it out, or give class indices");
    return 0;
}

int dt_cross_entropy_forward(dt_call *c)
{
    return class_loss(c, true);
}

int dt_nll_loss_forward(dt_call *c)
{
    return class_loss(c, false);
}
