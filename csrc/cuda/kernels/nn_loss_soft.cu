/* Cross entropy whose targets are probabilities. */
#include "cuda/kernels/nn_kernels.h"
#include "ops/nn_loss.h"

NN_ENTRY(soft_cross_entropy, nn_start)
NN_ENTRY(soft_cross_entropy_backward, nn_start)
