#include "cuda/kernels/nn_kernels.h"
#include "ops/nn_softmax.h"

NN_ENTRY(softmax, nn_start)
NN_ENTRY(log_softmax, nn_start)
NN_ENTRY(logsumexp, nn_start)
NN_ENTRY(softmax_backward, nn_start)
NN_ENTRY(log_softmax_backward, nn_start)
NN_ENTRY(logsumexp_backward, nn_start)
