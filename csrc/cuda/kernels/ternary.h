/* Functions of three elements: the rows of ops/ternary.def. */
#ifndef DT_CUDA_KERNELS_TERNARY_H
#define DT_CUDA_KERNELS_TERNARY_H

#include "device/backend.h"

int ternary_run(dt_queue queue, dt_ternary_op op, const dt_plan *plan);

#endif
