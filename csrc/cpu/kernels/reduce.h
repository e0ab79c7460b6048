/* Reductions of the CPU's backend. */
#ifndef DT_CPU_KERNELS_REDUCE_H
#define DT_CPU_KERNELS_REDUCE_H

#include "device/backend.h"

/* As in dt_backend. The tree in which elements are folded depends on shape and strides
 * alone, so that the result does not depend on threads. */
int dt_cpu_reduce(dt_stream stream, dt_reduce_op op, const dt_reduction *reduction);
int dt_cpu_argreduce(dt_stream stream, bool greatest, const dt_reduction *reduction);

#endif
