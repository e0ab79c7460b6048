/* The calls of the softmax, loss and normalization kernels: ops/nn.def. */
#ifndef DT_DEVICE_NN_H
#define DT_DEVICE_NN_H

#include <stddef.h>

#include "base/dtype.h"

typedef enum dt_nn_op {
#define NN_OP(name, ...) DT_NN_##name,
#include "ops/nn.def"
    DT_NNN
} dt_nn_op;

#define DT_NN_OPERANDS 10

/* Floats that lie in memory in the type `stored` of a call. */
typedef struct dt_nn_stored dt_nn_stored;

/* The operands of each operation in order, so that NN_AT(softmax, x) is x's number. */
#define OUT(name)         dt_nn_stored *name;
#define INOUT(name)       dt_nn_stored *name;
#define OUT_PER_ROW(name) void *name;
#define OUT_SHARED(name)  void *name;
#define ROW(name)         dt_nn_stored *name;
#define PER_ROW(name)     void *name;
#define INDEX(name)       void *name;
#define SHARED(name)      dt_nn_stored *name;
#define STATISTIC(name)   void *name;
#define SINGLE(name)      void *name;
#define MASK(name)        void *name;
#define NN_OP(op, ...)                                                                 \
    struct dt_nn_##op##_operands {                                                     \
        __VA_ARGS__                                                                    \
    };
#include "ops/nn.def"
#define NN_AT(op, operand)                                                             \
    ((int)(offsetof(struct dt_nn_##op##_operands, operand) / sizeof(void *)))
#define NN_IS_STORED(op, operand)                                                      \
    _Generic(((struct dt_nn_##op##_operands *)NULL)->operand,                          \
        dt_nn_stored *: true,                                                          \
        void *: false)

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
    dt_nn_params params;
} dt_nn_call;

#endif
