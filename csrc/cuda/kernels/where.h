/* A choice of two by a condition. */
#ifndef DT_CUDA_KERNELS_WHERE_H
#define DT_CUDA_KERNELS_WHERE_H

#include "device/backend.h"

int where_run(dt_queue queue, const dt_plan *plan);

#endif
