/* Running sums, products and extremes. A block goes along a row in tiles, in which
 * threads meet in shuffles and warps in shared memory; the next tile is on its way
 * meanwhile. A long row is cut into parts among blocks: first what each part amounts to,
 * then the parts, each from what those before it amount to. The cut depends on sizes
 * alone, so results are the same each time. */

#include <math.h>
#include <type_traits>

#include "cuda/kernels/device_functions.h"
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

/* --- kernels --- */

struct Rows {
    int64_t rows, n, inner;
    int64_t parts, part; /* of a row; elements of a part */
    LongDivider by_inner;
    bool backward;
    bool min;    /* of Max */
    bool single; /* elements are float32 */
    bool packs;  /* a thread's elements of a tile lie where a vector may */
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

/* A thread's elements of a tile, as stored: float32 take the first words. */
typedef Vector<uint32_t, 4> Quad;
static_assert(ITEMS == 4, "a float32 is a word of a quad");
template <typename T>
struct Words {
    Quad quads[2];

    __device__ __forceinline__ T get(int k, bool single) const
    {
        uint64_t bits =
            (uint64_t)quads[k / 2].v[k % 2 * 2 + 1] << 32 | quads[k / 2].v[k % 2 * 2];
        T wide;
        __builtin_memcpy(&wide, &bits, sizeof wide);
        if constexpr (std::is_same_v<T, double>) {
            float narrow;
            __builtin_memcpy(&narrow, &quads[0].v[k], sizeof narrow);
            return single ? (T)narrow : wide;
        }
        return wide;
    }
};

/* The elements of a row from its number `at` on, below `last`; `from` is where the first
 * one is, and `step` leads to the next. */
template <typename T>
static __device__ __forceinline__ Words<T> words_at(const void *x, const Rows &r,
                                                    int64_t from, int64_t step,
                                                    int64_t at, int64_t last)
{
    Words<T> words = {};
    const uint32_t *single = (const uint32_t *)x + from;
    const uint64_t *wide = (const uint64_t *)x + from;
    if (r.packs && at + ITEMS <= last) {
        const Quad *quads = r.single ? (const Quad *)single : (const Quad *)wide;
        words.quads[0] = quads[0];
        if (!r.single)
            words.quads[1] = quads[1];
        return words;
    }
    UNROLL
    for (int k = 0; k < ITEMS; k++, single += step, wide += step) {
        if (at + k >= last)
            break;
        if (r.single) {
            words.quads[0].v[k] = *single;
            continue;
        }
        uint64_t bits = *wide;
        words.quads[k / 2].v[k % 2 * 2] = (uint32_t)bits;
        words.quads[k / 2].v[k % 2 * 2 + 1] = (uint32_t)(bits >> 32);
    }
    return words;
}
template <typename T>
static __device__ __forceinline__ void
put_elements(void *out, const Rows &r, int64_t from, int64_t step, int64_t at,
             int64_t last, const Vector<T, ITEMS> &values)
{
    if (r.packs && at + ITEMS <= last) {
        if (std::is_same_v<T, double> && r.single) {
            Vector<float, ITEMS> narrow;
            UNROLL
            for (int k = 0; k < ITEMS; k++)
                narrow.v[k] = (float)values.v[k];
            *(Vector<float, ITEMS> *)((float *)out + from) = narrow;
            return;
        }
        typedef Vector<T, 2> Pair;
        Pair *pairs = (Pair *)((T *)out + from);
        pairs[0] = {{values.v[0], values.v[1]}};
        pairs[1] = {{values.v[2], values.v[3]}};
        return;
    }
    UNROLL
    for (int k = 0; k < ITEMS; k++)
        if (at + k < last)
            put_element<T>(out, from + k * step, values.v[k], r.single);
}

/* One block: part p of a row. totals: writes only what the part amounts to, into
 * carries; else starts from what carries has for the parts before it. */
template <class Op>
__global__ void scan_kernel(void *out, int64_t *index, const void *x,
                            typename Op::State *carries, bool totals,
                            GRID_CONSTANT(Rows) r)
{
    typedef typename Op::State State;
    typedef typename Op::Value T;
    struct __align__(16) Bytes { /* whose constructors do not run */
        unsigned char of[BLOCK / 32 * sizeof(State)];
    };
    STATIC_SHARED(Bytes, warps);
    unsigned row = blockIdx.x / (unsigned)r.parts;
    int64_t part = blockIdx.x - row * (unsigned)r.parts;
    int64_t first = part * r.part, last = first + r.part < r.n ? first + r.part : r.n;
    int64_t start = start_of(r, row), step = r.backward ? -r.inner : r.inner;
    int own = (int)threadIdx.x * ITEMS;
    State carry = Op::identity();
    Words<T> next = {};
    /* The round before the first tile, which it only asks for, has the parts before. */
    ROLLED
    for (int64_t tile = first - TILE; tile < last; tile += TILE) {
        State mine[ITEMS], all;
        Words<T> words = next;
        int64_t at = tile + own, from = start + number_of(r, at) * r.inner;
        next = words_at<T>(x, r, from + TILE * step, step, at + TILE, last);
        bool leads = tile < first;
        if (leads && (totals || !part))
            continue;
        UNROLL
        for (int k = 0; k < ITEMS; k++) {
            mine[k] = Op::identity();
            if (!leads && at + k < last)
                mine[k] = Op::of(words.get(k, r.single), number_of(r, at + k), r.min);
            else if (leads && own + k < part)
                mine[k] = carries[(int64_t)row * r.parts + own + k];
            if (k)
                mine[k] = Op::combine(mine[k - 1], mine[k]);
        }
        State lead = before_in_block(mine[ITEMS - 1], carry, &all, (State *)warps.of,
                                     Op::combine);
        carry = all;
        if (leads || totals)
            continue;
        Vector<T, ITEMS> values;
        Vector<int64_t, ITEMS> places;
        UNROLL
        for (int k = 0; k < ITEMS; k++) {
            State here = Op::combine(lead, mine[k]);
            values.v[k] = Op::value(here, r.min);
            places.v[k] = Op::index(here);
        }
        put_elements(out, r, from, step, at, last, values);
        if (std::is_same_v<State, scan::Found<T>> && index)
            put_elements(index, r, from, step, at, last, places);
    }
    if (totals && threadIdx.x == 0)
        carries[(int64_t)row * r.parts + part] = carry;
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

/* Blocks that fill a large GPU, and as many parts as a block adds up in one round. */
static const int64_t kBlocks = 1024;
static const int64_t kParts = 512;
static_assert(kParts <= TILE, "the parts of a row are a tile");

template <class Op>
static int start_scan(dt_stream stream, const dt_scan *s, typename Op::State *carries,
                      const Rows &r, bool totals)
{
    return START_BARRIERS("starting a scan", stream, (scan_kernel<Op>),
                          r.rows * r.parts, s->out, s->index, s->x, carries, totals, r);
}

/* Whether a thread's elements of each tile lie where vectors may. */
static bool has_packs(const dt_scan *s)
{
    bool aligned = is_aligned(s->x, sizeof(Quad)) && is_aligned(s->out, sizeof(Quad)) &&
                   is_aligned(s->index, sizeof(Quad));
    int64_t row = s->n * (int64_t)dt_dtype_size(s->dtype);
    return aligned && s->inner == 1 && !s->backward &&
           (s->outer == 1 || row % (int64_t)sizeof(Quad) == 0);
}

template <class Op>
static int run_scan(dt_stream stream, const dt_scan *s, bool min = false)
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
              s->dtype == DT_FLOAT32,
              has_packs(s)};
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
        return start_scan<Op>(stream, s, nullptr, r, false);
    Scratch scratch(stream, (size_t)(r.rows * r.parts) * sizeof(State));
    State *carries = (State *)scratch.data;
    if (!carries || start_scan<Op>(stream, s, carries, r, true))
        return -1;
    return start_scan<Op>(stream, s, carries, r, false);
}

template <typename T>
static int choose(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    switch (op) {
    case DT_SCAN_SUM:
        return run_scan<scan::Sum<T>>(stream, s);
    case DT_SCAN_PRODUCT:
        return run_scan<scan::Product<T>>(stream, s);
    case DT_SCAN_MAX:
        return run_scan<scan::Max<T>>(stream, s);
    case DT_SCAN_MIN:
        return run_scan<scan::Max<T>>(stream, s, true);
    default:
        if constexpr (T(0.5) != T(0))
            return run_scan<scan::LogSumExp<T>>(stream, s);
        return dt_fail(DT_ERROR_RUNTIME, "logcumsumexp: not defined for integers");
    }
}

} // namespace

int dt_cuda_scan(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    return s->dtype == DT_INT64 ? choose<int64_t>(stream, op, s)
                                : choose<double>(stream, op, s);
}
