/* The calls of the softmax, loss and normalization kernels: ops/nn.def. */
#ifndef DT_DEVICE_NN_H
#define DT_DEVICE_NN_H

#include "base/dtype.h"
#include "ops/ops.h"

#define DT_NN_OPERANDS 10

struct dt_storage;

/* Numbers of a call; an operation reads those that its formula names. */
typedef struct dt_nn_params {
    int64_t ignore_index; /* the target of rows that do not count */
    int64_t count;
    double smoothing; /* of labels */
    double eps, momentum, scale, keep;
    bool ratio; /* of the two sums over rows */
    int dim;    /* of the classes, for messages */
} dt_nn_params;

/* outer * inner rows of n elements each. Element i of row (o, k) is at (o * n + i) *
 * inner + k of an operand; an operand with one element per row has it at o * inner +
 * k. inner is 1 for the last dimension of a row-major tensor. Owns nothing. */
typedef struct dt_nn_call {
    dt_nn_op op;
    const char *op_name; /* operation name for messages; a literal */
    dt_dtype dtype;      /* computed in: float32 or float64 */
    dt_dtype stored;     /* dtype or, if that is float32, a float of 16 bits where the
                                backend takes them (halves) */
    int64_t outer, n, inner; /* each at least 1 */
    void *operands[DT_NN_OPERANDS];
    struct dt_storage *storages[DT_NN_OPERANDS]; /* of operands that the core gives;
                                                    undefined where there is none */
    dt_nn_params params;
} dt_nn_call;

#endif
