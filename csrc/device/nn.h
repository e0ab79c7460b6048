/* The calls of the softmax, loss and normalization kernels: ops/nn.def. */
#ifndef DT_DEVICE_NN_H
#define DT_DEVICE_NN_H

#include "base/dtype.h"

typedef enum dt_nn_op {
#define NN_OP(name, ...) DT_NN_##name,
#include "ops/nn.def"
    DT_NNN
} dt_nn_op;

#define DT_ROW_OPERANDS 10

/* outer * inner rows of n elements each. Element i of row (o, k) is at (o * n + i) *
 * inner + k of an operand; an operand with one element per row has it at o * inner +
 * k. inner is 1 for the last dimension of a row-major tensor. Owns nothing. */
typedef struct dt_nn_call {
    dt_nn_op op;
    const char *what;        /* operation name for messages; a literal */
    dt_dtype dtype;          /* float32 or float64 */
    int64_t outer, n, inner; /* each at least 1 */
    void *operands[DT_ROW_OPERANDS];
    int64_t ignored; /* ignore_index of losses */
    double parameter, factor;
} dt_nn_call;

#endif
