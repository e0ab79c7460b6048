/* Many tensors folded at once, by the rows of ops/reduce.def that are norms. */
#ifndef DT_CPU_FOLD_H
#define DT_CPU_FOLD_H

#include "device/backend.h"

int dt_cpu_fold(dt_queue queue, dt_reduce_op op, const dt_fold_call *call);

#endif
