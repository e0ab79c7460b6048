/* The steps of ops/rnn.def: element i of the n elements of one row. Written once for both
 * backends. The includer has op_exp, op_tanh and DT_FN, the qualifier of functions. */
#ifndef DT_OPS_RNN_CELLS_H
#define DT_OPS_RNN_CELLS_H

#include <stdint.h>

namespace {
namespace rnn {

namespace operands {
#define EACH(name, width)   T *name;
#define STATE(name, width)  T *name;
#define SHARED(name, width) T *name;
#define RNN_OP(op, ...)                                                                \
    template <typename T>                                                              \
    struct op {                                                                        \
        __VA_ARGS__                                                                    \
    };
#include "ops/rnn.def"
} // namespace operands

/* The operands of a row of Op: pointers in the order of ops/rnn.def. */
template <class Op, typename T>
struct OperandsOf;
#define RNN_OP(op, ...)                                                                \
    struct op;                                                                         \
    template <typename T>                                                              \
    struct OperandsOf<op, T> : operands::op<T> {};
#include "ops/rnn.def"
template <class Op, typename T>
DT_FN const OperandsOf<Op, T> &named(void *const *operands)
{
    return *reinterpret_cast<const OperandsOf<Op, T> *>(operands);
}

template <typename T>
DT_FN T sigmoid(T x)
{
    return 1 / (1 + op_exp(-x));
}

/* --- forward --- */

struct tanh {
    template <typename T>
    DT_FN void run(const operands::tanh<T> &at, int64_t, int64_t i)
    {
        at.h_before[i] = at.h[i];
        at.y[i] = at.h[i] = op_tanh(at.gates[i]);
    }
};

struct relu {
    template <typename T>
    DT_FN void run(const operands::relu<T> &at, int64_t, int64_t i)
    {
        T x = at.gates[i];
        at.h_before[i] = at.h[i];
        at.y[i] = at.h[i] = x < 0 ? 0 : x; /* a NaN stays */
    }
};

struct lstm {
    template <typename T>
    DT_FN void run(const operands::lstm<T> &at, int64_t n, int64_t i)
    {
        T c = at.c[i];
        T in = sigmoid(at.gates[i]), forget = sigmoid(at.gates[n + i]);
        T content = op_tanh(at.gates[2 * n + i]), out = sigmoid(at.gates[3 * n + i]);
        at.h_before[i] = at.h[i];
        at.c_before[i] = c;
        at.gates[i] = in;
        at.gates[n + i] = forget;
        at.gates[2 * n + i] = content;
        at.gates[3 * n + i] = out;
        at.c[i] = c = forget * c + in * content;
        at.y[i] = at.h[i] = out * op_tanh(c);
    }
};

struct gru {
    template <typename T>
    DT_FN void run(const operands::gru<T> &at, int64_t n, int64_t i)
    {
        T h = at.h[i];
        T reset = sigmoid(at.gates[i] + at.hidden[i] + at.bias[i]);
        T update = sigmoid(at.gates[n + i] + at.hidden[n + i] + at.bias[n + i]);
        T content = at.hidden[2 * n + i] + at.bias[2 * n + i];
        T fresh = op_tanh(at.gates[2 * n + i] + reset * content);
        at.h_before[i] = h;
        at.content[i] = content;
        at.gates[i] = reset;
        at.gates[n + i] = update;
        at.gates[2 * n + i] = fresh;
        at.y[i] = at.h[i] = (h - fresh) * update + fresh;
    }
};

/* --- backward --- */

struct tanh_backward {
    template <typename T>
    DT_FN void run(const operands::tanh_backward<T> &at, int64_t, int64_t i)
    {
        at.dgates[i] = (at.dh[i] + at.dy[i]) * (1 - at.y[i] * at.y[i]);
    }
};

struct relu_backward {
    template <typename T>
    DT_FN void run(const operands::relu_backward<T> &at, int64_t, int64_t i)
    {
        at.dgates[i] = at.y[i] <= 0 ? 0 : at.dh[i] + at.dy[i];
    }
};

struct lstm_backward {
    template <typename T>
    DT_FN void run(const operands::lstm_backward<T> &at, int64_t n, int64_t i)
    {
        T in = at.gates[i], forget = at.gates[n + i], before = at.c_before[i];
        T content = at.gates[2 * n + i], out = at.gates[3 * n + i];
        T shown = op_tanh(forget * before + in * content), dh = at.dh[i] + at.dy[i];
        T dc = at.dc[i] + dh * out * (1 - shown * shown);
        at.dgates[i] = dc * content * in * (1 - in);
        at.dgates[n + i] = dc * before * forget * (1 - forget);
        at.dgates[2 * n + i] = dc * in * (1 - content * content);
        at.dgates[3 * n + i] = dh * shown * out * (1 - out);
        at.dc[i] = dc * forget;
    }
};

struct gru_backward {
    template <typename T>
    DT_FN void run(const operands::gru_backward<T> &at, int64_t n, int64_t i)
    {
        T reset = at.gates[i], update = at.gates[n + i], fresh = at.gates[2 * n + i];
        T dh = at.dh[i] + at.dy[i];
        T dfresh = dh * (1 - update) * (1 - fresh * fresh);
        T dreset = dfresh * at.content[i] * reset * (1 - reset);
        T dupdate = dh * (at.h_before[i] - fresh) * update * (1 - update);
        at.dgates[i] = at.dhidden[i] = dreset;
        at.dgates[n + i] = at.dhidden[n + i] = dupdate;
        at.dgates[2 * n + i] = dfresh;
        at.dhidden[2 * n + i] = dfresh * reset;
        at.dh[i] = dh * update;
    }
};

} // namespace rnn
} // namespace

#endif
