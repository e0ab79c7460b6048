/* The calls of the kernels of recurrent layers: ops/rnn.def. */
#ifndef DT_DEVICE_RNN_H
#define DT_DEVICE_RNN_H

#include "base/dtype.h"

typedef enum dt_rnn_op {
#define RNN_OP(name, ...) DT_RNN_##name,
#include "ops/rnn.def"
    DT_NRNN
} dt_rnn_op;

#define DT_RNN_OPERANDS 7

/* How an operand lies: the elements of a row, in units of n; whether each step has rows
 * of its own. */
typedef struct dt_rnn_operand {
    unsigned char width; /* 0: there is no such operand */
    bool each, shared;
} dt_rnn_operand;

/* Of each operation in order. */
#define EACH(name, width)   {width, true, false},
#define STATE(name, width)  {width, false, false},
#define SHARED(name, width) {width, false, true},
#define RNN_OP(name, ...)   {__VA_ARGS__},
static const dt_rnn_operand dt_rnn_operands[DT_NRNN][DT_RNN_OPERANDS] = {
#include "ops/rnn.def"
};

/* One step of `rows` sequences. Operands are the first rows of the step. */
typedef struct dt_rnn_call {
    dt_rnn_op op;
    dt_dtype dtype;  /* float32 or float64 */
    int64_t rows, n; /* each at least 1 */
    void *operands[DT_RNN_OPERANDS];
} dt_rnn_call;

/* Elements from a row of operand k to the next. */
static inline int64_t dt_rnn_row(const dt_rnn_call *call, int k)
{
    const dt_rnn_operand *operand = &dt_rnn_operands[call->op][k];
    return operand->shared ? 0 : operand->width * call->n;
}

#endif
