/* softmax and its relatives; what they compute is said in ops/nn.def. */
#include "cuda/kernels/nn_kernels.h"

struct Softmax {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(1);
        T most = row.most(x);
        T sum = row.sum([&](int64_t, T v) { return op_exp(v - most); }, x);
        T scale = 1 / sum;
        row.write(0, [&](int64_t, T v) { return op_exp(v - most) * scale; }, x);
    }
};

struct LogSoftmax {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(1);
        T most = row.most(x);
        T sum = row.sum([&](int64_t, T v) { return op_exp(v - most); }, x);
        T norm = op_log(sum);
        row.write(0, [&](int64_t, T v) { return v - most - norm; }, x);
    }
};

struct LogSumExp {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto x = row.read(1);
        T most = row.most(x);
        T shift = most > -(T)INFINITY && most < (T)INFINITY ? most : (T)0;
        T sum = row.sum([&](int64_t, T v) { return op_exp(v - shift); }, x);
        if (row.leads())
            *row.one(0) = shift + op_log(sum);
    }
};

struct SoftmaxBackward {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto g = row.read(1), y = row.read(2);
        T sum = row.sum([&](int64_t, T gi, T yi) { return gi * yi; }, g, y);
        row.write(0, [&](int64_t, T gi, T yi) { return yi * (gi - sum); }, g, y);
    }
};

struct LogSoftmaxBackward {
    static constexpr int reads = 2;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        auto g = row.read(1), y = row.read(2);
        T sum = row.sum([&](int64_t, T gi) { return gi; }, g);
        row.write(0, [&](int64_t, T gi, T yi) { return gi - op_exp(yi) * sum; }, g, y);
    }
};

struct LogSumExpBackward {
    static constexpr int reads = 1;
    template <class Row>
    static __device__ __forceinline__ void run(const Row &row)
    {
        typedef typename Row::T T;
        T g = *row.one(1), y = *row.one(3);
        auto x = row.read(2);
        row.write(0, [&](int64_t, T v) { return g * op_exp(v - y); }, x);
    }
};

ROWWISE_ENTRY(softmax, Softmax, false)
ROWWISE_ENTRY(log_softmax, LogSoftmax, false)
ROWWISE_ENTRY(logsumexp, LogSumExp, false)
ROWWISE_ENTRY(softmax_backward, SoftmaxBackward, false)
ROWWISE_ENTRY(log_softmax_backward, LogSoftmaxBackward, false)
ROWWISE_ENTRY(logsumexp_backward, LogSumExpBackward, false)
