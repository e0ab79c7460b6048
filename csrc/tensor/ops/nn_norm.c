#include "tensor/ops/nn.h"

#include <inttypes.h>

#include "device/random.h"
#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* A factor or term t, which may be NULL, goes with x. */
static int check_parameter(const char *op_name, const char *name, const dt_tensor *x,
                           const dt_tensor *t)
{
    if (!t || t->dtype == x->dtype)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the input is of type %s and %s of type %s; convert one of them",
                   op_name, dt_dtype_name((dt_dtype)x->dtype), name,
                   dt_dtype_name((dt_dtype)t->dtype));
}

/* --- layer_norm --- */

static int check_shape(const char *name, const dt_tensor *t, int count,
                       const int64_t *shape)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (!t || dt_shape_equal(t->ndim, t->shape, count, shape))
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "layer_norm: %s has shape %s; give one of normalized_shape, %s",
                   name, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                   dt_shape_text(count, shape, wants, sizeof wants));
}

/* A call whose rows are the last `count` dimensions; shape gets that of one element a
 * row. */
static int begin_rows(dt_nn_rows *rows, const dt_tensor *x, int count, int64_t *shape)
{
    int64_t sizes[] = {1, 1};
    for (int d = 0; d < x->ndim; d++) {
        sizes[d >= x->ndim - count] *= x->shape[d];
        shape[d] = d < x->ndim - count ? x->shape[d] : 1;
    }
    dt_nn_begin(rows, "layer_norm", (dt_dtype)x->dtype, dt_tensor_device(x), 2, sizes,
                1);
    return x->ndim;
}

int dt_layer_norm_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *weight = c->args[2].tensor,
                    *bias = c->args[3].tensor;
    int count = c->args[1].count;
    const int64_t *shape = c->args[1].ints;
    dt_nn_rows rows;
    int64_t kept[DT_MAX_NDIM];
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    if (!count)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: normalized_shape is empty; name the sizes of the last "
                       "dimensions",
                       c->name);
    if (count > x->ndim ||
        !dt_shape_equal(count, x->shape + x->ndim - count, count, shape))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: normalized_shape=%s does not end the shape of the input, "
                       "%s; give inputs whose last sizes those are",
                       c->name, dt_shape_text(count, shape, wants, sizeof wants),
                       dt_shape_text(x->ndim, x->shape, has, sizeof has));
    if (dt_check_float(c->name, DT_ERROR_NOT_IMPLEMENTED, x) ||
        check_shape("weight", weight, count, shape) ||
        check_shape("bias", bias, count, shape) ||
        check_parameter(c->name, "weight", x, weight) ||
        check_parameter(c->name, "bias", x, bias))
        return -1;
    int ndim = begin_rows(&rows, x, count, kept);
    rows.keeps_type = true;
    rows.call.params.eps = c->args[4].f;
    NN_MAKE(&rows, layer_norm, y, c->out[0], x->ndim, x->shape);
    NN_MAKE(&rows, layer_norm, mean, c->out[1], ndim, kept);
    NN_MAKE(&rows, layer_norm, rstd, c->out[2], ndim, kept);
    NN_TAKE(&rows, layer_norm, x, x);
    NN_TAKE(&rows, layer_norm, weight, weight);
    NN_TAKE(&rows, layer_norm, bias, bias);
    return dt_nn_run(&rows, DT_NN_layer_norm);
}

/* Sums over no rows are 0. */
static int clear_sums(const char *op_name, const dt_tensor *x, dt_tensor *a,
                      dt_tensor *b)
{
    if (x->numel)
        return 0;
    return (a && dt_fill_into(op_name, a, dt_scalar_float(0))) ||
                   (b && dt_fill_into(op_name, b, dt_scalar_float(0)))
               ? -1
               : 0;
}

int dt_layer_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            int count, const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd)
{
    dt_nn_rows rows;
    int64_t kept[DT_MAX_NDIM];
    const int64_t *shape = x->shape + x->ndim - count;
    if (for_x) {
        begin_rows(&rows, x, count, kept);
        NN_MAKE(&rows, layer_norm_backward, dx, for_x, x->ndim, x->shape);
        NN_TAKE(&rows, layer_norm_backward, dy, g);
        NN_TAKE(&rows, layer_norm_backward, x, x);
        NN_TAKE(&rows, layer_norm_backward, mean, mean);
        NN_TAKE(&rows, layer_norm_backward, rstd, rstd);
        NN_TAKE(&rows, layer_norm_backward, weight, weight);
        if (dt_nn_run(&rows, DT_NN_layer_norm_backward))
            return -1;
    }
    if (!for_weight && !for_bias)
        return 0;
    begin_rows(&rows, x, count, kept);
    rows.call.params.scale = 1;
    if (for_bias)
        NN_MAKE(&rows, layer_norm_parameters, dbias, for_bias, count, shape);
    if (for_weight)
        NN_MAKE(&rows, layer_norm_parameters, dweight, for_weight, count, shape);
    NN_TAKE(&rows, layer_norm_parameters, dy, g);
    NN_TAKE(&rows, layer_norm_parameters, x, x);
    NN_TAKE(&rows, layer_norm_parameters, mean, mean);
    NN_TAKE(&rows, layer_norm_parameters, rstd, rstd);
    return dt_nn_run(&rows, DT_NN_layer_norm_parameters)
               ? -1
               : clear_sums("layer_norm", x, for_weight, for_bias);
}

/* --- batch_norm --- */

static const char batch[] = "batch_norm";

static int check_channels(const char *name, const dt_tensor *x, const dt_tensor *t)
{
    char has[DT_SHAPE_TEXT], of[DT_SHAPE_TEXT];
    if (!t || t->numel == x->shape[1])
        return check_parameter(batch, name, x, t);
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: %s has shape %s; give %" PRId64
                   " elements, one for each channel of the input of shape %s",
                   batch, name, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                   x->shape[1], dt_shape_text(x->ndim, x->shape, of, sizeof of));
}

static void begin_channels(dt_nn_rows *rows, const dt_tensor *x)
{
    dt_nn_begin(rows, batch, (dt_dtype)x->dtype, dt_tensor_device(x), x->ndim, x->shape,
                1);
}

/* The variance of each channel, divided by the number of its elements. */
static int channel_variances(dt_tensor *out, dt_tensor *mean, const dt_tensor *x)
{
    bool reduced[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++)
        reduced[d] = d != 1;
    return dt_variance(batch, out, mean, x, reduced, false, 0);
}

/* Running statistics as a kernel can write them: t itself, or a copy, which is copied
 * back. t may be NULL. */
static int open_running(dt_tensor *own, const dt_tensor *t, dt_dtype dtype)
{
    return t ? dt_contiguous_as(own, t, dtype, dt_tensor_device(t)) : 0;
}
static int close_running(const dt_tensor *own, dt_tensor *t, bool write)
{
    if (!write || !own->storage)
        return 0;
    if (own->storage != t->storage)
        return dt_copy_into(batch, t, own);
    dt_tensor_written(t);
    return 0;
}

/* The mean and 1 / deviation of each channel: the batch's own, which the running ones
 * follow, in training, else the running ones. */
static int statistics(dt_call *c, dt_tensor *running_mean, dt_tensor *running_variance)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_tensor *mean = c->out[1];
    bool training = c->args[5].b, tracks = training && x->numel;
    dt_nn_rows rows;
    int64_t channels = x->shape[1];
    DT_LOCAL(variance);
    DT_LOCAL(own_mean);
    DT_LOCAL(own_variance);
    dt_dtype dtype = x->dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    dt_nn_begin(&rows, batch, dtype, dt_tensor_device(x), 1, &channels, 0);
    if (open_running(&own_mean, running_mean, dtype) ||
        open_running(&own_variance, running_variance, dtype))
        return -1;
    if (!training) {
        dt_tensor_alias(mean, &own_mean);
        dt_tensor_alias(&variance, &own_variance);
    } else if (channel_variances(&variance, mean, x)) {
        return -1;
    }
    rows.call.params.momentum = c->args[6].f;
    rows.call.params.eps = c->args[7].f;
    rows.call.params.count = channels ? x->numel / channels : 0;
    NN_MAKE(&rows, batch_norm_track, rstd, c->out[2], 1, &channels);
    NN_TAKE(&rows, batch_norm_track, mean, mean);
    NN_TAKE(&rows, batch_norm_track, variance, &variance);
    NN_TAKE(&rows, batch_norm_track, running_mean,
            tracks && running_mean ? &own_mean : NULL);
    NN_TAKE(&rows, batch_norm_track, running_variance,
            tracks && running_variance ? &own_variance : NULL);
    return dt_nn_run(&rows, DT_NN_batch_norm_track) ||
                   close_running(&own_mean, running_mean, tracks) ||
                   close_running(&own_variance, running_variance, tracks)
               ? -1
               : 0;
}

int dt_batch_norm(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *weight = c->args[1].tensor,
                    *bias = c->args[2].tensor;
    dt_tensor *running_mean = (dt_tensor *)c->args[3].tensor,
              *running_variance = (dt_tensor *)c->args[4].tensor;
    dt_nn_rows rows;
    char shape[DT_SHAPE_TEXT];
    if (x->ndim < 2)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the input of shape %s has no dimension 1 for channels; give "
            "(N, C, ...)",
            batch, dt_shape_text(x->ndim, x->shape, shape, sizeof shape));
    if (dt_check_float(batch, DT_ERROR_NOT_IMPLEMENTED, x))
        return -1;
    if (!c->args[5].b && (!running_mean || !running_variance))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: %s must be defined in evaluation mode; give it, or "
                       "training=True",
                       batch, running_mean ? "running_var" : "running_mean");
    if (check_channels("running_mean", x, running_mean) ||
        check_channels("running_var", x, running_variance) ||
        check_channels("weight", x, weight) || check_channels("bias", x, bias) ||
        statistics(c, running_mean, running_variance))
        return -1;
    begin_channels(&rows, x);
    NN_MAKE(&rows, batch_norm, y, c->out[0], x->ndim, x->shape);
    NN_TAKE(&rows, batch_norm, x, x);
    NN_TAKE(&rows, batch_norm, mean, c->out[1]);
    NN_TAKE(&rows, batch_norm, rstd, c->out[2]);
    NN_TAKE(&rows, batch_norm, weight, weight);
    NN_TAKE(&rows, batch_norm, bias, bias);
    return dt_nn_run(&rows, DT_NN_batch_norm);
}

int dt_batch_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd, bool training)
{
    dt_nn_rows rows;
    /* The gradients of weight and bias, in the call's type. */
    DT_LOCAL(sum_dy_xhat);
    DT_LOCAL(sum_dy);
    if (training || for_weight || for_bias) {
        begin_channels(&rows, x);
        rows.keeps_type = training; /* they are operands below */
        rows.call.params.scale = 1;
        NN_MAKE(&rows, batch_norm_parameters, dbias, &sum_dy, 1, x->shape + 1);
        NN_MAKE(&rows, batch_norm_parameters, dweight, &sum_dy_xhat, 1, x->shape + 1);
        NN_TAKE(&rows, batch_norm_parameters, dy, g);
        NN_TAKE(&rows, batch_norm_parameters, x, x);
        NN_TAKE(&rows, batch_norm_parameters, mean, mean);
        NN_TAKE(&rows, batch_norm_parameters, rstd, rstd);
        if (dt_nn_run(&rows, DT_NN_batch_norm_parameters) ||
            clear_sums(batch, x, &sum_dy_xhat, &sum_dy))
            return -1;
    }
    if (for_x) {
        begin_channels(&rows, x);
        rows.call.params.scale = x->numel ? (double)x->shape[1] / (double)x->numel : 0;
        NN_MAKE(&rows, batch_norm_backward, dx, for_x, x->ndim, x->shape);
        NN_TAKE(&rows, batch_norm_backward, dy, g);
        NN_TAKE(&rows, batch_norm_backward, x, x);
        NN_TAKE(&rows, batch_norm_backward, mean, mean);
        NN_TAKE(&rows, batch_norm_backward, rstd, rstd);
        NN_TAKE(&rows, batch_norm_backward, weight, weight);
        NN_TAKE(&rows, batch_norm_backward, sum_dy_xhat,
                training ? &sum_dy_xhat : NULL);
        NN_TAKE(&rows, batch_norm_backward, sum_dy, training ? &sum_dy : NULL);
        if (dt_nn_run(&rows, DT_NN_batch_norm_backward))
            return -1;
    }
    if (for_weight)
        dt_tensor_move(for_weight, &sum_dy_xhat);
    if (for_bias)
        dt_tensor_move(for_bias, &sum_dy);
    return 0;
}

/* --- dropout --- */

/* Elements of which no two and no gaps share the order in memory of like: t itself, or
 * a copy. */
static int lay_out(dt_tensor *out, const dt_tensor *t, const dt_tensor *like)
{
    bool same = true;
    for (int d = 0; d < t->ndim; d++)
        same = same && (t->shape[d] == 1 || t->strides[d] == like->strides[d]);
    if (same) {
        dt_tensor_alias(out, t);
        return 0;
    }
    return dt_tensor_empty_strided("dropout", out, (dt_dtype)t->dtype, like->ndim,
                                   like->shape, like->strides, dt_tensor_device(t))
               ? -1
               : dt_copy_into("dropout", out, t);
}

/* x where mask, bools of x's shape, holds, divided by kept (the part of the elements
 * that is kept); else x * 0. Laid out as mask is. */
static int drop(dt_tensor *out, const dt_tensor *x, const dt_tensor *mask, double kept)
{
    dt_nn_rows rows;
    DT_LOCAL(laid);
    DT_LOCAL(flat);
    DT_LOCAL(dense);
    /* If dense in any order of dimensions, mask and x are read in the order of memory. */
    if (!dt_tensor_is_non_overlapping_and_dense(mask)) {
        if (dt_contiguous(&dense, mask))
            return -1;
        mask = &dense;
    }
    if (lay_out(&laid, x, mask))
        return -1;
    dt_nn_begin(&rows, "dropout", (dt_dtype)x->dtype, dt_tensor_device(x), 1, &x->numel,
                0);
    rows.call.params.keep = kept;
    dt_tensor line = laid; /* borrowed: the elements in the order of memory */
    line.ndim = 1;
    line.shape[0] = x->numel;
    line.strides[0] = 1;
    line.contiguous = true;
    NN_MAKE(&rows, dropout, y, &flat, 1, &x->numel);
    NN_TAKE(&rows, dropout, x, &line);
    NN_TAKE_AS_IT_IS(&rows, dropout, mask, mask);
    return dt_nn_run(&rows, DT_NN_dropout)
               ? -1
               : dt_view_as_strided(out, &flat, x->ndim, x->shape, mask->strides, 0);
}

/* The same with a mask that is drawn, in the order in memory of x where that has no
 * overlaps. A GPU does both in one launch. */
static int draw_and_drop(dt_tensor *out, dt_tensor *mask, const dt_tensor *x,
                         double kept)
{
    const dt_device device = dt_tensor_device(x);
    const dt_scalar probability = dt_scalar_float(kept);
    int order[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM];
    DT_LOCAL(laid);
    if (!x->contiguous && x->numel && !dt_tensor_overlaps_itself(x)) {
        dt_shape_order(x->ndim, x->strides, order);
        dt_shape_ordered_strides(x->ndim, x->shape, order, strides);
    } else {
        dt_shape_strides(x->ndim, x->shape, strides);
    }
    if (dt_tensor_empty_strided("dropout", mask, DT_BOOL, x->ndim, x->shape, strides,
                                device))
        return -1;
    if (dt_device_is_cpu(device) || !x->numel)
        return dt_random_into("dropout", mask, DT_RANDOM_BERNOULLI, probability,
                              probability, NULL)
                   ? -1
                   : drop(out, x, mask, kept);
    if (lay_out(&laid, x, mask) ||
        dt_tensor_empty_strided("dropout", out, (dt_dtype)x->dtype, x->ndim, x->shape,
                                strides, device))
        return -1;
    const dt_random_call call = {.distribution = DT_RANDOM_DROPOUT,
                                 .dtype = (dt_dtype)x->dtype,
                                 .out = dt_tensor_data(out),
                                 .numel = x->numel,
                                 .low = probability,
                                 .x = dt_tensor_data(&laid),
                                 .mask = dt_tensor_data(mask)};
    return dt_tensor_use(&laid) || dt_tensor_use(out) || dt_tensor_use(mask)
               ? -1
               : dt_backend_of(device)->random(dt_stream_current(device),
                                               dt_default_generator(device), &call);
}

int dt_dropout_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *mask = c->args[2].tensor;
    const double kept = c->args[1].f;
    if (dt_check_float("dropout", DT_ERROR_NOT_IMPLEMENTED, x))
        return -1;
    /* PyTorch multiplies on the CPU, and has a function on a GPU. */
    if (!dt_device_is_cpu(dt_tensor_device(x)))
        c->node = "NativeDropoutBackward0";
    if (!mask)
        return draw_and_drop(c->out[0], c->out[1], x, kept);
    if (mask->dtype != DT_BOOL ||
        !dt_shape_equal(x->ndim, x->shape, mask->ndim, mask->shape))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "dropout: the mask must be bools of the input's shape; give a mask "
            "like input > 0");
    dt_tensor_alias(c->out[1], mask);
    return drop(c->out[0], x, mask, kept);
}
