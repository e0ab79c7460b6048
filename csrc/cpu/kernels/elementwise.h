/* Elementwise operations, copies and fills of the CPU's backend. */
#ifndef DT_CPU_KERNELS_ELEMENTWISE_H
#define DT_CPU_KERNELS_ELEMENTWISE_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_elementwise(dt_stream stream, dt_elementwise_op op, const dt_plan *plan);
int dt_cpu_copy(dt_stream stream, const dt_plan *plan);
int dt_cpu_fill(dt_stream stream, const dt_plan *plan);

#endif
