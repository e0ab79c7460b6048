/* Normalising layers: rows, or channels, to mean 0 and variance 1, scaled and shifted.
 */
#ifndef DT_TENSOR_OPS_NN_NORM_H
#define DT_TENSOR_OPS_NN_NORM_H

#include "tensor/tensor.h"

/* Rows of the last `count` dimensions of x. weight and bias, of those dimensions'
 * shape, may be NULL. mean and rstd (1 / deviation) get one element a row. */
int dt_layer_norm(dt_tensor *out, dt_tensor *mean, dt_tensor *rstd, const dt_tensor *x,
                  int count, const int64_t *shape, const dt_tensor *weight,
                  const dt_tensor *bias, double eps);

/* The gradients for x, weight and bias; NULL: not wanted. */
int dt_layer_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            int count, const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd);

typedef struct dt_batch_norm_options {
    bool training; /* by the batch's own statistics; else by the running ones */
    double momentum, eps;
} dt_batch_norm_options;

/* Channels (dimension 1) of x. All of weight, bias and running statistics (an element a
 * channel) may be NULL, the latter not without training; in training they are written.
 * mean and rstd get an element a channel. */
int dt_batch_norm(dt_tensor *out, dt_tensor *mean, dt_tensor *rstd, const dt_tensor *x,
                  const dt_tensor *weight, const dt_tensor *bias,
                  dt_tensor *running_mean, dt_tensor *running_variance,
                  const dt_batch_norm_options *options);

/* As dt_layer_norm_gradients. */
int dt_batch_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd, bool training);

/* x where mask, bools of x's shape, holds, divided by kept (the part of the elements
 * that is kept); else x * 0. Laid out as mask is. */
int dt_dropout(dt_tensor *out, const dt_tensor *x, const dt_tensor *mask, double kept);

#endif
