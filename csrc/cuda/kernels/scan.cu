/* Running sums, products and extremes. A block goes along a row in tiles, in which
 * threads meet in shuffles and warps in shared memory. A long row is cut into parts
 * among blocks: first what each part amounts to, then what lies before each, then the
 * parts. The cut depends on sizes alone, so results are the same each time. */
#include "cuda/kernels/scan.h"

#include <math.h>
#include <type_traits>

#include "cuda/runtime/allocator.h"
#include "cuda/runtime/device.h"
#include "cuda/runtime/launch.h"
#include "cuda/kernels/layout.h"
#include "cuda/kernels/math.h"

#define ITEMS 4 /* elements of a thread in a tile */
#define TILE  (BLOCK * ITEMS)

/* --- what is carried along --- */

/* Elements are carried along as doubles or int64: a sum of float32 has room there, and
 * stays as exact as the CPU's, and one kernel serves both float types. `single`: those
 * in memory are float32. */
template <typename T>
static __device__ __forceinline__ T element_at(const void *x, int64_t i, bool single)
{
    if constexpr (std::is_same_v<T, double>)
        if (single)
            return (T)((const float *)x)[i];
    return ((const T *)x)[i];
}
template <typename T>
static __device__ __forceinline__ void put_element(void *out, int64_t i, T value,
                                                   bool single)
{
    if constexpr (std::is_same_v<T, double>)
        if (single) {
            ((float *)out)[i] = (float)value;
            return;
        }
    ((T *)out)[i] = value;
}

template <typename T>
static __device__ __forceinline__ T value_from(T value, int delta)
{
    return __shfl_up_sync(0xffffffffu, value, (unsigned)delta);
}
static __device__ __forceinline__ int64_t value_from(int64_t value, int delta)
{
    return (int64_t)__shfl_up_sync(0xffffffffu, (long long)value, (unsigned)delta);
}

template <typename E>
struct Sum {
    typedef E T;
    typedef E State;
    static __device__ __forceinline__ State none() { return 0; }
    static __device__ __forceinline__ State of(T x, int64_t, bool) { return x; }
    static __device__ __forceinline__ State join(State a, State b) { return a + b; }
    static __device__ __forceinline__ State from(State s, int d)
    {
        return value_from(s, d);
    }
    static __device__ __forceinline__ T value(State s, bool) { return s; }
    static __device__ __forceinline__ int64_t place(State) { return 0; }
};
template <typename E>
struct Product : Sum<E> {
    typedef typename Sum<E>::State State;
    static __device__ __forceinline__ State none() { return 1; }
    static __device__ __forceinline__ State join(State a, State b) { return a * b; }
};
template <typename E>
struct LogSumExp : Sum<E> {
    typedef typename Sum<E>::State State;
    static __device__ __forceinline__ State none() { return -(State)INFINITY; }
    LONG State join(State a, State b)
    {
        State high = a > b ? a : b, low = a > b ? b : a;
        if (a != a || b != b)
            return a + b;
        return high == low && high - high != State(0)
                   ? high
                   : high + op_log1p(op_exp(low - high));
    }
};

/* The later of two equal extremes; a NaN is greater and less than all. The least of
 * numbers is the greatest of what mirrors them: negatives, or of integers their
 * complements, which have no overflow. */
template <typename T>
struct Found {
    T value;
    int64_t place; /* -1: nothing found yet */
};
template <typename E>
struct Extreme {
    typedef E T;
    typedef Found<T> State;
    static __device__ __forceinline__ State none() { return {T(0), -1}; }
    static __device__ __forceinline__ T mirror(T x)
    {
        if constexpr (std::is_integral_v<T>)
            return ~x;
        else
            return -x;
    }
    static __device__ __forceinline__ State of(T x, int64_t at, bool least)
    {
        return {least ? mirror(x) : x, at};
    }
    LONG State join(State a, State b)
    {
        if (a.place < 0 || b.place < 0)
            return b.place < 0 ? a : b;
        bool beats = b.value != b.value || (a.value == a.value && b.value >= a.value);
        return beats ? b : a;
    }
    static __device__ __forceinline__ State from(const State &s, int d)
    {
        return {value_from(s.value, d), value_from(s.place, d)};
    }
    static __device__ __forceinline__ T value(const State &s, bool least)
    {
        return least ? mirror(s.value) : s.value;
    }
    static __device__ __forceinline__ int64_t place(const State &s) { return s.place; }
};

/* --- kernels --- */

typedef struct Rows {
    int64_t rows, n, inner;
    int64_t parts, part; /* of a row; elements of a part */
    LongDivider by_inner;
    bool backward;
    bool least;  /* of extremes: the least */
    bool single; /* elements are float32 */
} Rows;
NO_POINTERS(Rows)

/* Where element i of a row is, in the order of the scan, and its number. */
static __device__ __forceinline__ int64_t number_of(const Rows &r, int64_t i)
{
    return r.backward ? r.n - 1 - i : i;
}
static __device__ __forceinline__ int64_t start_of(const Rows &r, int64_t row)
{
    int64_t outer = divide(row, r.by_inner);
    return outer * r.n * r.inner + (row - outer * r.inner);
}

/* What the threads before this one have together (with the first `lead`), and, in
 * *total, all of them. */
template <class Op>
static __device__ __forceinline__ typename Op::State
before(typename Op::State mine, const typename Op::State &lead,
       typename Op::State *total)
{
    typedef typename Op::State State;
    __shared__ __align__(16) unsigned char bytes[BLOCK / 32 * sizeof(State)];
    State *warps = (State *)bytes;
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    ROLLED
    for (int delta = 1; delta < 32; delta *= 2) {
        State left = Op::from(mine, delta);
        if (lane >= delta)
            mine = Op::join(left, mine);
    }
    State left = Op::from(mine, 1);
    __syncthreads(); /* the last tile's sums have been read */
    if (lane == 31)
        warps[warp] = mine;
    __syncthreads();
    State sum = lead;
    ROLLED
    for (int w = 0; w < warp; w++)
        sum = Op::join(sum, warps[w]);
    State all = sum;
    ROLLED
    for (int w = warp; w < BLOCK / 32; w++)
        all = Op::join(all, warps[w]);
    *total = all;
    return lane ? Op::join(sum, left) : sum;
}

/* One block: part p of a row. totals: writes only what the part amounts to, into
 * carries; else starts from what carries has for it (NULL: from nothing). */
template <class Op>
__global__ void scan_kernel(void *out, int64_t *index, const void *x,
                            typename Op::State *carries, bool totals,
                            GRID_CONSTANT(Rows) r)
{
    typedef typename Op::State State;
    typedef typename Op::T T;
    unsigned row = blockIdx.x / (unsigned)r.parts;
    int64_t part = blockIdx.x - row * (unsigned)r.parts;
    int64_t first = part * r.part, last = first + r.part < r.n ? first + r.part : r.n;
    int64_t start = start_of(r, row);
    State carry =
        !totals && carries ? carries[(int64_t)row * r.parts + part] : Op::none();
    for (int64_t tile = first; tile < last; tile += TILE) {
        State mine[ITEMS], all;
        int64_t at = tile + (int64_t)threadIdx.x * ITEMS;
        UNROLL
        for (int k = 0; k < ITEMS; k++) {
            int64_t number = number_of(r, at + k);
            mine[k] = at + k < last
                          ? Op::of(element_at<T>(x, start + number * r.inner, r.single),
                                   number, r.least)
                          : Op::none();
            if (k)
                mine[k] = Op::join(mine[k - 1], mine[k]);
        }
        State lead = before<Op>(mine[ITEMS - 1], carry, &all);
        if (!totals) {
            UNROLL
            for (int k = 0; k < ITEMS; k++) {
                if (at + k >= last)
                    break;
                int64_t to = start + number_of(r, at + k) * r.inner;
                State here = Op::join(lead, mine[k]);
                put_element<T>(out, to, Op::value(here, r.least), r.single);
                if (index)
                    index[to] = Op::place(here);
            }
        }
        carry = all;
    }
    if (totals && threadIdx.x == 0)
        carries[(int64_t)row * r.parts + part] = carry;
}

/* One thread a row: from the amounts of its parts to what lies before each. */
template <class Op>
__global__ void carry_kernel(typename Op::State *carries, GRID_CONSTANT(Rows) r)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= r.rows)
        return;
    typename Op::State *c = carries + row * r.parts, sum = Op::none();
    ROLLED
    for (int64_t p = 0; p < r.parts; p++) {
        typename Op::State part = c[p];
        c[p] = sum;
        sum = Op::join(sum, part);
    }
}

/* One thread a row: neighbours read neighbouring columns. */
template <class Op>
__global__ void scan_columns_kernel(void *out, int64_t *index, const void *x,
                                    GRID_CONSTANT(Rows) r)
{
    int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= r.rows)
        return;
    int64_t start = start_of(r, row);
    typename Op::State carry = Op::none();
    ROLLED
    for (int64_t i = 0; i < r.n; i++) {
        int64_t number = number_of(r, i), at = start + number * r.inner;
        carry = Op::join(carry, Op::of(element_at<typename Op::T>(x, at, r.single),
                                       number, r.least));
        put_element<typename Op::T>(out, at, Op::value(carry, r.least), r.single);
        if (index)
            index[at] = Op::place(carry);
    }
}

/* --- launches --- */

/* Blocks that fill a large card, and as many parts as one thread may go through. */
static const int64_t kBlocks = 1024;
static const int64_t kParts = 512;

template <class Op>
static int start(dt_queue queue, const dt_scan *s, typename Op::State *carries,
                 const Rows &r, bool totals)
{
    cudaStream_t stream = (cudaStream_t)queue.stream;
    CUDA_TRY("starting a scan",
             LAUNCH_BARRIERS((scan_kernel<Op>), r.rows * r.parts, BLOCK, 0, stream,
                             s->out, s->index, s->x, carries, totals, r));
    if (totals)
        CUDA_TRY("starting a scan", LAUNCH((carry_kernel<Op>), blocks_for(r.rows),
                                           BLOCK, 0, stream, carries, r));
    return 0;
}

template <class Op>
static int run(dt_queue queue, const dt_scan *s, bool least = false)
{
    typedef typename Op::State State;
    Rows r = {s->outer * s->inner,
              s->n,
              s->inner,
              1,
              s->n,
              long_divider_for(s->inner),
              s->backward,
              least,
              s->dtype == DT_FLOAT32};
    if ((s->inner >= 32 && r.rows >= 1024) || s->n <= 16) {
        CUDA_TRY("starting a scan",
                 LAUNCH((scan_columns_kernel<Op>), blocks_for(r.rows), BLOCK, 0,
                        (cudaStream_t)queue.stream, s->out, s->index, s->x, r));
        return 0;
    }
    if (r.rows < kBlocks) {
        int64_t wanted = kBlocks / r.rows, most = s->n / (4 * TILE);
        wanted = wanted < kParts ? wanted : kParts;
        r.parts = wanted < most ? wanted : most;
        r.parts = r.parts > 1 ? r.parts : 1;
        r.part = (s->n + r.parts - 1) / r.parts;
        r.part = (r.part + TILE - 1) / TILE * TILE;
        r.parts = (s->n + r.part - 1) / r.part;
    }
    if (r.parts == 1)
        return start<Op>(queue, s, nullptr, r, false);
    void *carries = nullptr;
    size_t bytes = (size_t)(r.rows * r.parts) * sizeof(State);
    if (allocator_allocate(queue, bytes, &carries))
        return -1;
    int status = start<Op>(queue, s, (State *)carries, r, true);
    if (!status)
        status = start<Op>(queue, s, (State *)carries, r, false);
    allocator_release(queue.device, carries, bytes);
    return status;
}

template <typename T>
static int choose(dt_queue queue, dt_scan_op op, const dt_scan *s)
{
    switch (op) {
    case DT_SCAN_SUM:
        return run<Sum<T>>(queue, s);
    case DT_SCAN_PRODUCT:
        return run<Product<T>>(queue, s);
    case DT_SCAN_MAX:
        return run<Extreme<T>>(queue, s);
    case DT_SCAN_MIN:
        return run<Extreme<T>>(queue, s, true);
    default:
        if constexpr (T(0.5) != T(0))
            return run<LogSumExp<T>>(queue, s);
        return dt_fail(DT_ERROR_RUNTIME, "logcumsumexp: not defined for integers");
    }
}

int scan_run(dt_queue queue, dt_scan_op op, const dt_scan *s)
{
    if (device_use(queue.device))
        return -1;
    return s->dtype == DT_INT64 ? choose<int64_t>(queue, op, s)
                                : choose<double>(queue, op, s);
}
