/* Elementwise operations, copies and fills of the CPU's backend. */
#ifndef DT_CPU_KERNELS_ELEMENTWISE_H
#define DT_CPU_KERNELS_ELEMENTWISE_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_elementwise(dt_queue queue, dt_elementwise_op op, const dt_plan *plan);
int dt_cpu_copy(dt_queue queue, const dt_plan *plan);
int dt_cpu_fill(dt_queue queue, const dt_plan *plan);

#endif
