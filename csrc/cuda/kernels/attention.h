/* Attention of 16 bits, in files of its own. */
#ifndef DT_CUDA_KERNELS_ATTENTION_H
#define DT_CUDA_KERNELS_ATTENTION_H

#include "cuda/runtime/backend.h"
#include "device/attention.h"

int attention_of_halves(dt_stream stream, const dt_attention_call *call);

#endif
