/* The geometry of a window that slides over the last one to three dimensions of a tensor:
 * convolution, pooling, unfold. Both backends read it. */
#ifndef DT_OPS_WINDOW_H
#define DT_OPS_WINDOW_H

#include <stdint.h>

#define DT_WINDOW_DIMS 3

/* Always three dimensions: where fewer slide, the first ones are of size 1 everywhere, with
 * stride and dilation 1 and padding 0. Element k of window o is input element
 * o * stride - padding + k * dilation of that dimension, and absent where that is outside
 * of the input. */
typedef struct dt_window {
    int ndim; /* that slide, the last ones */
    int64_t input[DT_WINDOW_DIMS],
        output[DT_WINDOW_DIMS]; /* sizes; output: of windows */
    int64_t kernel[DT_WINDOW_DIMS], stride[DT_WINDOW_DIMS];
    int64_t padding[DT_WINDOW_DIMS]; /* before the first element */
    int64_t dilation[DT_WINDOW_DIMS];
} dt_window;

/* The sizes that positions are divided by. */
typedef enum dt_divisor {
    DT_BY_INPUT,
    DT_BY_OUTPUT,
    DT_BY_STRIDE,
    DT_BY_DILATION,
    DT_NDIVISORS
} dt_divisor;

/* Elements of the input, windows, and elements of one window. */
static inline int64_t dt_window_volume(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

#endif
