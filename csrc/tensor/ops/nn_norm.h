/* Normalization: rows, or channels, to mean 0 and variance 1, scaled and shifted. */
#ifndef DT_TENSOR_OPS_NN_NORM_H
#define DT_TENSOR_OPS_NN_NORM_H

#include "tensor/call.h"

/* The forward function of batch_norm, but for what it asks of autograd. */
int dt_batch_norm(dt_call *call);

/* The gradients for x, weight and bias; NULL: not wanted. Rows are of the last `count`
 * dimensions; mean and rstd (1 / deviation) have an element a row. */
int dt_layer_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            int count, const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd);
/* The same; mean and rstd have an element a channel, which is dimension 1. */
int dt_batch_norm_gradients(dt_tensor *for_x, dt_tensor *for_weight,
                            dt_tensor *for_bias, const dt_tensor *g, const dt_tensor *x,
                            const dt_tensor *weight, const dt_tensor *mean,
                            const dt_tensor *rstd, bool training);

#endif
