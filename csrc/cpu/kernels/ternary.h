/* Functions of three elements. */
#ifndef DT_CPU_KERNELS_TERNARY_H
#define DT_CPU_KERNELS_TERNARY_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_ternary(dt_queue queue, dt_ternary_op op, const dt_plan *plan);

#endif
