/* Elements chosen by index tensors; the contract is dt_backend's. */
#ifndef DT_CUDA_KERNELS_INDEX_H
#define DT_CUDA_KERNELS_INDEX_H

#include "device/backend.h"

int index_run(dt_stream stream, dt_index_op op, const dt_index_call *selection);

#endif
