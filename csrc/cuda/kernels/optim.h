/* Updates of many tensors in place, by the rows of ops/optim.def. */
#ifndef DT_CUDA_KERNELS_OPTIM_H
#define DT_CUDA_KERNELS_OPTIM_H

#include "device/backend.h"

/* One launch, however many tensors there are. */
int optim_run(dt_stream stream, const dt_optim_call *call);

#endif
