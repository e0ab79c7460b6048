/* Attention of 16 bits, in files of its own. */
#ifndef DT_CUDA_KERNELS_ATTENTION_H
#define DT_CUDA_KERNELS_ATTENTION_H

#include "cuda/runtime/backend.h"
#include "device/attention.h"

int attention_of_halves(dt_stream stream, const dt_attention_call *call);

/* Forward, on compute capability 9.0 (attention_warpgroups.cu). */
bool attention_fits_warpgroups(const dt_attention_call *call, int capability);
int attention_of_warpgroups(dt_stream stream, const dt_attention_call *call);

#endif
