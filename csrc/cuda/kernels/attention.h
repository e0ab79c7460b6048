/* Attention on tensor cores, in files of its own: of 16 bits, and of float32 where it fits
 * a GPU of this compute capability. */
#ifndef DT_CUDA_KERNELS_ATTENTION_H
#define DT_CUDA_KERNELS_ATTENTION_H

#include "cuda/runtime/backend.h"
#include "device/attention.h"

int attention_of_halves(dt_stream stream, const dt_attention_call *call);
bool attention_fits_floats(const dt_attention_call *call, int capability);
int attention_of_floats(dt_stream stream, const dt_attention_call *call);

#endif
