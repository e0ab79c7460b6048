/* Updates of many tensors in place, by the rows of ops/update.def. */
#ifndef DT_CUDA_UPDATE_H
#define DT_CUDA_UPDATE_H

#include "device/backend.h"

/* One launch, however many tensors there are. */
int update_run(dt_queue queue, const dt_update_call *call);

#endif
