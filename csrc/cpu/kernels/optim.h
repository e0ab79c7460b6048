/* Updates of many tensors in place, by the rows of ops/optim.def. */
#ifndef DT_CPU_KERNELS_OPTIM_H
#define DT_CPU_KERNELS_OPTIM_H

#include "device/backend.h"

int dt_cpu_optim(dt_stream stream, const dt_optim_call *call);

#endif
