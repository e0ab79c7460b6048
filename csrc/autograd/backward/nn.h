/* The operations on rows as the binding calls them: more of autograd/recorded.h. */
#ifndef DT_AUTOGRAD_BACKWARD_NN_H
#define DT_AUTOGRAD_BACKWARD_NN_H

#include "tensor/ops/nn_loss.h"
#include "tensor/ops/nn.h"

/* softmax or log_softmax. */
int dt_recorded_softmax(dt_nn_op op, dt_tensor *out, const dt_tensor *x, int64_t dim,
                        int dtype);
int dt_recorded_logsumexp(dt_tensor *out, const dt_tensor *x, int count,
                          const int64_t *dims, bool keepdim);

/* cross_entropy or nll_loss. */
int dt_recorded_class_loss(dt_tensor *out, const dt_tensor *x, const dt_tensor *target,
                           const dt_tensor *weight, const dt_loss_options *options);

#endif
