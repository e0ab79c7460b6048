/* The operations of ops/nn.def for this instruction set: a row is a loop of vector
 * instructions, and is read several times while it is in the first cache.
 *
 * All is in anonymous namespaces: a function that several instruction sets shared would
 * be one of them for all. */
#include <string.h>

#include "cpu/kernels/float_functions.h"
#include "cpu/kernels/kernels.h"

#define NN_METHOD DT_INLINE
#undef DT_FN
#define DT_FN  static DT_INLINE
#define op_exp Quick::exp
#define op_log Exact::log
#include "ops/nn_loss.h"
#include "ops/nn_norm.h"
#include "ops/nn_softmax.h"

namespace {

/* --- elements that are side by side, as many as sums have lanes --- */

/* Lanes keep the adders busy. Their number is that of every instruction set, so that
 * results do not depend on it. */
template <typename T>
constexpr int lanes = 128 / (int)sizeof(T);
/* The elements of a run of each lane, together. */
constexpr int64_t SPAN = 4096;

/* The last `count` elements, and others behind them that fill N lanes. gcc makes loads with
 * masks of this loop, if it does not unroll it. */
template <int N, typename E>
DT_FN void load_last(E *to, const E *from, int count, E other)
{
#pragma GCC unroll 1
    for (int j = 0; j < N; j++) {
        E value = other;
        if (j < count)
            value = from[j];
        to[j] = value;
    }
}

template <typename E, int N>
struct Padded {
    E data[N];
    E operator[](int64_t i) const { return data[i]; }
};

template <typename E>
struct Elements {
    const E *data;
    E operator[](int64_t i) const { return data[i]; }
    /* The last `count` elements, fewer than N, so that they fill the lanes. */
    template <int N>
    Padded<E, N> last(int64_t i, int64_t count) const
    {
        Padded<E, N> padded;
        load_last<N>(padded.data, data + i, (int)count, (E)0);
        return padded;
    }
};

template <typename E>
struct Constant {
    E value;
    E operator[](int64_t) const { return value; }
    template <int N>
    Constant last(int64_t, int64_t) const
    {
        return *this;
    }
};

template <typename T>
struct Optional {
    const T *data;
    T missing;
};

template <typename T>
DT_FN T add_lanes(T *lane)
{
    for (int half = lanes<T> / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] += lane[j + half];
    return lane[0];
}

/* The rest after full lanes, with vector instructions. */
template <typename T, class F, class... E>
DT_FN void add_last(T *lane, T *kept, int64_t count, F f, const E &...e)
{
    const int some = (int)count;
    T term[lanes<T>];
#pragma GCC unroll 1
    for (int j = 0; j < lanes<T>; j++)
        term[j] = f(e[j]...);
    if (kept)
#pragma GCC unroll 1
        for (int j = 0; j < lanes<T>; j++)
            if (j < some)
                kept[j] = term[j];
#pragma GCC unroll 1
    for (int j = 0; j < lanes<T>; j++)
        lane[j] += j < some ? term[j] : 0;
}

/* The sum of f(e...). keep: the terms become elements of `kept`. */
template <bool keep = false, typename T, class F, class... E>
DT_FN double sum_of(int64_t n, T *kept, F f, E... e)
{
    constexpr int N = lanes<T>;
    double sum = 0;
    for (int64_t start = 0; start < n; start += SPAN) {
        const int64_t end = n - start > SPAN ? start + SPAN : n;
        T lane[N] = {0};
        int64_t i = start;
        for (; i + N <= end; i += N)
            for (int j = 0; j < N; j++) {
                const T term = f(e[i + j]...);
                if (keep)
                    kept[i + j] = term;
                lane[j] += term;
            }
        if (i < end)
            add_last(lane, keep ? kept + i : nullptr, end - i, f,
                     e.template last<N>(i, end - i)...);
        sum += (double)add_lanes(lane);
    }
    return sum;
}

template <typename T>
DT_FN T max_of(int64_t n, const T *x)
{
    constexpr int N = lanes<T>;
    T lane[N];
    int64_t i = 0;
    for (int j = 0; j < N; j++)
        lane[j] = -(T)INFINITY;
    for (; i + N <= n; i += N)
        for (int j = 0; j < N; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    if (i < n) {
        T rest[N];
        load_last<N>(rest, x + i, (int)(n - i), -(T)INFINITY);
#pragma GCC unroll 1
        for (int j = 0; j < N; j++)
            lane[j] = rest[j] > lane[j] ? rest[j] : lane[j];
    }
    for (int half = N / 2; half; half /= 2)
#pragma GCC unroll 1
        for (int j = 0; j < half; j++)
            lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

/* --- rows --- */

/* A row as ops/nn_operands.h has it. one_channel: the row is a run of elements of one
 * channel, whose SHARED operands are one element. */
template <typename T, bool one_channel = false>
struct CpuRow {
    int64_t n;
    const dt_nn_params &params;

    template <typename E>
    Elements<E> read(nn::Row<const E> x) const
    {
        return {x.data};
    }
    Elements<T> read(nn::Row<T> x) const { return {x.data}; }
    Optional<T> shared(nn::Shared<T> w, T missing) const { return {w.data, missing}; }
    Optional<T> shared(nn::Statistic<T> w, T missing) const
    {
        return {w.data, missing};
    }
    auto shared(nn::Statistic<T> w) const
    {
        if constexpr (one_channel)
            return Constant<T>{*w.data};
        else
            return Elements<T>{w.data};
    }

    template <class F>
    void cases(F f) const
    {
        f();
    }
    template <class F, class... Rest>
    void cases(F f, Optional<T> w, Rest... rest) const
    {
        if (w.data)
            cases([&](auto... more) { f(shared(nn::Statistic<T>{w.data}), more...); },
                  rest...);
        else
            cases([&](auto... more) { f(Constant<T>{w.missing}, more...); }, rest...);
    }

    template <class F, class... E>
    T sum(F f, E... e) const
    {
        return (T)sum_of(n, (T *)nullptr, f, e...);
    }
    template <typename E>
    T sum(Elements<E> e) const
    {
        return sum([](T v) { return v; }, e);
    }
    T sum(Constant<T> e) const { return (T)n * e.value; }
    template <class F, class E>
    Elements<T> sum_kept(nn::Out<T> kept, T *sum, F f, E e) const
    {
        *sum = (T)sum_of<true>(n, kept.data, f, e);
        return {kept.data};
    }
    T max(Elements<T> x) const { return max_of(n, x.data); }

    template <class F, class... E>
    void write(nn::Out<T> to, F f, E... e) const
    {
        T *y = to.data;
        const int64_t count = n;
        DT_VECTOR_LOOP
        for (int64_t i = 0; i < count; i++)
            y[i] = f(e[i]...);
    }
    template <class F, class... E>
    void write(nn::Row<T> to, F f, E... e) const
    {
        write(nn::Out<T>{to.data}, f, e...);
    }
    template <class F, class... E>
    void add(nn::Out<T> to, int64_t i, T value, F, E...) const
    {
        to.data[i] += value;
    }

    T get(nn::PerRow<T> x) const { return *x.data; }
    T get(nn::Single<T> x) const { return *x.data; }
    T get(nn::Row<const T> x, int64_t i) const { return x.data[i]; }
    T get(nn::Shared<T> x, int64_t i) const { return x.data[i]; }
    void put(nn::OutPerRow<T> to, T value) const
    {
        if (to.data)
            *to.data = value;
    }
    /* Targets have been checked, but another thread may have written them since. */
    nn::Target target(nn::Index index) const
    {
        int64_t at = __atomic_load_n(index.data, __ATOMIC_RELAXED);
        return {at, at != params.ignore_index && (uint64_t)at < (uint64_t)n};
    }
};

template <typename T>
using ChannelRun = CpuRow<T, true>;

template <class Op, typename T, class Row>
__attribute__((flatten)) void row_kernel(const dt_nn_row *row)
{
    Op::run(Row{row->n, *row->params}, nn::named<Op, T>(row->at));
}

/* --- sums over rows, for each of n columns or for all elements of a run --- */

template <typename T>
struct ColumnSums {
    const dt_nn_columns *c;

    Elements<T> read(nn::Row<const T> x, int64_t row) const
    {
        return {x.data + row * c->row};
    }
    Constant<T> read(nn::PerRow<T> x, int64_t row) const { return {x.data[row]}; }
    Elements<T> read(nn::Statistic<T> x, int64_t) const { return {x.data}; }

    template <class F, class... E>
    void add_row(F f, E... e) const
    {
        double *first = c->sums[0], *second = c->sums[1];
        const int64_t columns = c->columns;
        DT_VECTOR_LOOP
        for (int64_t i = 0; i < columns; i++) {
            const nn::Terms<T> terms = f(e[i]...);
            first[i] += (double)terms.first;
            if (second)
                second[i] += (double)terms.second;
        }
    }
    template <class F, class... Operand>
    void add(F f, Operand... operand) const
    {
        for (int64_t row = 0; row < c->rows; row++)
            add_row(f, read(operand, row)...);
    }
};

template <typename T>
struct RunSums {
    const dt_nn_columns *c;

    Elements<T> read(nn::Row<const T> x) const { return {x.data}; }
    Constant<T> read(nn::PerRow<T> x) const { return {*x.data}; }
    Constant<T> read(nn::Statistic<T> x) const { return {*x.data}; }

    template <class F, class... Operand>
    void add(F f, Operand... operand) const
    {
        const int64_t n = c->columns;
        T *const none = nullptr;
        *c->sums[0] +=
            sum_of(n, none, [=](auto... v) { return f(v...).first; }, read(operand)...);
        if (c->sums[1])
            *c->sums[1] += sum_of(
                n, none, [=](auto... v) { return f(v...).second; }, read(operand)...);
    }
};

template <class Op, typename T, class Sums>
__attribute__((flatten)) void columns_kernel(const dt_nn_columns *c)
{
    Op::run(Sums{c}, nn::named<Op, T>(c->at));
}

} // namespace

/* In the order of ops/nn.def. */
#define KERNEL(kernel, op, T, Form) kernel<nn::op, T, Form>
#define ROWS(op, T) {KERNEL(row_kernel, op, T, CpuRow<T>), nullptr, nullptr, nullptr},
#define CHANNEL_ROWS(op, T)                                                            \
    {KERNEL(row_kernel, op, T, CpuRow<T>), KERNEL(row_kernel, op, T, ChannelRun<T>),   \
     nullptr, nullptr},
#define SUMS(op, T)                                                                    \
    {nullptr, nullptr, KERNEL(columns_kernel, op, T, ColumnSums<T>),                   \
     KERNEL(columns_kernel, op, T, RunSums<T>)},

static const dt_nn_kernel nn_float32[] = {
#define NN_OP(op, ...)    ROWS(op, float)
#define CHANNELS(op, ...) CHANNEL_ROWS(op, float)
#define COLUMNS(op, ...)  SUMS(op, float)
#include "ops/nn.def"
};
static const dt_nn_kernel nn_float64[] = {
#define NN_OP(op, ...)    ROWS(op, double)
#define CHANNELS(op, ...) CHANNEL_ROWS(op, double)
#define COLUMNS(op, ...)  SUMS(op, double)
#include "ops/nn.def"
};
const dt_nn_kernels DT_ISA_NAME(dt_nn) = {nn_float32, nn_float64};
