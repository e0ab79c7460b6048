/* The calls of the resampling kernels: elements along one dimension become weighted sums
 * of others. */
#ifndef DT_DEVICE_RESAMPLE_H
#define DT_DEVICE_RESAMPLE_H

#include "base/dtype.h"

typedef struct dt_tap {
    int64_t index; /* along the dimension of x */
    double weight;
} dt_tap;

/* Row-major x of shape [outer, inputs, inner], y of shape [outer, outputs, inner], all
 * sizes at least 1. y[a, o, k] is the sum of weight * x[a, index, k] over the taps
 * starts[o] to starts[o + 1] - 1, in their order. */
typedef struct dt_resample_call {
    dt_dtype dtype; /* int64, float32, float64 */
    int64_t outer, inputs, outputs, inner;
    const void *x;
    void *y;
    const int64_t *starts; /* in the host's memory, as the taps */
    const dt_tap *taps;
} dt_resample_call;

#endif
