/* Pooling: csrc/ops/functions/pooling.def. */
#ifndef DT_TENSOR_OPS_POOLING_H
#define DT_TENSOR_OPS_POOLING_H

#include "tensor/call.h"

/* The forward function of _max_pool; makes the indices where `indexed`. */
int dt_max_pool(dt_call *call, bool indexed);

#endif
