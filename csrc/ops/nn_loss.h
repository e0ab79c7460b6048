/* Losses over classes; ops/nn.def says what they compute. With smoothing s and the
 * weights w of n classes, the label of class t is (1 - s) w[t] at t plus s / n * w[i]
 * at every class i. */
#ifndef DT_OPS_NN_LOSS_H
#define DT_OPS_NN_LOSS_H

#include "ops/nn_operands.h"

namespace {
namespace nn {

template <class Row, typename T>
DT_FN T weight_of(const Row &row, Shared<T> weight, Target t)
{
    return !t.counts ? 0 : weight.data ? row.get(weight, t.at) : 1;
}

/* The gradient of the row's loss. */
template <class Row, typename T>
DT_FN T loss_gradient(const Row &row, PerRow<T> dloss, Single<T> dloss_all)
{
    return dloss.data ? row.get(dloss) : row.get(dloss_all);
}
template <class Row, typename T>
DT_FN T loss_gradient(const Row &row, PerRow<T> dloss, Single<T> dloss_all,
                      Single<T> total)
{
    T g = loss_gradient(row, dloss, dloss_all);
    return total.data ? g / row.get(total) : g;
}

struct cross_entropy {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::cross_entropy<T> &at)
    {
        auto x = row.read(at.x);
        T max = row.max(x);
        T log_sum = op_log(row.sum(Exp<T>{max}, x));
        Target t = row.target(at.target);
        T weight = weight_of(row, at.weight, t), smoothing = (T)row.params.smoothing;
        T loss = 0, smooth = 0;
        if (smoothing > 0)
            row.cases(
                [&](auto w) {
                    smooth = row.sum(
                        [=](T v, T wi) { return wi * (log_sum - (v - max)); }, x, w);
                },
                row.shared(at.weight, 1));
        if (t.counts)
            loss = (1 - smoothing) * weight * (log_sum - (row.get(at.x, t.at) - max)) +
                   smoothing * smooth / (T)row.n;
        row.put(at.loss, loss);
        row.put(at.target_weight, weight);
        row.put(at.max, max);
        row.put(at.log_sum, log_sum);
    }
};

struct cross_entropy_backward {
    static constexpr int passes = 1;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::cross_entropy_backward<T> &at)
    {
        Target t = row.target(at.target);
        if (!t.counts) {
            row.write(at.dx, [] { return (T)0; });
            return;
        }
        auto x = row.read(at.x);
        T scale = loss_gradient(row, at.dloss, at.dloss_all, at.total);
        T max = row.get(at.max), log_sum = row.get(at.log_sum);
        T smoothing = (T)row.params.smoothing, each = scale * smoothing / (T)row.n;
        T single = scale * (1 - smoothing) * weight_of(row, at.weight, t);
        Shared<T> weight = {smoothing > 0 ? at.weight.data : nullptr};
        row.cases(
            [=](auto w) {
                T all = single + each * (weight.data ? row.sum(w) : (T)row.n);
                auto others = [=](T v, T wi) {
                    return all * op_exp(v - max - log_sum) - each * wi;
                };
                row.write(at.dx, others, x, w);
                row.add(at.dx, t.at, -single, others, x, w);
            },
            row.shared(weight, 1));
    }
};

struct nll_loss {
    static constexpr int passes = 0;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::nll_loss<T> &at)
    {
        Target t = row.target(at.target);
        T weight = weight_of(row, at.weight, t);
        row.put(at.loss, t.counts ? -weight * row.get(at.x, t.at) : 0);
        row.put(at.target_weight, weight);
    }
};

struct nll_loss_backward {
    static constexpr int passes = 1;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::nll_loss_backward<T> &at)
    {
        Target t = row.target(at.target);
        T smoothing = (T)row.params.smoothing;
        T scale =
            t.counts ? loss_gradient(row, at.dloss, at.dloss_all, at.total) : (T)0;
        T each = scale * smoothing / (T)row.n;
        T single = -scale * (1 - smoothing) * weight_of(row, at.weight, t);
        if (t.counts && smoothing > 0) {
            row.cases(
                [=](auto w) {
                    auto others = [=](T wi) { return -each * wi; };
                    row.write(at.dx, others, w);
                    row.add(at.dx, t.at, single, others, w);
                },
                row.shared(at.weight, 1));
            return;
        }
        auto none = [] { return (T)0; };
        row.write(at.dx, none);
        if (t.counts)
            row.add(at.dx, t.at, single, none);
    }
};

struct soft_cross_entropy {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::soft_cross_entropy<T> &at)
    {
        auto x = row.read(at.x), target = row.read(at.target);
        T max = row.max(x);
        T log_sum = op_log(row.sum(Exp<T>{max}, x));
        T rest = (T)(1 - row.params.smoothing);
        T each = (T)(row.params.smoothing / (double)row.n);
        row.cases(
            [=](auto w) {
                T loss = row.sum(
                    [=](T v, T p, T wi) {
                        return wi * (rest * p + each) * (log_sum - (v - max));
                    },
                    x, target, w);
                row.put(at.loss, loss);
            },
            row.shared(at.weight, 1));
        row.put(at.max, max);
        row.put(at.log_sum, log_sum);
    }
};

struct soft_cross_entropy_backward {
    /* The target is read twice, the second time from a cache. */
    static constexpr int passes = 1;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::soft_cross_entropy_backward<T> &at)
    {
        auto x = row.read(at.x), target = row.read(at.target);
        T max = row.get(at.max), log_sum = row.get(at.log_sum);
        T rest = (T)(1 - row.params.smoothing);
        T each = (T)(row.params.smoothing / (double)row.n);
        T scale = loss_gradient(row, at.dloss, at.dloss_all) * (T)row.params.scale;
        row.cases(
            [=](auto w) {
                T all = row.sum([=](T p, T wi) { return wi * (rest * p + each); },
                                target, w);
                row.write(
                    at.dx,
                    [=](T v, T p, T wi) {
                        return scale * (all * op_exp(v - max - log_sum) -
                                        wi * (rest * p + each));
                    },
                    x, target, w);
            },
            row.shared(at.weight, 1));
    }
};

struct weighted_mean {
    static constexpr int sums = 2;
    template <class Sums, class Operands>
    DT_FN void run(const Sums &sums, const Operands &at)
    {
        sums.add([](auto x, auto weight) { return Terms<decltype(x)>{x, weight}; },
                 at.x, at.weight);
    }
};

} // namespace nn
} // namespace

#endif
