/* Copies and constants. */
#ifndef DT_CUDA_KERNELS_CONVERT_H
#define DT_CUDA_KERNELS_CONVERT_H

#include "device/backend.h"

int convert_fill(dt_queue queue, const dt_plan *plan);
int convert_copy(dt_queue queue, const dt_plan *plan);

#endif
