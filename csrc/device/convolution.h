/* The calls of the convolution kernels. */
#ifndef DT_DEVICE_CONVOLUTION_H
#define DT_DEVICE_CONVOLUTION_H

#include "base/dtype.h"
#include "ops/window.h"

/* A convolution is linear in its input and in its weight:
 *
 *     y[b, o, window] = sum of x[b, i, element of the window] * w[o, i, place in it]
 *
 * Each of x, w and y has a part that is computed from the two others: y itself; x, which is
 * a gradient and the transposed convolution; and w, a gradient. Derivatives of one part are
 * the two others. */
typedef enum dt_convolution_part {
    DT_CONVOLUTION_OUTPUT,
    DT_CONVOLUTION_INPUT,
    DT_CONVOLUTION_WEIGHT
} dt_convolution_part;

/* All tensors are row-major, of one type, and own nothing. Elements of the input that no
 * window reaches become 0, or the bias. */
typedef struct dt_convolution {
    dt_convolution_part part;
    dt_dtype dtype;     /* float32, float64 or, where the backend takes them, halves */
    bool tf32;          /* a GPU may round elements of float32 to TF32: see dt_gemm */
    bool library;       /* a GPU may leave it to cuDNN */
    bool deterministic; /* and then only to what adds in one order */
    dt_window window;
    int64_t batch, groups, in, out; /* in and out: channels of one group */
    void *x;                        /* [batch, groups * in, window.input] */
    void *w;                        /* [groups * out, in, window.kernel] */
    void *y;                        /* [batch, groups * out, window.output] */
    const void *bias; /* added to each channel of OUTPUT or INPUT; or NULL */
} dt_convolution;

#endif
