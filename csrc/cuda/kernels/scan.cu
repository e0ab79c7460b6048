/* Running sums, products and extremes. A block goes along a row in tiles, in which
 * threads meet in shuffles and warps in shared memory. A long row is cut into parts
 * among blocks: first what each part amounts to, then what lies before each, then the
 * parts. The cut depends on sizes alone, so results are the same each time. */

#include <math.h>
#include <type_traits>

#include "cuda/kernels/math.h"
#include "cuda/kernels/warp.h"

#include "ops/scan.h"

namespace {

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
static __device__ __forceinline__ T from_lane_below(const T &mine, int delta)
{
    return from_lane(mine, [&](auto word) {
        return __shfl_up_sync(0xffffffffu, word, (unsigned)delta);
    });
}

/* --- kernels --- */

struct Rows {
    int64_t rows, n, inner;
    int64_t parts, part; /* of a row; elements of a part */
    LongDivider by_inner;
    bool backward;
    bool min;    /* of Max */
    bool single; /* elements are float32 */
};
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
        State left = from_lane_below(mine, delta);
        if (lane >= delta)
            mine = Op::combine(left, mine);
    }
    State left = from_lane_below(mine, 1);
    __syncthreads(); /* the last tile's sums have been read */
    if (lane == 31)
        warps[warp] = mine;
    __syncthreads();
    State sum = lead;
    ROLLED
    for (int w = 0; w < warp; w++)
        sum = Op::combine(sum, warps[w]);
    State all = sum;
    ROLLED
    for (int w = warp; w < BLOCK / 32; w++)
        all = Op::combine(all, warps[w]);
    *total = all;
    return lane ? Op::combine(sum, left) : sum;
}

/* One block: part p of a row. totals: writes only what the part amounts to, into
 * carries; else starts from what carries has for it (NULL: from nothing). */
template <class Op>
__global__ void scan_kernel(void *out, int64_t *index, const void *x,
                            typename Op::State *carries, bool totals,
                            GRID_CONSTANT(Rows) r)
{
    typedef typename Op::State State;
    typedef typename Op::Value T;
    unsigned row = blockIdx.x / (unsigned)r.parts;
    int64_t part = blockIdx.x - row * (unsigned)r.parts;
    int64_t first = part * r.part, last = first + r.part < r.n ? first + r.part : r.n;
    int64_t start = start_of(r, row);
    State carry =
        !totals && carries ? carries[(int64_t)row * r.parts + part] : Op::identity();
    for (int64_t tile = first; tile < last; tile += TILE) {
        State mine[ITEMS], all;
        int64_t at = tile + (int64_t)threadIdx.x * ITEMS;
        UNROLL
        for (int k = 0; k < ITEMS; k++) {
            int64_t number = number_of(r, at + k);
            mine[k] = at + k < last
                          ? Op::of(element_at<T>(x, start + number * r.inner, r.single),
                                   number, r.min)
                          : Op::identity();
            if (k)
                mine[k] = Op::combine(mine[k - 1], mine[k]);
        }
        State lead = before<Op>(mine[ITEMS - 1], carry, &all);
        if (!totals) {
            UNROLL
            for (int k = 0; k < ITEMS; k++) {
                if (at + k >= last)
                    break;
                int64_t to = start + number_of(r, at + k) * r.inner;
                State here = Op::combine(lead, mine[k]);
                put_element<T>(out, to, Op::value(here, r.min), r.single);
                if (index)
                    index[to] = Op::index(here);
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
    int64_t row = thread_number();
    if (row >= r.rows)
        return;
    typename Op::State *c = carries + row * r.parts, sum = Op::identity();
    ROLLED
    for (int64_t p = 0; p < r.parts; p++) {
        typename Op::State part = c[p];
        c[p] = sum;
        sum = Op::combine(sum, part);
    }
}

/* One thread a row: neighbours read neighbouring columns. */
template <class Op>
__global__ void scan_columns_kernel(void *out, int64_t *index, const void *x,
                                    GRID_CONSTANT(Rows) r)
{
    int64_t row = thread_number();
    if (row >= r.rows)
        return;
    int64_t start = start_of(r, row);
    typename Op::State carry = Op::identity();
    ROLLED
    for (int64_t i = 0; i < r.n; i++) {
        int64_t number = number_of(r, i), at = start + number * r.inner;
        carry =
            Op::combine(carry, Op::of(element_at<typename Op::Value>(x, at, r.single),
                                      number, r.min));
        put_element<typename Op::Value>(out, at, Op::value(carry, r.min), r.single);
        if (index)
            index[at] = Op::index(carry);
    }
}

/* --- launches --- */

/* Blocks that fill a large GPU, and as many parts as one thread may go through. */
static const int64_t kBlocks = 1024;
static const int64_t kParts = 512;

template <class Op>
static int start(dt_stream stream, const dt_scan *s, typename Op::State *carries,
                 const Rows &r, bool totals)
{
    return START_BARRIERS("starting a scan", stream, (scan_kernel<Op>),
                          r.rows * r.parts, s->out, s->index, s->x, carries, totals, r);
}

template <class Op>
static int run(dt_stream stream, const dt_scan *s, bool min = false)
{
    typedef typename Op::State State;
    Rows r = {s->outer * s->inner,
              s->n,
              s->inner,
              1,
              s->n,
              long_divider_for(s->inner),
              s->backward,
              min,
              s->dtype == DT_FLOAT32};
    if ((s->inner >= 32 && r.rows >= 1024) || s->n <= 16)
        return START("starting a scan", stream, (scan_columns_kernel<Op>), r.rows,
                     s->out, s->index, s->x, r);
    if (r.rows < kBlocks) {
        int64_t wanted = kBlocks / r.rows, max = s->n / (4 * TILE);
        wanted = wanted < kParts ? wanted : kParts;
        r.parts = wanted < max ? wanted : max;
        r.parts = r.parts > 1 ? r.parts : 1;
        r.part = (s->n + r.parts - 1) / r.parts;
        r.part = (r.part + TILE - 1) / TILE * TILE;
        r.parts = (s->n + r.part - 1) / r.part;
    }
    if (r.parts == 1)
        return start<Op>(stream, s, nullptr, r, false);
    Scratch scratch(stream, (size_t)(r.rows * r.parts) * sizeof(State));
    State *carries = (State *)scratch.data;
    if (!carries || start<Op>(stream, s, carries, r, true) ||
        START("starting a scan", stream, (carry_kernel<Op>), r.rows, carries, r))
        return -1;
    return start<Op>(stream, s, carries, r, false);
}

template <typename T>
static int choose(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    switch (op) {
    case DT_SCAN_SUM:
        return run<scan::Sum<T>>(stream, s);
    case DT_SCAN_PRODUCT:
        return run<scan::Product<T>>(stream, s);
    case DT_SCAN_MAX:
        return run<scan::Max<T>>(stream, s);
    case DT_SCAN_MIN:
        return run<scan::Max<T>>(stream, s, true);
    default:
        if constexpr (T(0.5) != T(0))
            return run<scan::LogSumExp<T>>(stream, s);
        return dt_fail(DT_ERROR_RUNTIME, "logcumsumexp: not defined for integers");
    }
}

} // namespace

int dt_cuda_scan(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    return s->dtype == DT_INT64 ? choose<int64_t>(stream, op, s)
                                : choose<double>(stream, op, s);
}
