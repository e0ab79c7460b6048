/* Variances and means of folded dimensions; the contract is dt_backend's. */
#ifndef DT_CPU_KERNELS_MOMENTS_H
#define DT_CPU_KERNELS_MOMENTS_H

#include "device/backend.h"

int dt_cpu_moments(dt_stream stream, void *mean, const dt_reduction *reduction);

#endif
