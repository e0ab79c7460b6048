/* softmax and its relatives; ops/nn.def says what they compute. Exponentials of elements
 * minus the row's maximum do not overflow. A NaN or an infinite maximum makes the results
 * NaN. */
#ifndef DT_OPS_NN_SOFTMAX_H
#define DT_OPS_NN_SOFTMAX_H

#include "ops/nn_operands.h"

namespace {
namespace nn {

struct softmax {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::softmax<T> &at)
    {
        auto x = row.read(at.x);
        T max = row.max(x), sum;
        auto e = row.sum_kept(at.y, &sum, Exp<T>{max}, x);
        T scale = 1 / sum;
        row.write(at.y, [=](T v) { return v * scale; }, e);
    }
};

struct log_softmax {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::log_softmax<T> &at)
    {
        auto x = row.read(at.x);
        T max = row.max(x);
        T log_sum = op_log(row.sum(Exp<T>{max}, x));
        row.write(at.y, [=](T v) { return v - max - log_sum; }, x);
    }
};

struct logsumexp {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::logsumexp<T> &at)
    {
        auto x = row.read(at.x);
        T max = row.max(x);
        T shift = max > -(T)INFINITY && max < (T)INFINITY ? max : 0;
        T sum = row.sum(Exp<T>{shift}, x);
        row.put(at.y, shift + op_log(sum));
    }
};

struct softmax_backward {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::softmax_backward<T> &at)
    {
        auto dy = row.read(at.dy), y = row.read(at.y);
        T sum = row.sum([](T g, T v) { return g * v; }, dy, y);
        row.write(at.dx, [=](T g, T v) { return v * (g - sum); }, dy, y);
    }
};

struct log_softmax_backward {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::log_softmax_backward<T> &at)
    {
        auto dy = row.read(at.dy), y = row.read(at.y);
        T sum = row.sum(dy);
        row.write(at.dx, [=](T g, T v) { return g - op_exp(v) * sum; }, dy, y);
    }
};

struct logsumexp_backward {
    static constexpr int passes = 1;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::logsumexp_backward<T> &at)
    {
        T dy = row.get(at.dy), y = row.get(at.y);
        row.write(at.dx, [=](T v) { return dy * op_exp(v - y); }, row.read(at.x));
    }
};

} // namespace nn
} // namespace

#endif
