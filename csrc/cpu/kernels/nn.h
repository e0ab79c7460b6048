/* Operations on rows; the contract is dt_backend's. */
#ifndef DT_CPU_KERNELS_NN_H
#define DT_CPU_KERNELS_NN_H

#include "device/backend.h"

int dt_cpu_nn(dt_stream stream, const struct dt_nn_call *call);

/* The part of it that sums over rows. */
int dt_cpu_columnwise(const struct dt_nn_call *call);

#endif
