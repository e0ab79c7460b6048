/* What the core asks of a backend for operations on rows: ops/nn.def. */
#ifndef DT_DEVICE_NN_H
#define DT_DEVICE_NN_H

#include "base/dtype.h"

typedef enum dt_nn_op {
#define NN_OP(name, ...) DT_NN_##name,
#include "ops/nn.def"
    DT_NNN
} dt_nn_op;

#define DT_ROW_OPERANDS 10

/* There are outer * inner rows of n elements. Element i of row (o, k) is number
 * (o * n + i) * inner + k of an operand, and where an operand has one element a row,
 * that of row (o, k) is number o * inner + k. So inner is 1 for the last dimension of a
 * row-major tensor. Nothing here is owned. */
typedef struct dt_nn_call {
    dt_nn_op op;
    const char *what;        /* the operation, in messages; a literal */
    dt_dtype dtype;          /* float32 or float64 */
    int64_t outer, n, inner; /* each at least 1 */
    void *operands[DT_ROW_OPERANDS];
    int64_t ignored; /* the index of rows that do not count */
    double parameter, factor;
} dt_nn_call;

#endif
