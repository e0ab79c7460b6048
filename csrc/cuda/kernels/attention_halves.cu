/* Attention of float16 and bfloat16 on tensor cores (mma.h), for sizes up to 128.
 *
 * A warp has 16 rows and goes through the tiles of the other side, of which one is on its
 * way to shared memory while the block multiplies with the one before. Operands are read
 * without a conversion. Products are exact; sums of products, softmax and statistics are float32.
 * Two factors of second products are rounded to the operands' type: the shares, before
 * they are divided by their sum, and the gradients of products, before they are multiplied
 * by the scale. Results are rounded once, when they are stored.
 * Exponentials are powers of 2 (ex2.approx: two units in the last place of float32).
 * No thread adds to what another one has written, so results are the same each time. */
#include "cuda/kernels/attention_halves.h"
#include "cuda/kernels/warp.h"

namespace {

#define WARP_ROWS 16
/* A wheel has no room for kernels of older architectures: theirs are empty, and nothing
 * starts them (dt_attention_halves_fit). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define IS_TOO_OLD true
#else
#define IS_TOO_OLD false
#endif

static __device__ __forceinline__ int lane_number()
{
    return (int)threadIdx.x % 32;
}
/* The first row of the warp in its block. */
static __device__ __forceinline__ int warp_row()
{
    return (int)threadIdx.x / 32 * WARP_ROWS;
}

/* f(T()) for the type of the elements: the same for all of a launch. */
template <class F>
static __device__ __forceinline__ void with_halves(const dt_attention_call &c, F f)
{
    if (c.dtype == DT_FLOAT16) {
        if constexpr (has_mma<dt_float16>)
            f(dt_float16());
    } else {
        if constexpr (has_mma<dt_bfloat16>)
            f(dt_bfloat16());
    }
}

/* Rows of a matrix of one batch and head. */
struct Halves {
    uint16_t *data;
    int64_t row;
    int count, size;
    bool in_chunks; /* 8 elements are read and written at once */
    __device__ __forceinline__ Halves(const dt_attention_matrices &m, int batch,
                                      int head, int64_t rows, int64_t columns)
        : data((uint16_t *)m.data + batch * m.batch + head * m.head), row(m.row),
          count((int)rows), size((int)columns),
          in_chunks(is_aligned(data, 16) && (row | size) % 8 == 0)
    {
    }
    __device__ __forceinline__ Halves from(int first) const
    {
        Halves rest = *this;
        rest.data += first * row;
        rest.count -= first;
        return rest;
    }
};

/* The position of a chunk of 8 halves in shared memory, in rows of `chunks`. The chunks of
 * a row are permuted, so that the same one of 8 rows is in different banks. */
static __device__ __forceinline__ int chunk_place(int row, int chunk, int chunks)
{
    return (row * chunks + (chunk ^ (row & 7))) * 8;
}

/* All threads of a block start to copy `rows` rows of 8 << shift halves to shared memory,
 * or from there. Elements past the matrix are zeros. */
LONG void fill_rows(AsyncCopies &copies, uint16_t *to, Halves from, int rows, int shift)
{
    ROLLED
    for (int u = (int)threadIdx.x; u < rows << shift; u += (int)blockDim.x) {
        int row = u >> shift, chunk = u & ((1 << shift) - 1);
        uint16_t *at = to + chunk_place(row, chunk, 1 << shift);
        const uint16_t *source = from.data + row * from.row + chunk * 8;
        int n = row < from.count ? from.size - chunk * 8 : 0;
        if (from.in_chunks) {
            copies.start(at, source, n > 0);
            continue;
        }
        ROLLED
        for (int e = 0; e < 8; e++)
            at[e] = e < n ? source[e] : (uint16_t)0;
    }
}
LONG void store_rows(const uint16_t *from, Halves to, int rows, int shift)
{
    ROLLED
    for (int u = (int)threadIdx.x; u < rows << shift; u += (int)blockDim.x) {
        int row = u >> shift, chunk = u & ((1 << shift) - 1);
        const uint16_t *at = from + chunk_place(row, chunk, 1 << shift);
        uint16_t *target = to.data + row * to.row + chunk * 8;
        int n = row < to.count ? to.size - chunk * 8 : 0;
        if (to.in_chunks && n > 0)
            *(Vector<uint16_t, 8> *)target = *(const Vector<uint16_t, 8> *)at;
        ROLLED
        for (int e = 0; e < 8 && e < n && !to.in_chunks; e++)
            target[e] = at[e];
    }
}

/* ROWS rows of D halves in shared memory. */
template <int ROWS, int D>
struct Tile {
    alignas(16) uint16_t data[ROWS * D];
    static constexpr int chunks = D / 8, shift = D == 64 ? 3 : 4;

    __device__ __forceinline__ uint16_t *chunk(int row, int at)
    {
        return data + chunk_place(row, at, chunks);
    }
    __device__ __forceinline__ void fill(AsyncCopies &copies, const Halves &from)
    {
        fill_rows(copies, data, from, ROWS, shift);
    }
    /* The same in the loop of a kernel. */
    template <int THREADS>
    __device__ __forceinline__ void fill_inline(AsyncCopies &copies, const Halves &from)
    {
        if (!from.in_chunks)
            return fill(copies, from);
        int row = (int)threadIdx.x / chunks, column = (int)threadIdx.x % chunks * 8;
        int count = column < from.size ? from.count - row : 0;
        const uint16_t *source = from.data + row * from.row + column;
        uint16_t *to = chunk(row, column / 8);
        UNROLL
        for (int i = 0; i < ROWS; i += THREADS / chunks) {
            copies.start(to + i * D, source, i < count); /* i is a multiple of 8 */
            source += THREADS / chunks * from.row;
        }
    }
    __device__ __forceinline__ void store(const Halves &to)
    {
        store_rows(data, to, ROWS, shift);
    }
    /* A fragment a of rows from `row` on and columns 16 * k to 16 * k + 15. */
    __device__ __forceinline__ void rows(unsigned (&a)[4], int row, int k)
    {
        int lane = lane_number();
        load_matrices<false>(a, chunk(row + lane % 16, 2 * k + lane / 16));
    }
    /* Two fragments b of 16 columns, which are rows here. */
    __device__ __forceinline__ void across(unsigned (&b)[4], int row, int k)
    {
        int lane = lane_number();
        load_matrices<false>(
            b, chunk(row + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
    }
    /* Two fragments b of 16 columns from 16 * k on. */
    __device__ __forceinline__ void down(unsigned (&b)[4], int row, int k)
    {
        int lane = lane_number();
        load_matrices<true>(b, chunk(row + lane % 16, 2 * k + lane / 16));
    }
};

/* 16 rows and N columns of float32 in the registers of a warp: of eight columns each,
 * a fragment c. */
template <int N>
struct Strip {
    float v[N / 8][4];
    __device__ __forceinline__ void clear()
    {
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                v[n][e] = 0;
        }
    }
    /* f(0 for row lane / 4 of the warp or 1 for that 8 below, column, element) */
    template <class F>
    __device__ __forceinline__ void each(F f)
    {
        int column = lane_number() % 4 * 2;
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                f(e / 2, n * 8 + column + e % 2, v[n][e]);
        }
    }
    /* Adds two fragments side by side. */
    template <typename T>
    __device__ __forceinline__ void add(int n, const unsigned (&a)[4],
                                        const unsigned (&b)[4])
    {
        mma<T>(v[n], a, {b[0], b[1]});
        mma<T>(v[n + 1], a, {b[2], b[3]});
    }
    /* The fragment a of columns 16 * k to 16 * k + 15. */
    template <typename T>
    __device__ __forceinline__ void rounded(unsigned (&a)[4], int k) const
    {
        UNROLL
        for (int r = 0; r < 4; r++) {
            const float (&c)[4] = v[2 * k + r / 2];
            a[r] = half_pair<T>(c[r % 2 * 2], c[r % 2 * 2 + 1]);
        }
    }
    /* To rows of the tile from `row` on, each times a factor. */
    template <int ROWS>
    __device__ __forceinline__ void show(const dt_attention_call &c,
                                         Tile<ROWS, N> &tile, int row,
                                         const float (&factor)[2]) const
    {
        int i = row + lane_number() / 4, column = lane_number() % 4 * 2;
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int h = 0; h < 2; h++) {
                float low = v[n][2 * h] * factor[h], high = v[n][2 * h + 1] * factor[h];
                *(unsigned *)(tile.chunk(i + 8 * h, n) + column) =
                    c.dtype == DT_FLOAT16 ? half_pair<dt_float16>(low, high)
                                          : half_pair<dt_bfloat16>(low, high);
            }
        }
    }
};

/* products = the warp's rows, whose fragments a(k, fragment) gives, times those of the
 * tile. */
template <int D, int N, class A>
static __device__ __forceinline__ void
multiply(const dt_attention_call &c, Strip<N> &products, Tile<N, D> &tile, A a)
{
    products.clear();
    with_halves(c, [&](auto type) {
        UNROLL
        for (int k = 0; k < D / 16; k++) {
            unsigned mine[4], others[4];
            a(k, mine);
            UNROLL
            for (int n = 0; n < N / 16; n++) {
                tile.across(others, n * 16, k);
                products.template add<decltype(type)>(2 * n, mine, others);
            }
        }
    });
}

/* sums += factors, rounded, times the tile. */
template <int D, int N>
static __device__ __forceinline__ void
add_product(const dt_attention_call &c, Strip<D> &sums, const Strip<N> &factors,
            Tile<N, D> &tile)
{
    with_halves(c, [&](auto type) {
        UNROLL
        for (int k = 0; k < N / 16; k++) {
            unsigned mine[4], others[4];
            factors.template rounded<decltype(type)>(mine, k);
            UNROLL
            for (int n = 0; n < D / 16; n++) {
                tile.down(others, k * 16, n);
                sums.template add<decltype(type)>(2 * n, mine, others);
            }
        }
    });
}

/* The corner of a warp's strip in the matrix of scores: its first row and its first
 * column; with KEYS the matrix is transposed, and its rows are those of keys. */
template <bool KEYS>
struct Corner {
    int batch, head, mine, other;

    /* The columns that count for row i, but for a mask: `count` of them from `first` on. */
    struct Range {
        int first, count;
    };
    __device__ __forceinline__ Range range(const dt_attention_call &c, int i) const
    {
        int first = 0, end = (int)(KEYS ? c.length : c.key_length) - other;
        if (c.causal && KEYS)
            first = mine + i - other;
        else if (c.causal && end > mine + i + 1 - other)
            end = mine + i + 1 - other;
        first = first > 0 ? first : 0;
        return {first, end > first ? end - first : 0};
    }
    /* Whether all of n columns count for each of 16 rows, or none for any. */
    __device__ __forceinline__ bool all_count(const dt_attention_call &c, int n) const
    {
        Range narrowest = range(c, KEYS ? WARP_ROWS - 1 : 0);
        return !narrowest.first && narrowest.count >= n;
    }
    __device__ __forceinline__ bool none_counts(const dt_attention_call &c, int n) const
    {
        Range widest = range(c, KEYS ? 0 : WARP_ROWS - 1);
        return !widest.count || widest.first >= n;
    }
};

/* A mask as the strip of a warp reads it: its elements for column 0 of both rows of this
 * lane, and how far columns lie apart. Columns past the last one take the mask of that. */
struct Mask {
    const void *data;
    bool is_bool;
    int last;
    int64_t rows[2], along;
};
/* Scores to base 2 of n columns, of which a lane has v[n / 8][4]. Kernels share the code. */
LONG void add_mask(float (*v)[4], int n, const Mask &mask)
{
    int column = lane_number() % 4 * 2;
    ROLLED
    for (int first = 0; first < n; first += 16) {
        float added[2][4]; /* asked for at a time */
        UNROLL
        for (int u = 0; u < 2; u++) {
            UNROLL
            for (int e = 0; e < 4; e++) {
                int k = first + u * 8 + column + e % 2;
                int64_t at =
                    mask.rows[e / 2] + (k < mask.last ? k : mask.last) * mask.along;
                added[u][e] = !mask.is_bool ? ((const float *)mask.data)[at]
                              : (bool)((const dt_bool *)mask.data)[at] ? 0
                                                                       : -INFINITY;
            }
        }
        UNROLL
        for (int u = 0; u < 2; u++) {
            UNROLL
            for (int e = 0; e < 4; e++) {
                float &score = v[first / 8 + u][e];
                /* Also of NaN. */
                bool left_out = mask.is_bool && added[u][e] != 0;
                score = left_out ? -INFINITY : fmaf(added[u][e], LOG2_E, score);
            }
        }
    }
}

/* Scores of products, to base 2. Those that are left out are -inf. */
template <bool KEYS, int N>
static __device__ __forceinline__ void
find_scores(const dt_attention_call &c, const Corner<KEYS> &corner, Strip<N> &scores)
{
    float scale = (float)c.scale * LOG2_E;
    scores.each([&](int, int, float &v) { v *= scale; });
    int row = lane_number() / 4;
    if (c.mask) {
        const int64_t *m = c.mask_strides;
        int64_t down = KEYS ? m[3] : m[2], along = KEYS ? m[2] : m[3];
        int last = (int)(KEYS ? c.key_length : c.length) - 1 - corner.mine;
        int64_t start = corner.batch * m[0] + corner.head * m[1] + corner.mine * down +
                        corner.other * along;
        Mask mask = {c.mask,
                     c.mask_is_bool,
                     (int)(KEYS ? c.length : c.key_length) - 1 - corner.other,
                     {start + (row < last ? row : last) * down,
                      start + (row + 8 < last ? row + 8 : last) * down},
                     along};
        Strip<N> masked = scores; /* in memory: the scores stay in registers */
        add_mask(masked.v, N, mask);
        scores = masked;
    }
    if (corner.all_count(c, N))
        return;
    auto one = corner.range(c, row), other = corner.range(c, row + 8);
    scores.each([&](int h, int k, float &v) {
        if ((unsigned)(k - (h ? other : one).first) >=
            (unsigned)(h ? other : one).count)
            v = -INFINITY;
    });
}

/* The tiles of one side that a block goes through, two at a time in shared memory. */
template <int N, int D>
struct Ring {
    struct Pair {
        Tile<N, D> first, second;
    } pairs[2];
};

#define FORWARD_ROWS 128

template <int D>
__global__ void __launch_bounds__(FORWARD_ROWS / WARP_ROWS * 32, D == 64 ? 2 : 1)
    attention_forward_halves(GRID_CONSTANT(HalvesTask) task)
{
    if (IS_TOO_OLD)
        return;
    constexpr int N = 4096 / D, THREADS = FORWARD_ROWS / WARP_ROWS * 32;
    union Shared {
        Ring<N, D> ring;
        Tile<FORWARD_ROWS, D> mine;
    };
    STATIC_SHARED(Shared, s);
    const dt_attention_call &c = task.call;
    unsigned of = blockIdx.x / task.tiles;
    int head = (int)(of % (unsigned)c.heads), batch = (int)(of / (unsigned)c.heads);
    int key_head = (int)((unsigned)head / task.group);
    /* The last rows first: where scores are causal, they take longest. */
    int first = (int)(task.tiles - 1 - blockIdx.x % task.tiles) * FORWARD_ROWS;
    int end = (int)c.key_length;
    if (c.causal && end > first + FORWARD_ROWS)
        end = first + FORWARD_ROWS;
    AsyncCopies copies;
    s.mine.fill(copies, Halves(c.query, batch, head, c.length, c.size).from(first));
    copies.await();
    __syncthreads();
    unsigned query[D / 16][4];
    UNROLL
    for (int k = 0; k < D / 16; k++)
        s.mine.rows(query[k], warp_row(), k);

    const Halves key(c.key, batch, key_head, c.key_length, c.size);
    const Halves value(c.value, batch, key_head, c.key_length, c.value_size);
    Corner<false> corner = {batch, head, first + warp_row(), -N};
    Strip<N> scores;
    Strip<D> sums;
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, factor[2];
    sums.clear();
    ROLLED
    for (int stage = 1; corner.other < end; corner.other += N, stage ^= 1) {
        copies.await();
        __syncthreads(); /* the tile is there, and the one before has been used */
        if (corner.other + N < end) {
            auto &next = s.ring.pairs[stage ^ 1];
            next.first.template fill_inline<THREADS>(copies,
                                                     key.from(corner.other + N));
            next.second.template fill_inline<THREADS>(copies,
                                                      value.from(corner.other + N));
        }
        if (corner.other < 0 || corner.none_counts(c, N))
            continue;
        auto &tiles = s.ring.pairs[stage];
        multiply(c, scores, tiles.first, [&](int k, unsigned (&a)[4]) {
            UNROLL
            for (int r = 0; r < 4; r++)
                a[r] = query[k][r];
        });
        find_scores(c, corner, scores);
        float most[2] = {top[0], top[1]};
        scores.each([&](int h, int, float &v) { most[h] = fmaxf(most[h], v); });
        UNROLL
        for (int h = 0; h < 2; h++) {
            most[h] = along_row(most[h], [](float a, float b) { return fmaxf(a, b); });
            /* Where all are left out, each share is 2 to the -inf. */
            float base = most[h] == -INFINITY ? 0 : most[h];
            factor[h] = power_of_2(top[h] - base);
            top[h] = most[h];
            most[h] = base;
            sum[h] *= factor[h]; /* of this lane's columns */
        }
        scores.each([&](int h, int, float &v) {
            v = power_of_2(v - most[h]);
            sum[h] += v;
        });
        sums.each([&](int h, int, float &v) { v *= factor[h]; });
        add_product(c, sums, scores, tiles.second);
    }
    UNROLL
    for (int h = 0; h < 2; h++) {
        int i = corner.mine + lane_number() / 4 + 8 * h;
        sum[h] = along_row(sum[h], [](float a, float b) { return a + b; });
        factor[h] = attention::inverse_sum(sum[h]);
        if (lane_number() % 4 == 0 && i < c.length)
            ((float *)c.log_sum)[of * c.length + i] =
                attention::log_sum(top[h] * LN_2, sum[h]);
    }
    __syncthreads(); /* the last tiles have been used */
    sums.show(c, s.mine, warp_row(), factor);
    __syncthreads();
    s.mine.store(Halves(c.out, batch, head, c.length, c.value_size).from(first));
}

#define ROW_LANES 16 /* for sizes up to 128, of chunks of 8 */

/* A row of the statistics for each half of a warp. */
__global__ void attention_dots_halves(GRID_CONSTANT(HalvesTask) task)
{
    if (IS_TOO_OLD)
        return;
    const dt_attention_call &c = task.call;
    unsigned blocks = task.padded / (BLOCK / ROW_LANES), of = blockIdx.x / blocks;
    int row =
        (int)(blockIdx.x % blocks * (BLOCK / ROW_LANES) + threadIdx.x / ROW_LANES);
    int head = (int)(of % (unsigned)c.heads), batch = (int)(of / (unsigned)c.heads);
    const Halves out = Halves(c.out, batch, head, c.length, c.value_size).from(row);
    const Halves grad = Halves(c.grad, batch, head, c.length, c.value_size).from(row);
    const int lane = (int)threadIdx.x % ROW_LANES, first = lane * 8;
    float sum = 0;
    if (out.count > 0 && first < out.size) {
        Vector<uint16_t, 8> pair[2] = {};
        if (out.in_chunks && grad.in_chunks) {
            pair[0] = *(const Vector<uint16_t, 8> *)(out.data + first);
            pair[1] = *(const Vector<uint16_t, 8> *)(grad.data + first);
        } else {
            UNROLL
            for (int e = 0; e < 8; e++)
                if (first + e < out.size) {
                    pair[0].v[e] = out.data[first + e];
                    pair[1].v[e] = grad.data[first + e];
                }
        }
        auto a = widened(pair[0], c.dtype == DT_BFLOAT16);
        auto b = widened(pair[1], c.dtype == DT_BFLOAT16);
        UNROLL
        for (int e = 0; e < 8; e++)
            sum += a.v[e] * b.v[e];
    }
    UNROLL
    for (int step = 1; step < ROW_LANES; step *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane)
        return;
    float log_sum = 0;
    if (out.count > 0)
        log_sum = ((const float *)c.log_sum)[of * c.length + row] * LOG2_E;
    task.statistics[(int64_t)of * task.padded + row] = {log_sum, sum};
}

#define BACKWARD_ROWS 64

/* The gradient of query, a block for 64 rows, which goes through the keys; or with KEYS
 * those of key and value, a block for 64 keys, which goes through the rows of all heads
 * that share them. `first` and `second` are query and the gradient of out, or key and
 * value: scores are products of the first ones, gradients of shares of the second. */
template <int D, bool KEYS>
__global__ void __launch_bounds__(BACKWARD_ROWS / WARP_ROWS * 32, D == 64 ? 3 : 2)
    attention_backward_halves(GRID_CONSTANT(HalvesTask) task)
{
    if (IS_TOO_OLD)
        return;
    constexpr int N = 2048 / D, THREADS = BACKWARD_ROWS / WARP_ROWS * 32;
    struct Shared {
        Tile<BACKWARD_ROWS, D> first, second;
        Ring<N, D> ring;
    };
    STATIC_SHARED(Shared, s);
    const dt_attention_call &c = task.call;
    const unsigned heads = (unsigned)(KEYS ? c.key_heads : c.heads);
    unsigned of = blockIdx.x / task.tiles, tile = blockIdx.x % task.tiles;
    int head = (int)(of % heads), batch = (int)(of / heads);
    /* As forward, what takes longest first. */
    int first = (int)(KEYS ? tile : task.tiles - 1 - tile) * BACKWARD_ROWS;
    const int rows = (int)(KEYS ? c.key_length : c.length);
    const int others = (int)(KEYS ? c.length : c.key_length);
    AsyncCopies copies;
    s.first.fill(copies,
                 Halves(KEYS ? c.key : c.query, batch, head, rows, c.size).from(first));
    s.second.fill(
        copies,
        Halves(KEYS ? c.value : c.grad, batch, head, rows, c.value_size).from(first));

    /* The other side: from `start` to `end` of each head that shares these. */
    int start = c.causal && KEYS ? first / N * N : 0, end = others;
    if (c.causal && !KEYS && end > first + BACKWARD_ROWS)
        end = first + BACKWARD_ROWS;
    const int group = (int)task.group;
    Corner<KEYS> corner = {batch, KEYS ? head * group : head, first + warp_row(), 0};
    const int last_head = KEYS ? corner.head + group : head + 1;
    const Statistic *statistics =
        task.statistics + (int64_t)(batch * (int)c.heads + corner.head) * task.padded;
    Statistic mine[2] = {};
    UNROLL
    for (int h = 0; h < 2 && !KEYS; h++)
        mine[h] = statistics[corner.mine + lane_number() / 4 + 8 * h];

    Strip<N> shares, gradients;
    Strip<D> sums, value_sums;
    sums.clear();
    if (KEYS)
        value_sums.clear();
    int stage = 1;
    ROLLED
    for (; corner.head < last_head; corner.head++, statistics += task.padded) {
        int other_head = KEYS ? corner.head : head / group;
        const Halves other_first(KEYS ? c.query : c.key, batch, other_head, others,
                                 c.size);
        const Halves other_second(KEYS ? c.grad : c.value, batch, other_head, others,
                                  c.value_size);
        corner.other = start - N;
        ROLLED
        for (; corner.other < end; corner.other += N, stage ^= 1) {
            copies.await();
            __syncthreads(); /* the tile is there, the one before has been used */
            if (corner.other + N < end) {
                auto &next = s.ring.pairs[stage ^ 1];
                next.first.template fill_inline<THREADS>(
                    copies, other_first.from(corner.other + N));
                next.second.template fill_inline<THREADS>(
                    copies, other_second.from(corner.other + N));
            }
            if (corner.other < start || corner.none_counts(c, N))
                continue;
            auto &tiles = s.ring.pairs[stage];
            Vector<Statistic, 2> columns[N / 8];
            UNROLL
            for (int n = 0; n < N / 8 && KEYS; n++)
                columns[n] =
                    *(const Vector<Statistic, 2> *)(statistics + corner.other + n * 8 +
                                                    lane_number() % 4 * 2);
            multiply(c, shares, tiles.first,
                     [&](int k, unsigned (&a)[4]) { s.first.rows(a, warp_row(), k); });
            find_scores(c, corner, shares);
            multiply(c, gradients, tiles.second,
                     [&](int k, unsigned (&a)[4]) { s.second.rows(a, warp_row(), k); });
            UNROLL
            for (int n = 0; n < N / 8; n++) {
                UNROLL
                for (int e = 0; e < 4; e++) {
                    const Statistic &row = KEYS ? columns[n].v[e % 2] : mine[e / 2];
                    float share = power_of_2(shares.v[n][e] - row.log_sum);
                    shares.v[n][e] = share;
                    gradients.v[n][e] = share * (gradients.v[n][e] - row.dot);
                }
            }
            if (KEYS)
                add_product(c, value_sums, shares, tiles.second);
            add_product(c, sums, gradients, tiles.first);
        }
    }
    copies.await();
    __syncthreads(); /* all tiles have been used */
    const float scale[2] = {(float)c.scale, (float)c.scale}, one[2] = {1, 1};
    sums.show(c, s.first, warp_row(), scale);
    if (KEYS)
        value_sums.show(c, s.second, warp_row(), one);
    __syncthreads();
    const dt_attention_matrices &to = KEYS ? c.key_grad : c.query_grad;
    if (to.data)
        s.first.store(Halves(to, batch, head, rows, c.size).from(first));
    if (KEYS && c.value_grad.data)
        s.second.store(
            Halves(c.value_grad, batch, head, rows, c.value_size).from(first));
}

#define DOING "starting attention"

template <int D>
static int forward(dt_stream stream, HalvesTask &task)
{
    const dt_attention_call &c = task.call;
    task.tiles = (unsigned)((c.length + FORWARD_ROWS - 1) / FORWARD_ROWS);
    return start_result(DOING, LAUNCH_BARRIERS((attention_forward_halves<D>),
                                               c.batch * c.heads * task.tiles,
                                               FORWARD_ROWS / WARP_ROWS * 32, 0,
                                               (cudaStream_t)stream.handle, task));
}

template <int D, bool KEYS>
static int one_side(dt_stream stream, HalvesTask &task)
{
    const dt_attention_call &c = task.call;
    int64_t rows = KEYS ? c.key_length : c.length;
    task.tiles = (unsigned)((rows + BACKWARD_ROWS - 1) / BACKWARD_ROWS);
    return start_result(
        DOING, LAUNCH_BARRIERS((attention_backward_halves<D, KEYS>),
                               c.batch * (KEYS ? c.key_heads : c.heads) * task.tiles,
                               BACKWARD_ROWS / WARP_ROWS * 32, 0,
                               (cudaStream_t)stream.handle, task));
}

template <int D>
static int gradients(dt_stream stream, HalvesTask &task)
{
    const dt_attention_call &c = task.call;
    if (c.query_grad.data && one_side<D, false>(stream, task))
        return -1;
    return c.key_grad.data || c.value_grad.data ? one_side<D, true>(stream, task) : 0;
}

/* `starts` starts the kernels that read the statistics. */
static int backward(dt_stream stream, HalvesTask &task,
                    int (*starts)(dt_stream, HalvesTask &))
{
    const dt_attention_call &c = task.call;
    task.padded =
        (unsigned)((c.length + BACKWARD_ROWS - 1) / BACKWARD_ROWS) * BACKWARD_ROWS;
    int64_t rows = c.batch * c.heads * task.padded;
    Scratch statistics(stream, (size_t)rows * sizeof(Statistic));
    task.statistics = (Statistic *)statistics.data;
    if (!task.statistics || START_BARRIERS(DOING, stream, attention_dots_halves,
                                           rows / (BLOCK / ROW_LANES), task))
        return -1;
    return starts(stream, task);
}
} // namespace

int attention_of_halves(dt_stream stream, const dt_attention_call *call)
{
    const int *newest = device_architectures;
    while (*newest && newest[1])
        newest++;
    if (*newest && !dt_attention_halves_fit(call, *newest))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "attention: kernels were built for compute capability %d.%d, which "
            "does not multiply %s; build pydevtensor for this GPU: "
            "PYDEVTENSOR_CUDA_ARCHS=native pip install .",
            *newest / 10, *newest % 10, dt_dtype_name(call->dtype));
    dt_device_properties gpu;
    if (dt_cuda_device_properties(stream.device, &gpu))
        return -1;
    HalvesTask task = {*call, nullptr, (unsigned)(call->heads / call->key_heads), 0, 0};
    const bool warpgroups = attention_fits_warpgroups(call, 10 * gpu.major + gpu.minor);
    const bool small = call->size <= 64 && call->value_size <= 64;
    if (call->grad.data)
        return backward(stream, task,
                        warpgroups ? attention_gradients_of_warpgroups
                        : small    ? gradients<64>
                                   : gradients<128>);
    return (warpgroups ? attention_of_warpgroups
            : small    ? forward<64>
                       : forward<128>)(stream, task);
}
