/* What the kernels of ops/nn.def share: who has which row, how its elements are
 * read and written, and how the threads of a row meet.
 *
 * A row is one thread's (short rows, and rows across memory, whose neighbours then lie
 * next to each other) or a team's: a warp or a block. Teams read up to 16 bytes at a
 * time where pointers and sizes allow it, and keep the elements of a row that they need
 * again in registers where they have room, so that memory is read once. An operation is
 * a struct with
 *
 *     static constexpr int reads; // how often it goes along a row: 0, 1, 2 or more
 *     template <class Row> static __device__ void run(const Row &row);
 *
 * which says once what is done to a row, whoever has it. */
#ifndef DT_CUDA_KERNELS_NN_KERNELS_H
#define DT_CUDA_KERNELS_NN_KERNELS_H

#include "cuda/runtime/allocator.h"
#include "cuda/runtime/check.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/math.h"
#include "cuda/runtime/report.h"
#include "cuda/kernels/nn.h"

struct RowCall {
    const char *what; /* the host's, for the report */
    void *operands[DT_ROW_OPERANDS];
    Report *report; /* or NULL */
    int64_t rows, n, inner, ignored;
    LongDivider by_n, by_inner;
    int threads; /* of a row: 1, 32 or BLOCK */
    double parameter, factor;
};
POINTERS_OF(RowCall, for (int k = 0; k < DT_ROW_OPERANDS; k++) f(s.operands[k]);
            f(s.report);)

/* In runs, so that a long sum is not one long chain of roundings. */
template <typename T>
struct RowSum {
    T total, run;
    int length;
    __device__ __forceinline__ RowSum() : total(0), run(0), length(0) {}
    __device__ __forceinline__ void add(T value)
    {
        run += value;
        if (++length == 32) {
            total += run;
            run = 0;
            length = 0;
        }
    }
    __device__ __forceinline__ T value() const { return total + run; }
};

struct RowPlus {
    template <typename T>
    static __device__ __forceinline__ T of(T a, T b)
    {
        return a + b;
    }
};
struct RowMost {
    template <typename T>
    static __device__ __forceinline__ T of(T a, T b)
    {
        return b > a ? b : a;
    }
};

/* What all threads of a team have together; every one gets the same. */
template <class F, typename T>
static __device__ __forceinline__ T team_meet(T value, int threads)
{
    ROLLED
    for (int lanes = 16; lanes; lanes /= 2)
        value = F::of(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    if (threads > 32) {
        __shared__ T warps[BLOCK / 32];
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = warps[0];
        ROLLED
        for (int w = 1; w < BLOCK / 32; w++)
            value = F::of(value, warps[w]);
        __syncthreads(); /* before the next meeting writes there */
    }
    return value;
}

/* A thread's elements of an operand: those numbered first, first + step, ... in packs
 * of N. KEPT of them are in registers; 0: they are read each time. */
template <typename T, int KEPT, int N>
struct RowElements {
    const T *data;
    int64_t stride;
    Pack<T, N> kept[KEPT ? KEPT / N : 1];

    __device__ __forceinline__ Pack<T, N> load(int64_t i) const
    {
        if constexpr (N > 1) {
            return *(const Pack<T, N> *)(data + i);
        } else {
            Pack<T, N> one;
            one.v[0] = data[i * stride];
            return one;
        }
    }
    __device__ __forceinline__ Pack<T, N> pack(int slot, int64_t i) const
    {
        if constexpr (KEPT > 0)
            return kept[slot];
        else
            return load(i);
    }
};

/* Where a row across memory starts. */
static __device__ __forceinline__ int64_t row_start(const RowCall &call, int64_t row)
{
    int64_t slab = divide(row, call.by_inner);
    return slab * call.n * call.inner + (row - slab * call.inner);
}

template <typename Type, bool TEAM, int KEPT, int N>
struct RowOf {
    typedef Type T;
    typedef RowElements<T, KEPT, N> Elements;
    const RowCall &call;
    int64_t number, n, base, stride;
    int first, step; /* the thread's first pack, and how far it is to the next */

    __device__ __forceinline__ RowOf(const RowCall &given, int64_t row)
        : call(given), number(row), n(given.n), base(row * given.n), stride(1),
          first(TEAM ? (int)(threadIdx.x & (unsigned)(given.threads - 1)) * N : 0),
          step(TEAM ? given.threads * N : N)
    {
        if (given.inner > 1) {
            base = row_start(given, row);
            stride = given.inner;
        }
    }

    /* Operands of one element a row, or for all, by number. */
    template <typename E = T>
    __device__ __forceinline__ E *one(int k) const
    {
        return (E *)call.operands[k] + number;
    }
    template <typename E = T>
    __device__ __forceinline__ E *all(int k) const
    {
        return (E *)call.operands[k];
    }
    __device__ __forceinline__ bool has(int k) const
    {
        return call.operands[k] != nullptr;
    }
    /* The thread that writes what there is one of. */
    __device__ __forceinline__ bool leads() const { return first == 0; }
    __device__ __forceinline__ T at(int k, int64_t i) const
    {
        return ((const T *)call.operands[k])[base + i * stride];
    }

    /* Operand k, n elements a row. */
    __device__ __forceinline__ Elements read(int k) const
    {
        Elements e;
        e.data = (const T *)call.operands[k] + base;
        e.stride = stride;
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * step;
                if (i < n)
                    e.kept[s] = e.load(i);
            }
        }
        return e;
    }
    /* f(i, pack of each...) for this thread's packs, which start at element i. */
    template <class F, class... E>
    __device__ __forceinline__ void packs(F f, const E &...e) const
    {
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * step;
                if (i < n)
                    f(i, e.pack(s, i)...);
            }
        } else {
            ROLLED
            for (int64_t i = first; i < n; i += step)
                f(i, e.pack(0, i)...);
        }
    }
    /* Operand k becomes f(i, elements of each...). */
    template <class F, class... E>
    __device__ __forceinline__ void write(int k, F f, const E &...e) const
    {
        T *out = (T *)call.operands[k] + base;
        packs(
            [&](int64_t i, const auto &...pack) {
                Pack<T, N> made;
                UNROLL
                for (int j = 0; j < N; j++)
                    made.v[j] = f(i + j, pack.v[j]...);
                if constexpr (N > 1)
                    *(Pack<T, N> *)(out + i) = made;
                else
                    out[i * stride] = made.v[0];
            },
            e...);
    }
    /* The sum of f(i, elements of each...) over the row. */
    template <class F, class... E>
    __device__ __forceinline__ T sum(F f, const E &...e) const
    {
        RowSum<T> mine;
        packs(
            [&](int64_t i, const auto &...pack) {
                T part = f(i, pack.v[0]...);
                UNROLL
                for (int j = 1; j < N; j++)
                    part += f(i + j, pack.v[j]...);
                mine.add(part);
            },
            e...);
        return meet<RowPlus>(mine.value());
    }
    /* The greatest element; a NaN is none. */
    __device__ __forceinline__ T most(const Elements &x) const
    {
        T mine = -(T)INFINITY;
        packs(
            [&](int64_t, const auto &pack) {
                UNROLL
                for (int j = 0; j < N; j++)
                    mine = RowMost::of(mine, pack.v[j]);
            },
            x);
        return meet<RowMost>(mine);
    }
    template <class F>
    __device__ __forceinline__ T meet(T value) const
    {
        if constexpr (TEAM)
            return team_meet<F>(value, call.threads);
        else
            return value;
    }
    __device__ __forceinline__ int64_t index(int k) const
    {
        return *one<const int64_t>(k);
    }
};

template <class Op, typename T, bool TEAM, int KEPT, int N>
__global__ void rowwise_kernel(GRID_CONSTANT(RowCall) call)
{
    int64_t row = blockIdx.x;
    if (!TEAM)
        row = row * BLOCK + threadIdx.x;
    else if (call.threads == 32)
        row = row * (BLOCK / 32) + threadIdx.x / 32;
    /* The threads of a row leave together. */
    if (row < call.rows)
        Op::run(RowOf<T, TEAM, KEPT, N>(call, row));
}

template <class Op, typename T, bool TEAM, int KEPT, int N>
static int rowwise_launch(dt_queue queue, RowCall &call, int threads)
{
    int64_t each = BLOCK / threads, blocks = (call.rows + each - 1) / each;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    cudaError_t error;
    call.threads = threads;
    if constexpr (TEAM)
        error = LAUNCH_BARRIERS((rowwise_kernel<Op, T, true, KEPT, N>), blocks, BLOCK,
                                0, stream, call);
    else
        error = LAUNCH((rowwise_kernel<Op, T, false, KEPT, N>), blocks, BLOCK, 0,
                       stream, call);
    CUDA_TRY("starting an operation on rows", error);
    return 0;
}

/* Rows from which on a card is busy with one thread for each. */
#define ROWS_MANY  16384
#define ROWS_SHORT 16

/* The call as kernels take it. Where they report, device_use has been called. */
static inline int rowwise_call(dt_queue queue, const dt_nn_call *given, bool reports,
                               RowCall *out)
{
    out->what = given->what;
    out->report = nullptr;
    for (int k = 0; k < DT_ROW_OPERANDS; k++)
        out->operands[k] = given->operands[k];
    out->rows = given->outer * given->inner;
    out->n = given->n;
    out->inner = given->inner;
    out->by_n = long_divider_for(given->n);
    out->by_inner = long_divider_for(given->inner);
    out->ignored = given->ignored;
    out->parameter = given->parameter;
    out->factor = given->factor;
    return reports && !(out->report = report_of(queue.device)) ? -1 : 0;
}

/* Starts the kernel of Op. */
template <class Op, typename T>
static int rowwise_start(dt_queue queue, const dt_nn_call *given, bool reports)
{
    RowCall call;
    bool packs = given->inner == 1 && given->n % pack_size<T> == 0;
    for (int k = 0; k < DT_ROW_OPERANDS; k++)
        packs = packs && is_aligned(given->operands[k], 16);
    if (rowwise_call(queue, given, reports, &call))
        return -1;
    bool alone = call.n <= ROWS_SHORT ||
                 (call.inner > 1 && (call.rows >= ROWS_MANY || call.n <= 256));
    /* Each form is a kernel of its own, so doubles, which are rare, have one. */
    constexpr bool rare = sizeof(T) > 4;
    constexpr int N = rare ? 1 : pack_size<T>, KEPT = 8;
    if constexpr (Op::reads == 0) {
        return rowwise_launch<Op, T, false, 0, 1>(queue, call, 1);
    } else {
        if constexpr (!rare)
            if (alone)
                return rowwise_launch<Op, T, false, 0, 1>(queue, call, 1);
        if constexpr (!rare && Op::reads > 1)
            if (packs && call.n <= BLOCK * KEPT)
                return rowwise_launch<Op, T, true, KEPT, N>(
                    queue, call, call.n <= 32 * KEPT ? 32 : BLOCK);
        int threads = call.n <= 512 ? 32 : BLOCK;
        if constexpr (!rare)
            if (packs)
                return rowwise_launch<Op, T, true, 0, N>(queue, call, threads);
        return rowwise_launch<Op, T, true, 0, 1>(queue, call, threads);
    }
}

/* The two functions of cuda/kernels/nn.h for an operation: of T, they return what the last
 * argument says. */
#define ROWWISE_FUNCTION(name, type, ...)                                              \
    int rowwise_##name(dt_queue queue, const dt_nn_call *call)                         \
    {                                                                                  \
        typedef type T;                                                                \
        return __VA_ARGS__;                                                            \
    }
#define ROWWISE_FUNCTIONS(name, ...)                                                   \
    ROWWISE_FUNCTION(name##_float32, float, __VA_ARGS__)                               \
    ROWWISE_FUNCTION(name##_float64, double, __VA_ARGS__)
#define ROWWISE_ENTRY(name, Op, reports)                                               \
    ROWWISE_FUNCTIONS(name, rowwise_start<Op, T>(queue, call, reports))

#endif
