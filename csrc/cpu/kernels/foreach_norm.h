/* Many tensors folded at once, by the rows of ops/reduce.def that are norms. */
#ifndef DT_CPU_KERNELS_FOREACH_NORM_H
#define DT_CPU_KERNELS_FOREACH_NORM_H

#include "device/backend.h"

int dt_cpu_foreach_norm(dt_stream stream, dt_reduce_op op,
                        const dt_foreach_norm_call *call);

#endif
