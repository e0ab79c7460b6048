/* The calls of the resampling kernels: elements along one dimension become weighted sums
 * of others. */
#ifndef DT_DEVICE_RESAMPLE_H
#define DT_DEVICE_RESAMPLE_H

#include "base/dtype.h"

typedef struct dt_tap {
    int64_t index; /* along the dimension of x */
    double weight;
} dt_tap;

/* How the elements along a dimension of size `outputs` are made: element o is the sum of
 * weight * x[index] over the taps starts[o] to starts[o + 1] - 1, in their order. */
typedef struct dt_taps {
    int64_t inputs, outputs;
    const int64_t *starts; /* in the host's memory, as the taps */
    const dt_tap *taps;
} dt_taps;

/* Row-major x of shape [outer, above.inputs, along.inputs, inner], y of outputs instead;
 * all sizes are at least 1. Sums along one dimension or, on a GPU and where inner is 1, of
 * such sums along the dimension above it: without those, above.starts is NULL and its sizes
 * are 1. */
typedef struct dt_resample_call {
    dt_dtype dtype; /* int64, float32, float64; if the backend takes them, halves */
    int64_t outer, inner;
    const void *x;
    void *y;
    dt_taps along, above;
} dt_resample_call;

#endif
