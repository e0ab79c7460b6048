/* Normalization and dropout; ops/nn.def says what they compute. */
#ifndef DT_OPS_NN_NORM_H
#define DT_OPS_NN_NORM_H

#include "ops/nn_operands.h"

namespace {
namespace nn {

/* Adding it changes no number, not even -0, so that compilers leave the addition out. */
constexpr double nothing = -0.0;

struct layer_norm {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::layer_norm<T> &at)
    {
        auto x = row.read(at.x);
        T n = (T)row.n, mean = row.sum(x) / n;
        T variance = row.sum([=](T v) { return (v - mean) * (v - mean); }, x) / n;
        T rstd = 1 / op_sqrt(variance + (T)row.params.eps);
        row.cases(
            [=](auto weight, auto bias) {
                row.write(
                    at.y, [=](T v, T w, T b) { return (v - mean) * rstd * w + b; }, x,
                    weight, bias);
            },
            row.shared(at.weight, 1), row.shared(at.bias, (T)nothing));
        row.put(at.mean, mean);
        row.put(at.rstd, rstd);
    }
};

struct layer_norm_backward {
    static constexpr int passes = 2;
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::layer_norm_backward<T> &at)
    {
        auto dy = row.read(at.dy), x = row.read(at.x);
        T n = (T)row.n, mean = row.get(at.mean), rstd = row.get(at.rstd);
        row.cases(
            [=](auto weight) {
                T mean_dy = row.sum([](T g, T w) { return g * w; }, dy, weight) / n;
                T slope = row.sum([=](T g, T v, T w) { return g * w * (v - mean); }, dy,
                                  x, weight) /
                          n * rstd * rstd;
                row.write(
                    at.dx,
                    [=](T g, T v, T w) {
                        return rstd * (g * w - mean_dy - (v - mean) * slope);
                    },
                    dy, x, weight);
            },
            row.shared(at.weight, 1));
    }
};

struct layer_norm_parameters {
    static constexpr int sums = 2;
    template <class Sums, class Operands>
    DT_FN void run(const Sums &sums, const Operands &at)
    {
        sums.add(
            [](auto dy, auto x, auto mean, auto rstd) {
                return Terms<decltype(dy)>{dy, dy * ((x - mean) * rstd)};
            },
            at.dy, at.x, at.mean, at.rstd);
    }
};
struct batch_norm_parameters : layer_norm_parameters {};

struct batch_norm_track {
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::batch_norm_track<T> &at)
    {
        auto mean = row.read(at.mean), variance = row.read(at.variance);
        double eps = row.params.eps, step = row.params.momentum;
        double count = (double)row.params.count;
        double unbiased = count > 1 ? count / (count - 1) : 1;
        row.write(
            at.rstd, [=](T v) { return (T)(1 / op_sqrt((double)v + eps)); }, variance);
        if (at.running_mean.data)
            row.write(
                at.running_mean,
                [=](T old, T m) {
                    return (T)((1 - step) * (double)old + step * (double)m);
                },
                row.read(at.running_mean), mean);
        if (at.running_variance.data)
            row.write(
                at.running_variance,
                [=](T old, T v) {
                    return (T)((1 - step) * (double)old + step * unbiased * (double)v);
                },
                row.read(at.running_variance), variance);
    }
};

struct batch_norm {
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::batch_norm<T> &at)
    {
        row.cases(
            [=](auto weight, auto bias) {
                row.write(
                    at.y,
                    [=](T v, T mean, T rstd, T w, T b) {
                        return (v - mean) * (rstd * w) + b;
                    },
                    row.read(at.x), row.shared(at.mean), row.shared(at.rstd), weight,
                    bias);
            },
            row.shared(at.weight, 1), row.shared(at.bias, (T)nothing));
    }
};

struct batch_norm_backward {
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::batch_norm_backward<T> &at)
    {
        T scale = (T)row.params.scale;
        auto dy = row.read(at.dy);
        auto rstd = row.shared(at.rstd);
        row.cases(
            [=](auto weight) {
                if (at.sum_dy.data)
                    row.write(
                        at.dx,
                        [=](T g, T v, T mean, T r, T w, T sum_dy_xhat, T sum_dy) {
                            T xhat = (v - mean) * r;
                            return (g - scale * (sum_dy + xhat * sum_dy_xhat)) *
                                   (r * w);
                        },
                        dy, row.read(at.x), row.shared(at.mean), rstd, weight,
                        row.shared(at.sum_dy_xhat), row.shared(at.sum_dy));
                else
                    row.write(
                        at.dx, [](T g, T r, T w) { return g * (r * w); }, dy, rstd,
                        weight);
            },
            row.shared(at.weight, 1));
    }
};

struct dropout {
    template <class Row, typename T>
    DT_FN void run(const Row &row, const operands::dropout<T> &at)
    {
        T scale = 1 / (T)row.params.keep;
        row.write(
            at.y, [=](T v, uint8_t keep) { return v * (keep ? scale : (T)0); },
            row.read(at.x), row.read(at.mask));
    }
};

} // namespace nn
} // namespace

#endif
