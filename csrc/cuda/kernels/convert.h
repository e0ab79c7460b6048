/* Copies and constants. */
#ifndef DT_CUDA_KERNELS_CONVERT_H
#define DT_CUDA_KERNELS_CONVERT_H

#include "device/backend.h"

int convert_fill(dt_stream stream, const dt_plan *plan);
int convert_copy(dt_stream stream, const dt_plan *plan);

#endif
