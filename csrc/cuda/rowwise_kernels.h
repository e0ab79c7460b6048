/* What the kernels of ops/rowwise.def share: who has which row, how its elements are
 * read and written, and how the threads of a row meet.
 *
 * A row is one thread's (short rows, and rows across memory, whose neighbours then lie
 * next to each other), a warp's or a block's. The latter two read up to 16 bytes at a
 * time where pointers and sizes allow it, and keep the elements of a row in registers
 * where they have room, so that memory is read once. An operation is a struct with
 *
 *     template <class Row> static __device__ void run(const Row &row);
 *
 * which says once what is done to a row, whoever has it. */
#ifndef DT_CUDA_ROWWISE_KERNELS_H
#define DT_CUDA_ROWWISE_KERNELS_H

#include "cuda/allocator.h"
#include "cuda/check.h"
#include "cuda/layout.h"
#include "cuda/math.h"
#include "cuda/report.h"
#include "cuda/rowwise.h"

struct RowCall {
    const char *what; /* the host's, for the report */
    void *operands[DT_ROW_OPERANDS];
    Report *report; /* or NULL */
    int64_t rows, n, inner, ignored;
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

/* What all threads of a row have together; every thread gets the same. */
template <class F, int THREADS, typename T>
static __device__ __forceinline__ T row_meet(T value)
{
    if constexpr (THREADS > 1)
        for (int lanes = 16; lanes; lanes /= 2)
            value = F::of(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    if constexpr (THREADS > 32) {
        __shared__ T warps[THREADS / 32];
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = warps[0];
        ROLLED
        for (int w = 1; w < THREADS / 32; w++)
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
LONG int64_t row_start(int64_t row, int64_t n, int64_t inner)
{
    int64_t slab = row / inner;
    return slab * n * inner + (row - slab * inner);
}

template <typename Type, int THREADS, int KEPT, int N>
struct RowOf {
    typedef Type T;
    typedef RowElements<T, KEPT, N> Elements;
    const RowCall &call;
    int64_t number, n, base, stride, first;

    __device__ __forceinline__ RowOf(const RowCall &given, int64_t row)
        : call(given), number(row), n(given.n), base(row * given.n), stride(1),
          first(THREADS > 1 ? (int64_t)(threadIdx.x % THREADS) * N : 0)
    {
        if (given.inner > 1) {
            base = row_start(row, given.n, given.inner);
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
    __device__ __forceinline__ bool leads() const
    {
        return THREADS == 1 || threadIdx.x % THREADS == 0;
    }
    __device__ __forceinline__ T at(int k, int64_t i) const
    {
        return ((const T *)call.operands[k])[base + i * stride];
    }

    __device__ __forceinline__ Elements elements(const T *data, int64_t step) const
    {
        Elements e;
        e.data = data;
        e.stride = step;
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * THREADS * N;
                if (i < n)
                    e.kept[s] = e.load(i);
            }
        }
        return e;
    }
    /* Operand k, n elements a row. */
    __device__ __forceinline__ Elements read(int k) const
    {
        return elements((const T *)call.operands[k] + base, stride);
    }
    /* Operand k, the same n elements for every row. */
    __device__ __forceinline__ Elements shared(int k) const
    {
        return elements((const T *)call.operands[k], 1);
    }

    /* f(i, elements of each...) for this thread's i. */
    template <class F, class... E>
    __device__ __forceinline__ void each(F f, const E &...e) const
    {
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * THREADS * N;
                if (i < n)
                    visit(f, i, e.pack(s, i)...);
            }
        } else {
            ROLLED
            for (int64_t i = first; i < n; i += (int64_t)THREADS * N)
                visit(f, i, e.pack(0, i)...);
        }
    }
    template <class F, class... P>
    static __device__ __forceinline__ void visit(F f, int64_t i, const P &...packs)
    {
        UNROLL
        for (int k = 0; k < N; k++)
            f(i + k, packs.v[k]...);
    }
    /* Operand k becomes f(i, elements of each...). */
    template <class F, class... E>
    __device__ __forceinline__ void write(int k, F f, const E &...e) const
    {
        T *out = (T *)call.operands[k] + base;
        if constexpr (KEPT > 0) {
            UNROLL
            for (int s = 0; s < KEPT / N; s++) {
                int64_t i = first + (int64_t)s * THREADS * N;
                if (i < n)
                    put(out, f, i, e.pack(s, i)...);
            }
        } else {
            ROLLED
            for (int64_t i = first; i < n; i += (int64_t)THREADS * N)
                put(out, f, i, e.pack(0, i)...);
        }
    }
    template <class F, class... P>
    __device__ __forceinline__ void put(T *out, F f, int64_t i, const P &...packs) const
    {
        Pack<T, N> made;
        UNROLL
        for (int k = 0; k < N; k++)
            made.v[k] = f(i + k, packs.v[k]...);
        if constexpr (N > 1)
            *(Pack<T, N> *)(out + i) = made;
        else
            out[i * stride] = made.v[0];
    }

    /* The sum of f(i, elements of each...) over the row. */
    template <class F, class... E>
    __device__ __forceinline__ T sum(F f, const E &...e) const
    {
        RowSum<T> mine;
        each([&](int64_t i, auto... values) { mine.add(f(i, values...)); }, e...);
        return row_meet<RowPlus, THREADS>(mine.value());
    }
    /* The greatest element; a NaN is none. */
    __device__ __forceinline__ T most(const Elements &x) const
    {
        T mine = -(T)INFINITY;
        each([&](int64_t, T value) { mine = RowMost::of(mine, value); }, x);
        return row_meet<RowMost, THREADS>(mine);
    }
    __device__ __forceinline__ int64_t index(int k) const
    {
        return *one<const int64_t>(k);
    }
};

template <class Op, typename T, int THREADS, int KEPT, int N>
__global__ void rowwise_kernel(GRID_CONSTANT(RowCall) call)
{
    int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / THREADS;
    /* The threads of a row leave together. */
    if (row < call.rows)
        Op::run(RowOf<T, THREADS, KEPT, N>(call, row));
}

template <class Op, typename T, int THREADS, int KEPT, int N>
static int rowwise_launch(dt_queue queue, const RowCall &call)
{
    int64_t each = BLOCK / THREADS, blocks = (call.rows + each - 1) / each;
    cudaStream_t stream = (cudaStream_t)queue.stream;
    cudaError_t error;
    if constexpr (THREADS == 1)
        error =
            LAUNCH((rowwise_kernel<Op, T, 1, KEPT, N>), blocks, BLOCK, 0, stream, call);
    else
        error = LAUNCH_BARRIERS((rowwise_kernel<Op, T, THREADS, KEPT, N>), blocks,
                                BLOCK, 0, stream, call);
    CUDA_TRY("starting an operation on rows", error);
    return 0;
}

/* Rows that are read whole packs at a time, and stay in registers where they fit. */
template <class Op, typename T>
static int rowwise_packs(dt_queue queue, const RowCall &call)
{
    constexpr int N = pack_size<T>, KEPT = 8;
    if (call.n <= 32 * KEPT)
        return rowwise_launch<Op, T, 32, KEPT, N>(queue, call);
    if (call.n <= BLOCK * KEPT)
        return rowwise_launch<Op, T, BLOCK, KEPT, N>(queue, call);
    return rowwise_launch<Op, T, BLOCK, 0, N>(queue, call);
}

/* Rows from which on a card is busy with one thread for each. */
#define ROWS_MANY  16384
#define ROWS_SHORT 16

/* The call as kernels take it. Where they report, device_use has been called. */
static inline int rowwise_call(dt_queue queue, const dt_rowwise *given, bool reports,
                               RowCall *out)
{
    out->what = given->what;
    out->report = nullptr;
    for (int k = 0; k < DT_ROW_OPERANDS; k++)
        out->operands[k] = given->operands[k];
    out->rows = given->outer * given->inner;
    out->n = given->n;
    out->inner = given->inner;
    out->ignored = given->ignored;
    out->parameter = given->parameter;
    out->factor = given->factor;
    return reports && !(out->report = report_of(queue.device)) ? -1 : 0;
}

/* Starts the kernel of Op. */
template <class Op, typename T>
static int rowwise_start(dt_queue queue, const dt_rowwise *given, bool reports)
{
    RowCall call;
    bool packs = given->inner == 1 && given->n % pack_size<T> == 0;
    for (int k = 0; k < DT_ROW_OPERANDS; k++)
        packs = packs && is_aligned(given->operands[k], 16);
    if (rowwise_call(queue, given, reports, &call))
        return -1;
    if (call.n <= ROWS_SHORT || (call.inner > 1 && call.rows >= ROWS_MANY) ||
        (call.inner > 1 && call.n <= 256))
        return rowwise_launch<Op, T, 1, 0, 1>(queue, call);
    /* Each form is a kernel of its own, so doubles, which are rare, have fewer. */
    if constexpr (sizeof(T) == 4) {
        if (packs)
            return rowwise_packs<Op, T>(queue, call);
        if (call.n <= 512)
            return rowwise_launch<Op, T, 32, 0, 1>(queue, call);
    }
    return rowwise_launch<Op, T, BLOCK, 0, 1>(queue, call);
}

/* The two functions of cuda/rowwise.h for an operation: of T, they return what the last
 * argument says. */
#define ROWWISE_FUNCTION(name, type, ...)                                              \
    int rowwise_##name(dt_queue queue, const dt_rowwise *call)                         \
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
