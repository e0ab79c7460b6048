/* The calls of the pooling kernels: one number for each window over planes. */
#ifndef DT_DEVICE_POOLING_H
#define DT_DEVICE_POOLING_H

#include "base/dtype.h"
#include "ops/window.h"

typedef enum dt_pooling_op {
    DT_POOLING_MAX,     /* y and index from x */
    DT_POOLING_AVERAGE, /* y from x */
    /* y, planes of inputs, from x, planes of windows; the second from index too */
    DT_POOLING_AVERAGE_BACKWARD,
    DT_POOLING_MAX_BACKWARD
} dt_pooling_op;

typedef struct dt_pooling_call {
    dt_pooling_op op;
    dt_dtype dtype; /* int64, float32, float64; if the backend takes them, halves */
    /* Windows divide the input evenly: window o of a dimension goes from floor(o * input
     * / output) to ceil((o + 1) * input / output). kernel is about its size then. */
    bool adaptive;
    bool counts_padding; /* in the number that averages are divided by */
    int64_t divisor;     /* of averages; 0: the number of elements of the window */
    dt_window window;
    int64_t planes; /* at least 1, as are all sizes */
    const void *x;  /* planes one after the other, as y and index */
    void *y;
    int64_t *index; /* of maxima: where in the plane they are; MAX: or NULL */
} dt_pooling_call;

static inline bool dt_pooling_is_backward(dt_pooling_op op)
{
    return op >= DT_POOLING_AVERAGE_BACKWARD;
}

#endif
