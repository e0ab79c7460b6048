/* Normalising layers as the binding calls them: more of autograd/recorded.h. */
#ifndef DT_AUTOGRAD_BACKWARD_NN_NORM_H
#define DT_AUTOGRAD_BACKWARD_NN_NORM_H

#include "tensor/ops/nn_norm.h"

int dt_recorded_layer_norm(dt_tensor *out, const dt_tensor *x, int count,
                           const int64_t *shape, const dt_tensor *weight,
                           const dt_tensor *bias, double eps);
int dt_recorded_batch_norm(dt_tensor *out, const dt_tensor *x, const dt_tensor *weight,
                           const dt_tensor *bias, dt_tensor *running_mean,
                           dt_tensor *running_variance,
                           const dt_batch_norm_options *options);

/* The mask wants no gradient. `name`: of the node. */
int dt_recorded_dropout(const char *name, dt_tensor *out, const dt_tensor *x,
                        const dt_tensor *mask, double kept);

#endif
