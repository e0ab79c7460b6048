/* How CUDA threads run the operations of ops/nn.def: the Row of ops/nn_operands.h.
 *
 * A row belongs to one thread (short rows, and rows across memory, whose neighbours are
 * then next to each other) or to a group: a warp or a block. Groups read up to 16 bytes
 * at a time where pointers and sizes allow it, and keep the elements of a row that they
 * need again in registers where they have room, so that memory is read once.
 *
 * The operands of a call that may be stored in 16 bits all are, or none: its `half`. */
#ifndef DT_CUDA_KERNELS_NN_KERNELS_H
#define DT_CUDA_KERNELS_NN_KERNELS_H

#include <utility>

#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/pack.h"
#include "cuda/kernels/warp.h"
#include "cuda/runtime/kernel_errors.h"

#define NN_METHOD __device__ __forceinline__
#include "ops/nn_operands.h"

namespace {

struct NnCall {
    const char *op_name; /* the host's, for the report */
    void *operands[DT_NN_OPERANDS];
    KernelReport *report;
    int64_t rows, n, inner;
    LongDivider by_n, by_inner;
    int threads; /* of a row: 1, 32 or BLOCK */
    Half half;   /* the type of stored operands */
    dt_nn_params params;
};
POINTERS_OF(NnCall, for (int k = 0; k < DT_NN_OPERANDS; k++) f(s.operands[k]);
            f(s.report);)

/* A thread's part of a sum: see ops/nn_operands.h. */
template <typename T>
struct RunningSum {
    double total;
    T run;
    int length;
    __device__ __forceinline__ RunningSum() : total(0), run(0), length(0) {}
    __device__ __forceinline__ void add(T value)
    {
        run += value;
        if (++length == 32) {
            total += (double)run;
            run = 0;
            length = 0;
        }
    }
    __device__ __forceinline__ double value() const { return total + (double)run; }
};

/* Where element i of a stored operand lies. */
template <typename T, typename Byte>
static __device__ __forceinline__ Byte *stored_at(Byte *data, int64_t i, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half)
            return data + i * 2;
    return data + i * (int64_t)sizeof(T);
}
template <typename T>
static __device__ __forceinline__ T stored(const T *data, int64_t i, Half half)
{
    return element_at<T>(stored_at<T>((const char *)data, i, half), half);
}

/* f(an element of each vector) */
template <typename T, int N, class F, class... V>
static __device__ __forceinline__ Vector<T, N> each_element(F f, const V &...v)
{
    Vector<T, N> made;
    UNROLL
    for (int j = 0; j < N; j++)
        made.v[j] = f(v.v[j]...);
    return made;
}

/* --- elements: a thread's vector number `slot`, from element i on. Where they are
 * stored in 16 bits, a thread asks for those of all operands before it widens the first.
 * at(i) is one element. --- */

template <typename T, int N>
using Halves = typename StoredPack<T, N>::Halves;
template <typename T, int N>
static __device__ __forceinline__ Vector<float, N> widened(const Halves<T, N> &halves,
                                                           bool brain)
{
    return widened(halves.elements(), brain);
}

/* KEPT elements of a thread are in registers; 0: they are read each time. */
template <typename T, int KEPT, int N>
struct Elements {
    static constexpr bool loads = !KEPT;
    const char *data; /* of the row */
    int64_t stride;
    Half half;
    Vector<T, N> kept[KEPT ? KEPT / N : 1];

    __device__ __forceinline__ int64_t offset(int64_t i) const
    {
        return N > 1 ? i : i * stride;
    }
    __device__ __forceinline__ Vector<T, N> load(int64_t i) const
    {
        return *(const Vector<T, N> *)((const T *)data + offset(i));
    }
    __device__ __forceinline__ Halves<T, N> load_halves(int64_t i) const
    {
        return {*(const decltype(Halves<T, N>::words) *)((const uint16_t *)data +
                                                         offset(i))};
    }
    __device__ __forceinline__ Vector<T, N> vector(int slot, int64_t i) const
    {
        if constexpr (KEPT > 0)
            return kept[slot];
        else
            return load(i);
    }
    __device__ __forceinline__ Halves<T, N> ask(int64_t i) const
    {
        if constexpr (KEPT > 0)
            return {};
        else
            return load_halves(i);
    }
    __device__ __forceinline__ Vector<T, N> widen(const Halves<T, N> &asked, int slot,
                                                  bool brain) const
    {
        if constexpr (KEPT > 0)
            return kept[slot];
        else
            return widened<T, N>(asked, brain);
    }
    __device__ __forceinline__ T at(int64_t i) const
    {
        return element_at<T>(stored_at<T>(data, i * stride, half), half);
    }
};

template <typename T, int N>
static __device__ __forceinline__ Vector<T, N> filled(T value)
{
    Vector<T, N> same;
    UNROLL
    for (int j = 0; j < N; j++)
        same.v[j] = value;
    return same;
}

template <typename T, int N>
struct SharedElements {
    static constexpr bool loads = true;
    const char *data;
    T missing;
    Half half;

    __device__ __forceinline__ Vector<T, N> vector(int, int64_t i) const
    {
        return data ? *(const Vector<T, N> *)((const T *)data + i)
                    : filled<T, N>(missing);
    }
    __device__ __forceinline__ Halves<T, N> ask(int64_t i) const
    {
        Halves<T, N> asked = {};
        if (data)
            asked.words = *(const decltype(asked.words) *)((const uint16_t *)data + i);
        return asked;
    }
    __device__ __forceinline__ Vector<T, N> widen(const Halves<T, N> &asked, int,
                                                  bool brain) const
    {
        return data ? widened<T, N>(asked, brain) : filled<T, N>(missing);
    }
    __device__ __forceinline__ T at(int64_t i) const
    {
        return data ? element_at<T>(stored_at<T>(data, i, half), half) : missing;
    }
};

/* f of each element, computed when it is read. */
template <typename T, int N, class F, class E>
struct Mapped {
    static constexpr bool loads = E::loads;
    F f;
    E elements;
    __device__ __forceinline__ Vector<T, N> vector(int slot, int64_t i) const
    {
        return each_element<T, N>(f, elements.vector(slot, i));
    }
    __device__ __forceinline__ Halves<T, N> ask(int64_t i) const
    {
        return elements.ask(i);
    }
    __device__ __forceinline__ Vector<T, N> widen(const Halves<T, N> &asked, int slot,
                                                  bool brain) const
    {
        return each_element<T, N>(f, elements.widen(asked, slot, brain));
    }
};

/* use(the vector of each e...) */
template <typename T, int N, class Use, class... E, size_t... K>
static __device__ __forceinline__ auto with_vectors(std::index_sequence<K...>,
                                                    Half half, int slot, int64_t i,
                                                    Use use, const E &...e)
{
    Vector<T, N> v[sizeof...(E) + 1];
    if constexpr (std::is_same_v<T, float> && (E::loads || ...)) {
        if (half) {
            const Halves<T, N> asked[] = {e.ask(i)...};
            ((v[K] = e.widen(asked[K], slot, half == BRAIN16)), ...);
        } else {
            ((v[K] = e.vector(slot, i)), ...);
        }
    } else {
        ((v[K] = e.vector(slot, i)), ...);
    }
    return use(v[K]...);
}

/* --- rows --- */

/* Where a row across memory starts. */
static __device__ __forceinline__ int64_t row_start(const NnCall &call, int64_t row)
{
    int64_t slab = divide(row, call.by_inner);
    return slab * call.n * call.inner + (row - slab * call.inner);
}

template <typename T, bool GROUP, int KEPT, int N>
struct CudaRow {
    typedef Elements<T, KEPT, N> E;
    const NnCall &call;
    const dt_nn_params &params;
    int64_t number, n, base, stride;
    int first, step; /* the thread's first vector, and elements to its next one, a power
                        of two */

    __device__ __forceinline__ CudaRow(const NnCall &given, int64_t row)
        : call(given), params(given.params), number(row), n(given.n),
          base(row * given.n), stride(1),
          first(GROUP ? (int)(threadIdx.x & (unsigned)(given.threads - 1)) * N : 0),
          step(GROUP ? given.threads * N : N)
    {
        /* Vectors are never across memory. */
        if constexpr (N == 1)
            if (given.inner > 1) {
                base = row_start(given, row);
                stride = given.inner;
            }
    }

    __device__ __forceinline__ E read(nn::Row<const T> x) const
    {
        E e;
        e.data = stored_at<T>((const char *)x.data, base, call.half);
        e.stride = stride;
        e.half = call.half;
        if constexpr (KEPT > 0) {
            if (call.half) {
                Halves<T, N> asked[KEPT / N];
                each_vector(
                    [&](int slot, int64_t i) { asked[slot] = e.load_halves(i); });
                each_vector([&](int slot, int64_t) {
                    e.kept[slot] = widened<T, N>(asked[slot], call.half == BRAIN16);
                });
            } else {
                each_vector([&](int slot, int64_t i) { e.kept[slot] = e.load(i); });
            }
        }
        return e;
    }
    __device__ __forceinline__ SharedElements<T, N> shared(nn::Shared<T> w,
                                                           T missing) const
    {
        return {(const char *)w.data, missing, call.half};
    }
    template <class F, class... S>
    __device__ __forceinline__ void cases(F f, const S &...shared) const
    {
        f(shared...);
    }

    /* f(slot, i) for each of the thread's vectors. */
    template <class F>
    __device__ __forceinline__ void each_vector(F f) const
    {
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * step;
                if (i < n)
                    f(s, i);
            }
        } else {
            ROLLED
            for (int64_t i = first; i < n; i += step)
                f(0, i);
        }
    }

    template <class F, class... S>
    __device__ __forceinline__ T sum(F f, const S &...e) const
    {
        if constexpr (KEPT > 0) {
            T mine = 0;
            each_vector([&](int slot, int64_t i) { mine += sum_of(f, slot, i, e...); });
            return reduce(mine, plus);
        } else {
            RunningSum<T> mine;
            each_vector(
                [&](int slot, int64_t i) { mine.add(sum_of(f, slot, i, e...)); });
            return reduce((T)mine.value(), plus);
        }
    }
    template <class S>
    __device__ __forceinline__ T sum(const S &e) const
    {
        return sum([](T v) { return v; }, e);
    }
    /* The terms stay in registers, or are computed again. */
    template <class F>
    __device__ __forceinline__ auto sum_kept(nn::Out<T>, T *sum, F f, const E &e) const
    {
        if constexpr (KEPT > 0) {
            E terms;
            each_vector([&](int slot, int64_t) {
                UNROLL
                for (int j = 0; j < N; j++)
                    terms.kept[slot].v[j] = f(e.kept[slot].v[j]);
            });
            *sum = this->sum(terms);
            return terms;
        } else {
            *sum = this->sum(f, e);
            return Mapped<T, N, F, E>{f, e};
        }
    }
    __device__ __forceinline__ T max(const E &x) const
    {
        T mine = -(T)INFINITY;
        each_vector([&](int slot, int64_t i) {
            with(
                slot, i,
                [&](const Vector<T, N> &v) {
                    UNROLL
                    for (int j = 0; j < N; j++)
                        mine = larger(mine, v.v[j]);
                },
                x);
        });
        return reduce(mine, larger);
    }

    template <class F, class... S>
    __device__ __forceinline__ void write(nn::Out<T> y, F f, const S &...e) const
    {
        char *data = stored_at<T>((char *)y.data, base, call.half);
        each_vector([&](int slot, int64_t i) {
            with(
                slot, i,
                [&](const auto &...v) {
                    put_elements(stored_at<T>(data, N > 1 ? i : i * stride, call.half),
                                 each_element<T, N>(f, v...), call.half);
                },
                e...);
        });
    }
    /* Computed once more, since what is stored may be rounded. */
    template <class F, class... S>
    __device__ __forceinline__ void add(nn::Out<T> y, int64_t i, T value, F f,
                                        const S &...e) const
    {
        /* By the thread that wrote it. */
        if ((i & (step - 1)) / N * N == first)
            put_element(stored_at<T>((char *)y.data, base + i * stride, call.half),
                        f(e.at(i)...) + value, call.half);
    }

    __device__ __forceinline__ T get(nn::PerRow<T> x) const { return x.data[number]; }
    __device__ __forceinline__ T get(nn::Single<T> x) const { return *x.data; }
    __device__ __forceinline__ T get(nn::Row<const T> x, int64_t i) const
    {
        return stored(x.data, base + i * stride, call.half);
    }
    __device__ __forceinline__ T get(nn::Shared<T> x, int64_t i) const
    {
        return stored(x.data, i, call.half);
    }
    __device__ __forceinline__ void put(nn::OutPerRow<T> y, T value) const
    {
        if (first == 0 && y.data)
            y.data[number] = value;
    }
    /* One thread reports a target out of range, whose row does not count. */
    __device__ __forceinline__ nn::Target target(nn::Index index) const
    {
        nn::Target t = {index.data[number], true};
        t.counts = t.at != params.ignore_index;
        if (t.counts && (uint64_t)t.at >= (uint64_t)n) {
            if (first == 0)
                report_range(call.report, call.op_name, t.at, 0, n, params.dim);
            t.counts = false;
        }
        return t;
    }

  private:
    template <class Use, class... S>
    __device__ __forceinline__ auto with(int slot, int64_t i, Use use,
                                         const S &...e) const
    {
        return with_vectors<T, N>(std::index_sequence_for<S...>(), call.half, slot, i,
                                  use, e...);
    }
    template <class F, class... S>
    __device__ __forceinline__ T sum_of(F f, int slot, int64_t i, const S &...e) const
    {
        return with(
            slot, i, [&](const auto &...v) { return sum_vector(f, v...); }, e...);
    }
    template <class F, class... V>
    static __device__ __forceinline__ T sum_vector(F f, const V &...v)
    {
        T part = f(v.v[0]...);
        UNROLL
        for (int j = 1; j < N; j++)
            part += f(v.v[j]...);
        return part;
    }
    static __device__ __forceinline__ T plus(T a, T b) { return a + b; }
    static __device__ __forceinline__ T larger(T a, T b) { return b > a ? b : a; }
    template <class F>
    __device__ __forceinline__ T reduce(T value, F combine) const
    {
        if constexpr (GROUP)
            return reduce_group<true>(value, call.threads, combine);
        else
            return value;
    }
};

template <class Op, typename T, bool GROUP, int KEPT, int N>
__global__ void nn_kernel(GRID_CONSTANT(NnCall) call)
{
    int64_t row = blockIdx.x;
    if (!GROUP)
        row = row * BLOCK + threadIdx.x;
    else if (call.threads == 32)
        row = row * (BLOCK / 32) + threadIdx.x / 32;
    /* The threads of a row leave together. */
    if (row < call.rows)
        Op::run(CudaRow<T, GROUP, KEPT, N>(call, row), nn::named<Op, T>(call.operands));
}

/* --- launches --- */

/* The call as kernels take it. */
static inline int nn_prepare(dt_stream stream, const dt_nn_call *given, NnCall *out)
{
    out->op_name = given->op_name;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        out->operands[k] = given->operands[k];
    out->rows = given->outer * given->inner;
    out->n = given->n;
    out->inner = given->inner;
    out->by_n = long_divider_for(given->n);
    out->by_inner = long_divider_for(given->inner);
    out->params = given->params;
    out->half = half_of(given->stored);
    out->report = report_of(stream.device);
    return out->report ? 0 : -1;
}

template <class Op, typename T, bool GROUP, int KEPT, int N>
static int nn_launch(dt_stream stream, NnCall &call, int threads)
{
    int64_t each = BLOCK / threads, blocks = (call.rows + each - 1) / each;
    call.threads = threads;
    if constexpr (GROUP)
        return START_BARRIERS("starting an operation on rows", stream,
                              (nn_kernel<Op, T, true, KEPT, N>), blocks, call);
    else
        return START_BLOCKS("starting an operation on rows", stream,
                            (nn_kernel<Op, T, false, KEPT, N>), blocks, call);
}

/* Rows from which on a GPU is busy with one thread for each. */
#define ROWS_MANY  16384
#define ROWS_SHORT 16

template <class Op, typename T>
static int nn_start(dt_stream stream, const dt_nn_call *given)
{
    NnCall call;
    bool vectors = given->inner == 1 && given->n % vector_size<T> == 0;
    if (nn_prepare(stream, given, &call))
        return -1;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        vectors = vectors && is_aligned(given->operands[k], call.half ? 8 : 16);
    bool alone = call.n <= ROWS_SHORT ||
                 (call.inner > 1 && (call.rows >= ROWS_MANY || call.n <= 256));
    /* Each form is a kernel of its own, so doubles, which are rare, have one. */
    constexpr bool rare = sizeof(T) > 4;
    constexpr int N = rare ? 1 : vector_size<T>, KEPT = 8, LONG_KEPT = 32;
    if constexpr (Op::passes == 0) {
        return nn_launch<Op, T, false, 0, 1>(stream, call, 1);
    } else {
        if constexpr (!rare)
            if (alone)
                return nn_launch<Op, T, false, 0, 1>(stream, call, 1);
        if constexpr (!rare && Op::passes > 1) {
            if (vectors && call.n <= BLOCK * KEPT)
                return nn_launch<Op, T, true, KEPT, N>(
                    stream, call, call.n <= 32 * KEPT ? 32 : BLOCK);
            if (vectors && call.n <= BLOCK * LONG_KEPT)
                return nn_launch<Op, T, true, LONG_KEPT, N>(stream, call, BLOCK);
        }
        int threads = call.n <= 512 ? 32 : BLOCK;
        if constexpr (!rare)
            if (vectors)
                return nn_launch<Op, T, true, 0, N>(stream, call, threads);
        return nn_launch<Op, T, true, 0, 1>(stream, call, threads);
    }
}

} // namespace

/* Defines the function of an operation by a `start` of its functor and type. */
#define NN_ENTRY(op, start)                                                            \
    int nn_##op(dt_stream stream, const dt_nn_call *call)                              \
    {                                                                                  \
        return call->dtype == DT_FLOAT64 ? start<nn::op, double>(stream, call)         \
                                         : start<nn::op, float>(stream, call);         \
    }

#endif
