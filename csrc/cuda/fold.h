/* Many tensors folded at once, by the rows of ops/reduce.def that are norms. */
#ifndef DT_CUDA_FOLD_H
#define DT_CUDA_FOLD_H

#include "device/backend.h"

/* One launch, however many tensors there are. */
int fold_run(dt_queue queue, dt_reduce_op op, const dt_fold_call *call);

#endif
