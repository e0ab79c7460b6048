/* Operations on rows; the contract is dt_backend's. */
#ifndef DT_CUDA_ROWWISE_H
#define DT_CUDA_ROWWISE_H

#include "device/backend.h"
#include "device/rowwise.h"

int rowwise_run(dt_queue queue, const dt_rowwise *call);

/* One function for each row of ops/rowwise.def and each type, in the rowwise_*.cu. */
typedef int (*rowwise_fn)(dt_queue queue, const dt_rowwise *call);
#define ROWWISE(name, ...)                                                             \
    int rowwise_##name##_float32(dt_queue queue, const dt_rowwise *call);              \
    int rowwise_##name##_float64(dt_queue queue, const dt_rowwise *call);
#include "ops/rowwise.def"

#endif
