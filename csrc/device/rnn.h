/* The calls of the kernels of recurrent layers: ops/rnn.def. */
#ifndef DT_DEVICE_RNN_H
#define DT_DEVICE_RNN_H

#include "base/dtype.h"
#include "ops/ops.h"

#define DT_RNN_OPERANDS 7

/* One step of `rows` sequences. Operands are the first rows of the step. */
typedef struct dt_rnn_call {
    dt_rnn_op op;
    dt_dtype dtype;  /* float32, float64; if the backend takes them, halves */
    int64_t rows, n; /* each at least 1 */
    void *operands[DT_RNN_OPERANDS];
} dt_rnn_call;

#endif
