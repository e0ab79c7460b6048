/* Operations on rows; the contract is dt_backend's. */
#ifndef DT_CUDA_KERNELS_NN_H
#define DT_CUDA_KERNELS_NN_H

#include "device/backend.h"
#include "device/nn.h"

int nn_run(dt_stream stream, const dt_nn_call *call);

/* One function for each operation of ops/nn.def and each type, in nn_*.cu. */
#define NN_OP(name, ...)                                                               \
    int nn_##name##_float32(dt_stream stream, const dt_nn_call *call);                 \
    int nn_##name##_float64(dt_stream stream, const dt_nn_call *call);
#include "ops/nn.def"

#endif
