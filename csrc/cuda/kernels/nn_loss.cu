/* Losses over classes; what they compute is said in ops/nn.def. */
#include "cuda/kernels/nn_kernels.h"

/* The target class of a row, and whether the row counts. */
struct Target {
    int64_t at;
    bool counts;
};
/* What is out of range is reported by one thread, and the row left out. */
template <class Row>
static __device__ __forceinline__ Target target_of(const Row &row, int k)
{
    Target t = {row.index(k), true};
    t.counts = t.at != row.call.ignored;
    if (t.counts && (uint64_t)t.at >= (uint64_t)row.n) {
        if (row.leads())
            report_range(row.call.report, row.call.what, t.at, 0, row.n,
                         (int)row.call.factor);
        t.counts = false;
    }
    return t;
}

template <class Row>
static __device__ __forceinline__ typename Row::T weight_at(const Row &row, int k,
                                                            int64_t i)
{
    return row.has(k) ? row.template all<>(k)[i] : (typename Row::T)1;
}

struct CrossEntropy {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(4);
        T most = row.most(x);
        T norm = op_log(row.sum([&](int64_t, T v) { return op_exp(v - most); }, x));
        T smoothing = (T)row.call.parameter, smooth = 0;
        if (smoothing > 0)
            smooth =
                row.sum([&](int64_t i,
                            T v) { return weight_at(row, 6, i) * (norm - (v - most)); },
                        x);
        if (!row.leads())
            return;
        Target t = target_of(row, 5);
        T share = 0, loss = 0;
        if (t.counts) {
            share = weight_at(row, 6, t.at);
            loss = (1 - smoothing) * share * (norm - (row.at(4, t.at) - most)) +
                   smoothing * smooth / (T)row.n;
        }
        *row.one(0) = loss;
        if (row.has(1))
            *row.one(1) = share;
        *row.one(2) = most;
        *row.one(3) = norm;
    }
};

/* As loss_scale of the CPU. */
template <class Row>
static __device__ __forceinline__ typename Row::T loss_scale(const Row &row, int of_row,
                                                             int of_all, int total)
{
    typename Row::T g =
        row.has(of_row) ? *row.one(of_row) : *row.template all<>(of_all);
    return total >= 0 && row.has(total) ? g / *row.template all<>(total) : g;
}

struct CrossEntropyBackward {
    static constexpr int reads = 1;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        Target t = target_of(row, 4);
        auto x = row.read(1);
        if (!t.counts) {
            row.write(0, [](int64_t, T) { return (T)0; }, x);
            return;
        }
        T most = *row.one(2), norm = *row.one(3), scale = loss_scale(row, 6, 7, 8);
        T smoothing = (T)row.call.parameter, each = scale * smoothing / (T)row.n;
        T single = scale * (1 - smoothing) * weight_at(row, 5, t.at);
        T all = single + each * (T)row.n;
        if (smoothing > 0 && row.has(5))
            all = single +
                  each * row.sum([&](int64_t i, T) { return weight_at(row, 5, i); }, x);
        row.write(
            0,
            [&](int64_t i, T v) {
                T g = all * op_exp(v - most - norm);
                if (each != 0)
                    g -= each * weight_at(row, 5, i);
                return i == t.at ? g - single : g;
            },
            x);
    }
};

struct NllLoss {
    static constexpr int reads = 0;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        if (!row.leads())
            return;
        Target t = target_of(row, 3);
        T share = t.counts ? weight_at(row, 4, t.at) : (T)0;
        *row.one(0) = t.counts ? -share * row.at(2, t.at) : (T)0;
        if (row.has(1))
            *row.one(1) = share;
    }
};

struct NllLossBackward {
    static constexpr int reads = 1;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        Target t = target_of(row, 1);
        T scale = t.counts ? loss_scale(row, 3, 4, 5) : (T)0;
        T smoothing = (T)row.call.parameter, each = scale * smoothing / (T)row.n;
        T single = t.counts ? scale * (1 - smoothing) * weight_at(row, 2, t.at) : (T)0;
        row.write(0, [&](int64_t i) {
            T g = each != 0 ? -each * weight_at(row, 2, i) : (T)0;
            return t.counts && i == t.at ? g - single : g;
        });
    }
};

struct CrossEntropyShares {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(3), q = row.read(4);
        T most = row.most(x);
        T norm = op_log(row.sum([&](int64_t, T v) { return op_exp(v - most); }, x));
        T keep = (T)(1 - row.call.parameter);
        T each = (T)(row.call.parameter / (double)row.n);
        T loss = row.sum(
            [&](int64_t i, T v, T share) {
                return weight_at(row, 5, i) * (keep * share + each) *
                       (norm - (v - most));
            },
            x, q);
        if (!row.leads())
            return;
        *row.one(0) = loss;
        *row.one(1) = most;
        *row.one(2) = norm;
    }
};

struct CrossEntropySharesBackward {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(1), q = row.read(4);
        T most = *row.one(2), norm = *row.one(3);
        T keep = (T)(1 - row.call.parameter);
        T each = (T)(row.call.parameter / (double)row.n);
        T scale = loss_scale(row, 6, 7, -1) * (T)row.call.factor;
        T all = row.sum(
            [&](int64_t i, T share) {
                return weight_at(row, 5, i) * (keep * share + each);
            },
            q);
        row.write(
            0,
            [&](int64_t i, T v, T share) {
                return scale * (all * op_exp(v - most - norm) -
                                weight_at(row, 5, i) * (keep * share + each));
            },
            x, q);
    }
};

struct WeightedMean {
    static constexpr int reads = 1;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        T sum = row.sum([](int64_t, T v) { return v; }, row.read(2));
        T total = row.sum([](int64_t, T v) { return v; }, row.read(3));
        if (!row.leads())
            return;
        *row.one(0) = sum / total;
        *row.one(1) = total;
    }
};

ROWWISE_ENTRY(cross_entropy, CrossEntropy, true)
ROWWISE_ENTRY(cross_entropy_backward, CrossEntropyBackward, true)
ROWWISE_ENTRY(nll_loss, NllLoss, true)
ROWWISE_ENTRY(nll_loss_backward, NllLossBackward, true)
ROWWISE_ENTRY(cross_entropy_shares, CrossEntropyShares, false)
ROWWISE_ENTRY(cross_entropy_shares_backward, CrossEntropySharesBackward, false)
ROWWISE_ENTRY(weighted_mean, WeightedMean, false)
