/* Discrete Fourier transforms by a device's library, without a factor. */
#ifndef DT_DEVICE_FOURIER_H
#define DT_DEVICE_FOURIER_H

#include "base/dtype.h"

#define DT_FOURIER_DIMS 3

/* The first half of a transform of real elements determines the rest. */
typedef enum dt_fourier_kind {
    DT_FOURIER_COMPLEX,
    DT_FOURIER_FROM_REAL, /* forward, along one dimension: n / 2 + 1 of n elements */
    DT_FOURIER_TO_REAL    /* the inverse of that; x may be overwritten */
} dt_fourier_kind;

/* y becomes the transforms of the `batch` arrays of x, which are row-major as those of y. */
typedef struct dt_fourier_call {
    dt_fourier_kind kind;
    dt_dtype dtype; /* of the complex elements */
    bool forward;
    int ndim;
    int64_t
        sizes[DT_FOURIER_DIMS]; /* of an array; of its real elements, if it has any */
    int64_t batch;              /* at least 1, as sizes are */
    void *x, *y;
} dt_fourier_call;

/* Elements of an array, and those of its half. */
static inline int64_t dt_fourier_numel(const dt_fourier_call *c, bool half)
{
    int64_t numel = 1;
    for (int d = 0; d < c->ndim; d++)
        numel *= half && d == c->ndim - 1 ? c->sizes[d] / 2 + 1 : c->sizes[d];
    return numel;
}
/* Bytes of all arrays of x, and of y. */
static inline int64_t dt_fourier_bytes(const dt_fourier_call *c, bool of_x)
{
    const bool real = c->kind == (of_x ? DT_FOURIER_FROM_REAL : DT_FOURIER_TO_REAL);
    const dt_dtype dtype = real ? dt_dtype_part(c->dtype) : c->dtype;
    return c->batch * dt_fourier_numel(c, c->kind && !real) *
           (int64_t)dt_dtype_size(dtype);
}

#endif
