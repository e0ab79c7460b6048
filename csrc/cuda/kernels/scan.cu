/* Running sums, products and extremes, in one pass over memory. A warp has a chunk of a row
 * in shared memory, where each lane adds up neighbouring elements; lanes meet in shuffles.
 * Where rows are many a warp goes along each of them. A long row is cut into tiles, one for
 * a block, which learns from the blocks before what theirs amount to (decoupled look-back:
 * Merrill and Garland, 2016): from each tile of its group, in their order, and from the last
 * group what all before it do. So what is added to what depends on sizes alone, and results
 * are the same each time. */

#include <math.h>
#include <type_traits>

#include "cuda/kernels/async_copy.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/warp.h"

#include "ops/scan.h"

namespace {

/* --- what is carried along --- */

/* Sums, products and logarithms of sums. Elements are carried along as doubles or int64: a
 * sum of float32 has room there, and stays as exact as the CPU's, and one kernel serves
 * both float types. */
template <typename T>
struct Folds {
    typedef T Value;
    typedef T State;
    static constexpr bool has_index = false;
    dt_scan_op op;

    __device__ __forceinline__ T identity() const
    {
        if constexpr (std::is_floating_point_v<T>)
            if (op == DT_SCAN_LOGSUMEXP)
                return scan::LogSumExp<T>::identity();
        return op == DT_SCAN_SUM ? scan::Sum<T>::identity()
                                 : scan::Product<T>::identity();
    }
    __device__ __forceinline__ T of(T x, int64_t) const { return x; }
    __device__ __forceinline__ T combine(T a, T b) const
    {
        if (op == DT_SCAN_SUM)
            return scan::Sum<T>::combine(a, b);
        if constexpr (std::is_floating_point_v<T>)
            if (op == DT_SCAN_LOGSUMEXP)
                return scan::LogSumExp<T>::combine(a, b);
        return scan::Product<T>::combine(a, b);
    }
    __device__ __forceinline__ T value(T state) const { return state; }
    /* An element that changes nothing. */
    __device__ __forceinline__ T nothing() const { return identity(); }
};

template <typename T>
struct Extremes {
    typedef T Value;
    typedef scan::Found<T> State;
    static constexpr bool has_index = true;
    dt_scan_op op;

    __device__ __forceinline__ bool min() const { return op == DT_SCAN_MIN; }
    __device__ __forceinline__ State identity() const
    {
        return scan::Max<T>::identity();
    }
    __device__ __forceinline__ State of(T x, int64_t index) const
    {
        return scan::Max<T>::of(x, index, min());
    }
    __device__ __forceinline__ State combine(const State &a, const State &b) const
    {
        return scan::Max<T>::combine(a, b);
    }
    __device__ __forceinline__ T value(const State &state) const
    {
        return scan::Max<T>::value(state, min());
    }
    /* It comes before the row or after it. */
    __device__ __forceinline__ T nothing() const { return 0; }
};

/* --- rows --- */

struct Rows {
    int64_t rows, n, inner;
    int64_t tiles; /* of a row; 0: a warp has it */
    int items;     /* of a lane */
    LongDivider by_inner;
    dt_scan_op op;
    bool backward;
    bool single; /* elements are float32 */
    bool quads;  /* elements from multiples of QUAD on are aligned as vectors */
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

static __device__ __forceinline__ void move(void *to, const void *from, bool single)
{
    if (single)
        *(uint32_t *)to = *(const uint32_t *)from;
    else
        *(uint64_t *)to = *(const uint64_t *)from;
}
/* An element, as a T or a float. */
template <typename T>
static __device__ __forceinline__ T element_at(const void *x, bool single)
{
    if constexpr (std::is_same_v<T, double>)
        if (single)
            return (T) * (const float *)x;
    return *(const T *)x;
}
template <typename T>
static __device__ __forceinline__ void put_element(void *out, T value, bool single)
{
    if constexpr (std::is_same_v<T, double>)
        if (single) {
            *(float *)out = (float)value;
            return;
        }
    *(T *)out = value;
}

/* --- chunks --- */

enum { QUAD = 4, WARPS = BLOCK / 32 };
/* Bytes of neighbouring elements of a lane. A warp has a chunk of them, a block a tile. */
template <class Op>
constexpr int bytes_of_lane = Op::has_index ? 64 : 128;

/* A warp's chunk in shared memory: elements of a row from number `first` on, some before
 * the row and after it. In vectors of 16 bytes, placed so that lanes that each read
 * neighbouring ones meet no bank twice. */
struct Chunk {
    typedef Vector<uint32_t, 4> Bytes;
    const Rows &r;
    char *memory;
    int64_t start, first; /* of the row, and in it */
    int items;            /* of a lane */
    bool single;

    __device__ __forceinline__ int size() const { return single ? 4 : 8; }
    __device__ __forceinline__ int in_vector() const { return single ? 4 : 2; }
    __device__ __forceinline__ int vectors() const { return items / in_vector(); }
    __device__ __forceinline__ char *at(int vector) const
    {
        return memory + (vector ^ (vector / 8 & (vectors() - 1))) * 16;
    }
    /* whole(shared, offset in memory) for the vectors that are in the row, and
     * one(shared, offset, is in the row) for the elements of others. Neighbouring lanes take
     * neighbouring ones. */
    template <class Whole, class One>
    __device__ __forceinline__ void each(Whole whole, One one) const
    {
        ROLLED
        for (int v = (int)(threadIdx.x % 32); v < 32 * vectors(); v += 32) {
            const int64_t i = first + v * in_vector();
            if (r.quads && i >= 0 && i + in_vector() <= r.n) {
                whole(at(v), (start + i) * size());
                continue;
            }
            ROLLED
            for (int k = 0; k < in_vector(); k++)
                one(at(v) + k * size(),
                    (start + number_of(r, i + k) * r.inner) * size(),
                    i + k >= 0 && i + k < r.n);
        }
    }
    template <typename T>
    __device__ __forceinline__ void read(const void *x, T nothing) const
    {
        AsyncCopies copies;
        each([&](char *to,
                 int64_t from) { copies.start(to, (const char *)x + from, true); },
             [&](char *to, int64_t from, bool there) {
                 if (there)
                     move(to, (const char *)x + from, single);
                 else
                     put_element(to, nothing, single);
             });
        copies.await();
        __syncwarp();
    }
    __device__ __forceinline__ void write(void *out) const
    {
        __syncwarp();
        each([&](char *from,
                 int64_t to) { *(Bytes *)((char *)out + to) = *(const Bytes *)from; },
             [&](char *from, int64_t to, bool there) {
                 if (there)
                     move((char *)out + to, from, single);
             });
        __syncwarp();
    }

    /* QUAD elements of this lane, from its number k on. */
    template <typename T>
    __device__ __forceinline__ Vector<T, QUAD> get(int k) const
    {
        const int vector = (int)(threadIdx.x % 32) * vectors() + k / in_vector();
        if constexpr (std::is_same_v<T, double>)
            if (single) {
                Vector<float, QUAD> narrow = *(const Vector<float, QUAD> *)at(vector);
                return {{narrow.v[0], narrow.v[1], narrow.v[2], narrow.v[3]}};
            }
        typedef Vector<T, 2> Pair;
        Pair low = *(const Pair *)at(vector), high = *(const Pair *)at(vector + 1);
        return {{low.v[0], low.v[1], high.v[0], high.v[1]}};
    }
    template <typename T>
    __device__ __forceinline__ void put(int k, const Vector<T, QUAD> &values) const
    {
        const int vector = (int)(threadIdx.x % 32) * vectors() + k / in_vector();
        if constexpr (std::is_same_v<T, double>)
            if (single) {
                *(Vector<float, QUAD> *)at(vector) = {
                    {(float)values.v[0], (float)values.v[1], (float)values.v[2],
                     (float)values.v[3]}};
                return;
            }
        typedef Vector<T, 2> Pair;
        *(Pair *)at(vector) = {{values.v[0], values.v[1]}};
        *(Pair *)at(vector + 1) = {{values.v[2], values.v[3]}};
    }
};

/* --- tiles --- */

#define GROUP 128 /* tiles, for each of which a block has a thread */

/* Tables in which blocks find the states of those before them; zeros at first. A state is
 * in words of 32 bits, below a mark, each of which is written at once. */
struct Known {
    unsigned *ticket;
    uint64_t *tiles;  /* what a tile amounts to */
    uint64_t *groups; /* what the tiles of the row before a group do */
};
POINTERS_OF(Known, f(s.ticket); f(s.tiles); f(s.groups);)

template <typename State>
constexpr int words_of = sizeof(State) / 4;
template <typename State>
static __device__ __forceinline__ void tell(uint64_t *states, int64_t at,
                                            const State &state)
{
    uint32_t bits[words_of<State>];
    volatile uint64_t *words = states + at * words_of<State>;
    __builtin_memcpy(bits, &state, sizeof state);
    UNROLL
    for (int k = 0; k < words_of<State>; k++)
        words[k] = (uint64_t)1 << 32 | bits[k];
}
template <typename State>
static __device__ __forceinline__ State hear(const uint64_t *states, int64_t at)
{
    uint32_t bits[words_of<State>];
    const volatile uint64_t *words = states + at * words_of<State>;
    State state;
    UNROLL
    for (int k = 0; k < words_of<State>; k++) {
        uint64_t word;
        do
            word = words[k];
        while (!(word >> 32));
        bits[k] = (uint32_t)word;
    }
    __builtin_memcpy(&state, bits, sizeof state);
    return state;
}

/* --- kernels --- */

template <class Op>
__global__ void __launch_bounds__(BLOCK, 4)
    scan_kernel(void *out, int64_t *index, const void *x, Known known,
                GRID_CONSTANT(Rows) r)
{
    typedef typename Op::State State;
    typedef typename Op::Value T;
    constexpr int BYTES = bytes_of_lane<Op>;
    const int items = r.items, chunk_items = 32 * items;
    struct __align__(16) States { /* whose constructors do not run */
        char of[WARPS * sizeof(State)];
    };
    struct __align__(16) Chunks {
        char of[WARPS][32 * BYTES];
    };
    STATIC_SHARED(States, warps);
    STATIC_SHARED(Chunks, chunks);
    STATIC_SHARED(unsigned, ticket);
    const Op op = {r.op};
    auto combine = [&](const State &a, const State &b) { return op.combine(a, b); };
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t row = (int64_t)blockIdx.x * WARPS + warp, tile = 0, at = 0;
    if (r.tiles) {
        if (threadIdx.x == 0)
            ticket = atomicAdd(known.ticket, 1u);
        __syncthreads();
        tile = ticket;
        row = ticket / (unsigned)r.tiles;
        at = ((tile - row * r.tiles) * WARPS + warp) * chunk_items;
    } else if (row >= r.rows) {
        return;
    }
    const int64_t start = start_of(r, row);
    if (r.quads)
        at -= start % QUAD;
    State carry = op.identity();
    ROLLED
    do {
        const Chunk chunk = {r, chunks.of[warp], start, at, items, r.single};
        chunk.read(x, op.nothing());
        auto state_of = [&](T value, int k) {
            return op.of(value, number_of(r, at + (int)lane * items + k));
        };
        State sum = op.identity();
        ROLLED
        for (int k = 0; k < items; k += QUAD) {
            const auto quad = chunk.get<T>(k);
            UNROLL
            for (int i = 0; i < QUAD; i++)
                sum = op.combine(sum, state_of(quad.v[i], k + i));
        }
        ROLLED
        for (unsigned delta = 1; delta < 32; delta *= 2) {
            State left = from_lane(sum, [&](auto word) {
                return __shfl_up_sync(0xffffffffu, word, delta);
            });
            if (lane >= delta)
                sum = op.combine(left, sum);
        }
        const State all = from_lane(
            sum, [](auto word) { return __shfl_sync(0xffffffffu, word, 31); });
        sum = from_lane(sum,
                        [](auto word) { return __shfl_up_sync(0xffffffffu, word, 1); });
        if (r.tiles) {
            State *const of_warps = (State *)warps.of;
            if (lane == 0)
                of_warps[warp] = all;
            __syncthreads();
            State own = op.identity(), lead = own;
            ROLLED
            for (unsigned w = 0; w < WARPS; w++) {
                lead = w == warp ? own : lead;
                own = op.combine(own, of_warps[w]);
            }
            if (threadIdx.x == 0)
                tell(known.tiles, tile, own);
            const unsigned in_row = (unsigned)(tile - row * r.tiles);
            const unsigned in_group = in_row % GROUP;
            const int64_t group =
                row * ((r.tiles + GROUP - 1) / GROUP) + in_row / GROUP;
            State before = op.identity();
            if (threadIdx.x < in_group)
                before = hear<State>(known.tiles, tile - in_group + threadIdx.x);
            before_in_block(before, op.identity(), &before, of_warps, combine);
            if (in_row >= GROUP)
                before = op.combine(hear<State>(known.groups, group), before);
            if (threadIdx.x == 0 && in_group == GROUP - 1)
                tell(known.groups, group + 1, op.combine(before, own));
            carry = op.combine(before, lead);
        }
        State here = lane ? op.combine(carry, sum) : carry;
        carry = op.combine(carry, all);
        constexpr int PLACES = BYTES / (int)sizeof(int64_t);
        int64_t places[Op::has_index ? PLACES : 1];
        auto put = [&](int k) {
            auto quad = chunk.get<T>(k);
            UNROLL
            for (int i = 0; i < QUAD; i++) {
                here = op.combine(here, state_of(quad.v[i], k + i));
                quad.v[i] = op.value(here);
                if constexpr (Op::has_index)
                    places[k + i] = here.index;
            }
            chunk.put(k, quad);
        };
        if constexpr (Op::has_index) {
            UNROLL
            for (int k = 0; k < PLACES; k += QUAD)
                put(k);
        } else {
            ROLLED
            for (int k = 0; k < items; k += QUAD)
                put(k);
        }
        chunk.write(out);
        if constexpr (Op::has_index)
            if (index) {
                const Chunk found = {r, chunks.of[warp], start, at, items, false};
                UNROLL
                for (int k = 0; k < PLACES; k += QUAD)
                    found.put(k, Vector<int64_t, QUAD>{{places[k], places[k + 1],
                                                        places[k + 2], places[k + 3]}});
                found.write(index);
            }
        at += chunk_items;
    } while (!r.tiles && at < r.n);
}

/* One thread a row: neighbours read neighbouring columns. */
template <class Op>
__global__ void scan_columns_kernel(void *out, int64_t *index, const void *x,
                                    GRID_CONSTANT(Rows) r)
{
    const Op op = {r.op};
    const int64_t row = thread_number(), size = r.single ? 4 : 8;
    if (row >= r.rows)
        return;
    int64_t start = start_of(r, row);
    typename Op::State carry = op.identity();
    ROLLED
    for (int64_t i = 0; i < r.n; i++) {
        int64_t number = number_of(r, i), at = start + number * r.inner;
        auto value =
            element_at<typename Op::Value>((const char *)x + at * size, r.single);
        carry = op.combine(carry, op.of(value, number));
        put_element((char *)out + at * size, op.value(carry), r.single);
        if constexpr (Op::has_index)
            if (index)
                index[at] = carry.index;
    }
}

/* --- launches --- */

/* Rows that keep a large GPU busy with a warp for each, and elements that one has soon. */
static const int64_t kRows = 2048, kShort = 1024;

template <class Op>
static int run_scan(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    typedef typename Op::State State;
    const char *doing = "starting a scan";
    const bool single = s->dtype == DT_FLOAT32;
    Rows r = {s->outer * s->inner,
              s->n,
              s->inner,
              0,
              bytes_of_lane<Op> / (Op::has_index || !single ? 8 : 4),
              long_divider_for(s->inner),
              op,
              s->backward,
              single,
              is_aligned(s->x, 16) && is_aligned(s->out, 16) &&
                  is_aligned(s->index, 16) && s->inner == 1 && !s->backward};
    Known known = {};
    if ((s->inner >= 32 && r.rows >= 1024) || s->n <= 16)
        return START(doing, stream, (scan_columns_kernel<Op>), r.rows, s->out, s->index,
                     s->x, r);
    if (r.rows >= kRows || s->n <= kShort)
        return START_BARRIERS(doing, stream, (scan_kernel<Op>),
                              (r.rows + WARPS - 1) / WARPS, s->out, s->index, s->x,
                              known, r);
    /* The first tile of a row may begin before it. */
    const int64_t tile = BLOCK * r.items;
    r.tiles = (s->n + QUAD - 1 + tile - 1) / tile;
    const int64_t tiles = r.rows * r.tiles,
                  groups = r.rows * ((r.tiles + GROUP - 1) / GROUP) + 1;
    const size_t bytes =
        sizeof(uint64_t) * (size_t)(1 + words_of<State> * (tiles + groups));
    Scratch scratch(stream, bytes);
    if (!scratch.data)
        return -1;
    known.ticket = (unsigned *)scratch.data;
    known.tiles = (uint64_t *)scratch.data + 1;
    known.groups = known.tiles + words_of<State> * tiles;
    CUDA_TRY(doing,
             cudaMemsetAsync(scratch.data, 0, bytes, (cudaStream_t)stream.handle));
    return START_BARRIERS(doing, stream, (scan_kernel<Op>), tiles, s->out, s->index,
                          s->x, known, r);
}

} // namespace

int dt_cuda_scan(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    const bool integers = s->dtype == DT_INT64;
    if (op == DT_SCAN_MAX || op == DT_SCAN_MIN)
        return integers ? run_scan<Extremes<int64_t>>(stream, op, s)
                        : run_scan<Extremes<double>>(stream, op, s);
    if (integers && op != DT_SCAN_SUM && op != DT_SCAN_PRODUCT)
        return dt_fail(DT_ERROR_RUNTIME, "logcumsumexp: not defined for integers");
    return integers ? run_scan<Folds<int64_t>>(stream, op, s)
                    : run_scan<Folds<double>>(stream, op, s);
}
