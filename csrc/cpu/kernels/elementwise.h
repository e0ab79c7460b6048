/* Elementwise operations, copies and fills of the CPU's backend. */
#ifndef DT_CPU_KERNELS_ELEMENTWISE_H
#define DT_CPU_KERNELS_ELEMENTWISE_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan);
int dt_cpu_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan);
int dt_cpu_where(dt_queue queue, const dt_plan *plan);
int dt_cpu_copy(dt_queue queue, const dt_plan *plan);
int dt_cpu_fill(dt_queue queue, const dt_plan *plan);

#endif
