/* Reductions, and where the extremes are. */
#ifndef DT_CUDA_KERNELS_REDUCE_H
#define DT_CUDA_KERNELS_REDUCE_H

#include "device/backend.h"

int reduce_run(dt_stream stream, dt_reduce_op op, const dt_reduction *call);
int reduce_arg(dt_stream stream, bool greatest, const dt_reduction *call);

#endif
