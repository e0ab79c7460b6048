#include "cuda/kernels/nn_kernels.h"
#include "ops/nn_loss.h"

NN_ENTRY(cross_entropy, nn_start)
NN_ENTRY(cross_entropy_backward, nn_start)
NN_ENTRY(nll_loss, nn_start)
NN_ENTRY(nll_loss_backward, nn_start)
