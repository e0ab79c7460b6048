/* DT_RNN_lstm, ...: the numbers of the rows of ops/rnn.def, and their operands. */
#ifndef DT_DEVICE_RNN_OPS_H
#define DT_DEVICE_RNN_OPS_H

#include "device/rnn.h"

enum {
#define RNN_OP(name, ...) DT_RNN_##name,
#include "ops/rnn.def"
    DT_NRNN
};

/* The layout of an operand: the width of a row, in units of n; whether each step has rows
 * of its own. */
typedef struct dt_rnn_operand {
    unsigned char width; /* 0: there is no such operand */
    bool each, shared;
} dt_rnn_operand;

/* The operands of each operation, in order. */
#define EACH(name, width)   {width, true, false},
#define STATE(name, width)  {width, false, false},
#define SHARED(name, width) {width, false, true},
#define RNN_OP(name, ...)   {__VA_ARGS__},
static const dt_rnn_operand dt_rnn_operands[DT_NRNN][DT_RNN_OPERANDS] = {
#include "ops/rnn.def"
};

/* Elements from a row of operand k to the next. */
static inline int64_t dt_rnn_row(const dt_rnn_call *call, int k)
{
    const dt_rnn_operand *operand = &dt_rnn_operands[call->op][k];
    return operand->shared ? 0 : operand->width * call->n;
}

#endif
