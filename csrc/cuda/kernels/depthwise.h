/* Convolutions with one channel of x for each group. */
#ifndef DT_CUDA_KERNELS_DEPTHWISE_H
#define DT_CUDA_KERNELS_DEPTHWISE_H

#include "cuda/runtime/backend.h"
#include "device/convolution.h"

/* call->in is 1. */
int depthwise_convolution(dt_stream stream, const dt_convolution *call);

#endif
