/* The steps of ops/rnn.def: element i of the n elements of one row. Written once for both
 * backends. The includer has op_exp, op_tanh and DT_FN, the qualifier of functions.
 * Elements are stored as S; floats of 16 bits are computed with in float32, and rounded
 * where they are stored. */
#ifndef DT_OPS_RNN_CELLS_H
#define DT_OPS_RNN_CELLS_H

#include <stdint.h>

#include "base/half.h"

namespace {
namespace rnn {

namespace operands {
#define EACH(name, width)   S *name;
#define STATE(name, width)  S *name;
#define SHARED(name, width) S *name;
#define RNN_OP(op, ...)                                                                \
    template <typename S>                                                              \
    struct op {                                                                        \
        __VA_ARGS__                                                                    \
    };
#include "ops/rnn.def"
} // namespace operands

/* The operands of a row of Op: pointers in the order of ops/rnn.def. */
template <class Op, typename S>
struct OperandsOf;
#define RNN_OP(op, ...)                                                                \
    struct op;                                                                         \
    template <typename S>                                                              \
    struct OperandsOf<op, S> : operands::op<S> {};
#include "ops/rnn.def"
template <class Op, typename S>
DT_FN const OperandsOf<Op, S> &named(void *const *operands)
{
    return *reinterpret_cast<const OperandsOf<Op, S> *>(operands);
}

template <typename T>
DT_FN T sigmoid(T x)
{
    return 1 / (1 + op_exp(-x));
}

/* --- forward --- */

struct tanh {
    template <typename S>
    DT_FN void run(const operands::tanh<S> &at, int64_t, int64_t i)
    {
        at.h_before[i] = at.h[i];
        at.y[i] = at.h[i] = (S)op_tanh((Computed<S>)at.gates[i]);
    }
};

struct relu {
    template <typename S>
    DT_FN void run(const operands::relu<S> &at, int64_t, int64_t i)
    {
        const S x = at.gates[i];
        at.h_before[i] = at.h[i];
        at.y[i] = at.h[i] = (Computed<S>)x < 0 ? S{} : x; /* a NaN stays */
    }
};

struct lstm {
    template <typename S>
    DT_FN void run(const operands::lstm<S> &at, int64_t n, int64_t i)
    {
        typedef Computed<S> T;
        const S before = at.c[i];
        T in = sigmoid((T)at.gates[i]), forget = sigmoid((T)at.gates[n + i]);
        T content = op_tanh((T)at.gates[2 * n + i]);
        T out = sigmoid((T)at.gates[3 * n + i]);
        at.h_before[i] = at.h[i];
        at.c_before[i] = before;
        at.gates[i] = (S)in;
        at.gates[n + i] = (S)forget;
        at.gates[2 * n + i] = (S)content;
        at.gates[3 * n + i] = (S)out;
        T c = forget * (T)before + in * content;
        at.c[i] = (S)c;
        at.y[i] = at.h[i] = (S)(out * op_tanh(c));
    }
};

struct gru {
    template <typename S>
    DT_FN void run(const operands::gru<S> &at, int64_t n, int64_t i)
    {
        typedef Computed<S> T;
        const S h = at.h[i];
        T reset = sigmoid((T)at.gates[i] + (T)at.hidden[i] + (T)at.bias[i]);
        T update =
            sigmoid((T)at.gates[n + i] + (T)at.hidden[n + i] + (T)at.bias[n + i]);
        T content = (T)at.hidden[2 * n + i] + (T)at.bias[2 * n + i];
        T fresh = op_tanh((T)at.gates[2 * n + i] + reset * content);
        at.h_before[i] = h;
        at.content[i] = (S)content;
        at.gates[i] = (S)reset;
        at.gates[n + i] = (S)update;
        at.gates[2 * n + i] = (S)fresh;
        at.y[i] = at.h[i] = (S)(((T)h - fresh) * update + fresh);
    }
};

/* --- backward --- */

struct tanh_backward {
    template <typename S>
    DT_FN void run(const operands::tanh_backward<S> &at, int64_t, int64_t i)
    {
        typedef Computed<S> T;
        T y = (T)at.y[i];
        at.dgates[i] = (S)(((T)at.dh[i] + (T)at.dy[i]) * (1 - y * y));
    }
};

struct relu_backward {
    template <typename S>
    DT_FN void run(const operands::relu_backward<S> &at, int64_t, int64_t i)
    {
        typedef Computed<S> T;
        at.dgates[i] = (S)((T)at.y[i] <= 0 ? 0 : (T)at.dh[i] + (T)at.dy[i]);
    }
};

struct lstm_backward {
    template <typename S>
    DT_FN void run(const operands::lstm_backward<S> &at, int64_t n, int64_t i)
    {
        typedef Computed<S> T;
        T in = (T)at.gates[i], forget = (T)at.gates[n + i];
        T content = (T)at.gates[2 * n + i], out = (T)at.gates[3 * n + i];
        T before = (T)at.c_before[i];
        T shown = op_tanh(forget * before + in * content);
        T dh = (T)at.dh[i] + (T)at.dy[i];
        T dc = (T)at.dc[i] + dh * out * (1 - shown * shown);
        at.dgates[i] = (S)(dc * content * in * (1 - in));
        at.dgates[n + i] = (S)(dc * before * forget * (1 - forget));
        at.dgates[2 * n + i] = (S)(dc * in * (1 - content * content));
        at.dgates[3 * n + i] = (S)(dh * shown * out * (1 - out));
        at.dc[i] = (S)(dc * forget);
    }
};

struct gru_backward {
    template <typename S>
    DT_FN void run(const operands::gru_backward<S> &at, int64_t n, int64_t i)
    {
        typedef Computed<S> T;
        T reset = (T)at.gates[i], update = (T)at.gates[n + i];
        T fresh = (T)at.gates[2 * n + i], dh = (T)at.dh[i] + (T)at.dy[i];
        T dfresh = dh * (1 - update) * (1 - fresh * fresh);
        T dreset = dfresh * (T)at.content[i] * reset * (1 - reset);
        T dupdate = dh * ((T)at.h_before[i] - fresh) * update * (1 - update);
        at.dgates[i] = at.dhidden[i] = (S)dreset;
        at.dgates[n + i] = at.dhidden[n + i] = (S)dupdate;
        at.dgates[2 * n + i] = (S)dfresh;
        at.dhidden[2 * n + i] = (S)(dfresh * reset);
        at.dh[i] = (S)(dh * update);
    }
};

} // namespace rnn
} // namespace

#endif
