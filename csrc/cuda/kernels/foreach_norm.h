/* Many tensors folded at once, by the rows of ops/reduce.def that are norms. */
#ifndef DT_CUDA_KERNELS_FOREACH_NORM_H
#define DT_CUDA_KERNELS_FOREACH_NORM_H

#include "device/backend.h"

/* One launch, however many tensors there are. */
int foreach_norm_run(dt_stream stream, dt_reduce_op op,
                     const dt_foreach_norm_call *call);

#endif
