/* The kernels of attention on tensor cores (mma.h) of 16 bits and of float32, for sizes up to
 * 128: attention_halves.cu and attention_floats.cu have those of one type each,
 * attention_dropout.cu those of 16 bits that drop shares (DROPS).
 *
 * A warp computes 16 rows and goes through the tiles of the other side: while the block
 * multiplies by one tile, the next is copied to shared memory. Operands are read without a
 * conversion. Sums of products, softmax and statistics are float32.
 * Products of 16 bits are exact. Two of their factors are rounded to the operands' type: the shares,
 * before they are divided by their sum, and the gradients of products, before they are multiplied
 * by the scale. Results are rounded once, when they are stored.
 * Exponentials are powers of 2 (ex2.approx: two units in the last place of float32).
 * No thread adds to what another one has written, so results are the same each time. */
#ifndef DT_CUDA_KERNELS_ATTENTION_MMA_H
#define DT_CUDA_KERNELS_ATTENTION_MMA_H

#include "cuda/kernels/attention_tiles.h"

namespace {

/* The corner of a warp's strip in the matrix of scores: its first row and its first
 * column; with KEYS the matrix is transposed, and its rows are those of keys. */
template <bool KEYS>
struct Corner {
    int batch, head, mine, other;

    /* The columns that count for row i before a mask: `count` of them from `first` on. */
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
    /* Whether all of n columns count for each of 16 rows, or none for any. Rows past the
     * last one do not count. */
    __device__ __forceinline__ bool all_count(const dt_attention_call &c, int n) const
    {
        Range narrowest = range(c, KEYS ? WARP_ROWS - 1 : 0);
        return !narrowest.first && narrowest.count >= n;
    }
    __device__ __forceinline__ bool none_counts(const dt_attention_call &c, int n) const
    {
        Range widest = range(c, KEYS ? 0 : WARP_ROWS - 1);
        return mine >= (KEYS ? c.key_length : c.length) || !widest.count ||
               widest.first >= n;
    }
};

/* A mask as a warp's strip reads it: the positions of column 0 of both rows of this lane, and
 * the stride of columns. Columns past the last one read the last one's element. */
struct Mask {
    const void *data;
    bool is_bool;
    int last;
    int64_t rows[2], along;
};
/* Adds the mask to scores, to base 2, of n columns, of which a lane has v[n / 8][4]. The
 * kernels share the code. */
LONG void add_mask(float (*v)[4], int n, const Mask &mask)
{
    int column = lane_number() % 4 * 2;
    ROLLED
    for (int first = 0; first < n; first += 16) {
        float added[2][4]; /* loaded together */
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
                /* A NaN, too, is left out. */
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
        Strip<N> masked = scores; /* a copy in memory: `scores` stays in registers */
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

/* Which shares of a warp's strip of n columns, up to 64, stay: bit 4 * i + e is that of
 * v[i][e]. A counter at a time, for want of registers. */
template <bool KEYS>
static __device__ __forceinline__ unsigned
kept_shares(const TensorCoreTask &task, const Corner<KEYS> &corner, int n)
{
    const Dropout &d = task.dropout;
    const unsigned mine = lane_number() / 4, other = lane_number() % 4 * 2;
    const int64_t head = corner.batch * task.call.heads + corner.head;
    const DropoutDraw draw(d);
    uint64_t counter =
        KEYS ? block_counter(d, head, corner.other, corner.mine) + other * 8 + mine
             : block_counter(d, head, corner.mine, corner.other) + mine * 8 + other;
    unsigned kept = 0;
    ROLLED
    for (int at = 0; at < n / 2; at += 1 + at % 2 * 6) { /* 0, 1, 8, 9, ... */
        unsigned bits = 0;
        draw.each(counter, [&](int w, bool stays) {
            int column = KEYS ? w / 2 : w % 2, row = KEYS ? w % 2 : w / 2;
            bits |= (unsigned)stays << (4 * column + 2 * row);
        });
        kept |= bits << at;
        /* To the next column, or the next 16. */
        const uint64_t beside = KEYS ? 8 : 1, next = KEYS ? d.key_blocks * 64 : 64;
        counter += at % 2 ? next - beside : beside;
    }
    return kept;
}

/* The tiles of one side that a block goes through, two at a time in shared memory. */
template <typename E, int N, int D>
struct Ring {
    struct Pair {
        Tile<E, N, D> first, second;
    } pairs[2];
};

/* Rows of a block, and of a tile of the other side. */
template <typename E, int D>
struct Forward {
    static constexpr int rows = are_halves<E> ? 128 : 64;
    static constexpr int threads = rows / WARP_ROWS * 32;
    static constexpr int n = are_halves<E> ? 4096 / D : 32;
    /* The rows of 16 bits stay in registers, so that the ring may use their memory. Those of
     * float32 stay in their tile, for want of registers. */
    union Overlaid {
        Ring<E, n, D> ring;
        Tile<E, rows, D> mine;
    };
    struct Apart {
        Ring<E, n, D> ring;
        Tile<E, rows, D> mine;
    };
    typedef std::conditional_t<are_halves<E>, Overlaid, Apart> Shared;
};

template <typename E, int D, bool DROPS>
__global__ void __launch_bounds__(Forward<E, D>::threads,
                                  (D == 64 ? 2 : 1) + !are_halves<E>)
    attention_forward_tiles(GRID_CONSTANT(TensorCoreTask) task)
{
    if (IS_TOO_OLD)
        return;
    constexpr int N = Forward<E, D>::n, ROWS = Forward<E, D>::rows;
    DYNAMIC_SHARED(unsigned char, shared);
    auto &s = *(typename Forward<E, D>::Shared *)shared;
    const dt_attention_call &c = task.call;
    unsigned of = blockIdx.x / task.tiles;
    int head = (int)(of % (unsigned)c.heads), batch = (int)(of / (unsigned)c.heads);
    int key_head = (int)((unsigned)head / task.group);
    /* The last rows first: where scores are causal, they take longest. */
    int first = (int)(task.tiles - 1 - blockIdx.x % task.tiles) * ROWS;
    int end = (int)c.key_length;
    if (c.causal && end > first + ROWS)
        end = first + ROWS;
    AsyncCopies copies;
    s.mine.fill(copies, Matrix<E>(c.query, batch, head, c.length, c.size).from(first));
    copies.await();
    __syncthreads();
    unsigned query[D / 16][4];
    UNROLL
    for (int k = 0; k < D / 16 && are_halves<E>; k++)
        s.mine.rows(query[k], warp_row(), k);

    const Matrix<E> key(c.key, batch, key_head, c.key_length, c.size);
    const Matrix<E> value(c.value, batch, key_head, c.key_length, c.value_size);
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
            next.first.template fill_inline<ROWS * 2>(copies,
                                                      key.from(corner.other + N));
            next.second.template fill_inline<ROWS * 2>(copies,
                                                       value.from(corner.other + N));
        }
        if (corner.other < 0 || corner.none_counts(c, N))
            continue;
        auto &tiles = s.ring.pairs[stage];
        multiply(c, scores, tiles.first, c.size, [&](int k, unsigned (&a)[4]) {
            UNROLL
            for (int r = 0; r < 4 && are_halves<E>; r++)
                a[r] = query[k][r];
            if (!are_halves<E>)
                s.mine.rows(a, warp_row(), k);
        });
        find_scores(c, corner, scores);
        float most[2] = {top[0], top[1]};
        scores.each([&](int h, int, float &v) { most[h] = fmaxf(most[h], v); });
        UNROLL
        for (int h = 0; h < 2; h++) {
            most[h] = along_row(most[h], [](float a, float b) { return fmaxf(a, b); });
            /* Where all are left out, each share is exp2(-inf), 0. */
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
        if (DROPS)
            scores.keep(kept_shares(task, corner, N), 1);
        sums.each([&](int h, int, float &v) { v *= factor[h]; });
        add_product(c, sums, scores, tiles.second, c.value_size);
    }
    UNROLL
    for (int h = 0; h < 2; h++) {
        int i = corner.mine + lane_number() / 4 + 8 * h;
        sum[h] = along_row(sum[h], [](float a, float b) { return a + b; });
        factor[h] = attention::inverse_sum(sum[h]);
        if (DROPS)
            factor[h] *= (float)task.dropout.factor;
        if (lane_number() % 4 == 0 && i < c.length)
            ((float *)c.log_sum)[of * c.length + i] =
                attention::log_sum(top[h] * LN_2, sum[h]);
    }
    __syncthreads(); /* the last tiles have been used */
    sums.show(c, s.mine, warp_row(), factor);
    __syncthreads();
    s.mine.store(Matrix<E>(c.out, batch, head, c.length, c.value_size).from(first));
    if (DROPS)
        leave_start(task.dropout);
}

/* Lanes of a row of the statistics, for sizes up to 128: a chunk each. */
template <typename E>
constexpr int row_lanes = 128 / of_chunk<E>;

template <int N>
static __device__ __forceinline__ Vector<float, N>
as_floats(const dt_attention_call &c, const Vector<uint16_t, N> &halves)
{
    return widened(halves, c.dtype == DT_BFLOAT16);
}
template <int N>
static __device__ __forceinline__ Vector<float, N>
as_floats(const dt_attention_call &, const Vector<float, N> &floats)
{
    return floats;
}

template <typename E>
__global__ void attention_dots_tiles(GRID_CONSTANT(TensorCoreTask) task)
{
    if (IS_TOO_OLD)
        return;
    const dt_attention_call &c = task.call;
    constexpr int lanes = row_lanes<E>, rows = BLOCK / lanes, N = of_chunk<E>;
    unsigned blocks = task.padded / rows, of = blockIdx.x / blocks;
    int row = (int)(blockIdx.x % blocks) * rows + (int)(threadIdx.x / lanes);
    int head = (int)(of % (unsigned)c.heads), batch = (int)(of / (unsigned)c.heads);
    const Matrix<E> out =
        Matrix<E>(c.out, batch, head, c.length, c.value_size).from(row);
    const Matrix<E> grad =
        Matrix<E>(c.grad, batch, head, c.length, c.value_size).from(row);
    const int lane = (int)(threadIdx.x % lanes), first = lane * N;
    float sum = 0;
    if (out.count > 0 && first < out.size) {
        Vector<E, N> pair[2] = {};
        if (out.in_chunks && grad.in_chunks) {
            pair[0] = *(const Vector<E, N> *)(out.data + first);
            pair[1] = *(const Vector<E, N> *)(grad.data + first);
        } else {
            UNROLL
            for (int e = 0; e < N; e++)
                if (first + e < out.size) {
                    pair[0].v[e] = out.data[first + e];
                    pair[1].v[e] = grad.data[first + e];
                }
        }
        auto a = as_floats(c, pair[0]), b = as_floats(c, pair[1]);
        UNROLL
        for (int e = 0; e < N; e++)
            sum += a.v[e] * b.v[e];
    }
    sum = reduce_lanes<lanes>(sum, [](float a, float b) { return a + b; });
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
template <typename E, int D>
struct Backward {
    static constexpr int n = 2048 / D;
    struct Shared {
        Tile<E, BACKWARD_ROWS, D> first, second;
        Ring<E, n, D> ring;
    };
};

template <typename E, int D, bool KEYS, bool DROPS>
__global__ void __launch_bounds__(BACKWARD_ROWS / WARP_ROWS * 32, D == 64 ? 3 : 2)
    attention_backward_tiles(GRID_CONSTANT(TensorCoreTask) task)
{
    if (IS_TOO_OLD)
        return;
    constexpr int N = Backward<E, D>::n, THREADS = BACKWARD_ROWS / WARP_ROWS * 32;
    DYNAMIC_SHARED(unsigned char, shared);
    auto &s = *(typename Backward<E, D>::Shared *)shared;
    const dt_attention_call &c = task.call;
    const unsigned heads = (unsigned)(KEYS ? c.key_heads : c.heads);
    unsigned of = blockIdx.x / task.tiles, tile = blockIdx.x % task.tiles;
    int head = (int)(of % heads), batch = (int)(of / heads);
    /* As forward, what takes longest first. */
    int first = (int)(KEYS ? tile : task.tiles - 1 - tile) * BACKWARD_ROWS;
    const int rows = (int)(KEYS ? c.key_length : c.length);
    const int others = (int)(KEYS ? c.length : c.key_length);
    AsyncCopies copies;
    s.first.fill(
        copies,
        Matrix<E>(KEYS ? c.key : c.query, batch, head, rows, c.size).from(first));
    s.second.fill(copies,
                  Matrix<E>(KEYS ? c.value : c.grad, batch, head, rows, c.value_size)
                      .from(first));

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
        const Matrix<E> other_first(KEYS ? c.query : c.key, batch, other_head, others,
                                    c.size);
        const Matrix<E> other_second(KEYS ? c.grad : c.value, batch, other_head, others,
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
            multiply(c, shares, tiles.first, c.size,
                     [&](int k, unsigned (&a)[4]) { s.first.rows(a, warp_row(), k); });
            find_scores(c, corner, shares);
            multiply(c, gradients, tiles.second, c.value_size,
                     [&](int k, unsigned (&a)[4]) { s.second.rows(a, warp_row(), k); });
            unsigned kept = 0;
            if (DROPS) {
                kept = kept_shares(task, corner, N);
                gradients.keep(kept, (float)task.dropout.factor);
            }
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
            if (DROPS && KEYS)
                shares.keep(kept, 1);
            if (KEYS)
                add_product(c, value_sums, shares, tiles.second, c.value_size);
            add_product(c, sums, gradients, tiles.first, c.size);
        }
    }
    copies.await();
    __syncthreads(); /* all tiles have been used */
    const float scale[2] = {(float)c.scale, (float)c.scale};
    const float kept_factor = DROPS ? (float)task.dropout.factor : 1;
    const float value_scale[2] = {kept_factor, kept_factor};
    sums.show(c, s.first, warp_row(), scale);
    if (KEYS)
        value_sums.show(c, s.second, warp_row(), value_scale);
    __syncthreads();
    const dt_attention_matrices &to = KEYS ? c.key_grad : c.query_grad;
    if (to.data)
        s.first.store(Matrix<E>(to, batch, head, rows, c.size).from(first));
    if (KEYS && c.value_grad.data)
        s.second.store(
            Matrix<E>(c.value_grad, batch, head, rows, c.value_size).from(first));
}

#define DOING "starting attention"

/* The newest architecture of this build, 0 if none is known. */
static inline int newest_architecture()
{
    const int *newest = device_architectures;
    while (*newest && newest[1])
        newest++;
    return *newest;
}
static inline TensorCoreTask tensor_core_task(const dt_attention_call *call,
                                              const Dropout &dropout)
{
    return {*call, dropout, nullptr, (unsigned)(call->heads / call->key_heads), 0, 0};
}

template <typename E, int D, bool DROPS>
static int forward_of_size(dt_stream stream, TensorCoreTask &task)
{
    typedef Forward<E, D> Sizes;
    const dt_attention_call &c = task.call;
    task.tiles = (unsigned)((c.length + Sizes::rows - 1) / Sizes::rows);
    return start_result(
        DOING, (Relaxed(), LAUNCH_LARGE((attention_forward_tiles<E, D, DROPS>),
                                        c.batch * c.heads * task.tiles, Sizes::threads,
                                        sizeof(typename Sizes::Shared),
                                        (cudaStream_t)stream.handle, task)));
}

template <typename E, bool DROPS>
static int start_forward(dt_stream stream, TensorCoreTask &task)
{
    return task.call.size <= 64 && task.call.value_size <= 64
               ? forward_of_size<E, 64, DROPS>(stream, task)
               : forward_of_size<E, 128, DROPS>(stream, task);
}

template <typename E, int D, bool KEYS, bool DROPS>
static int side_of_size(dt_stream stream, TensorCoreTask &task)
{
    const dt_attention_call &c = task.call;
    int64_t rows = KEYS ? c.key_length : c.length;
    task.tiles = (unsigned)((rows + BACKWARD_ROWS - 1) / BACKWARD_ROWS);
    return start_result(
        DOING,
        (Relaxed(), LAUNCH_LARGE((attention_backward_tiles<E, D, KEYS, DROPS>),
                                 c.batch * (KEYS ? c.key_heads : c.heads) * task.tiles,
                                 BACKWARD_ROWS / WARP_ROWS * 32,
                                 sizeof(typename Backward<E, D>::Shared),
                                 (cudaStream_t)stream.handle, task)));
}

template <typename E, int D, bool DROPS>
static int gradients_of_size(dt_stream stream, TensorCoreTask &task)
{
    const dt_attention_call &c = task.call;
    if (c.query_grad.data && side_of_size<E, D, false, DROPS>(stream, task))
        return -1;
    return c.key_grad.data || c.value_grad.data
               ? side_of_size<E, D, true, DROPS>(stream, task)
               : 0;
}

/* To keep wheels small, float32 has no kernels for sizes up to 64: its products skip the
 * columns past the size. */
template <typename E, bool DROPS>
static int start_gradients(dt_stream stream, TensorCoreTask &task)
{
    if constexpr (are_halves<E>)
        if (task.call.size <= 64 && task.call.value_size <= 64)
            return gradients_of_size<E, 64, DROPS>(stream, task);
    return gradients_of_size<E, 128, DROPS>(stream, task);
}

/* `gradients` starts the kernels that read the statistics. */
template <typename E>
static int start_backward(dt_stream stream, TensorCoreTask &task,
                          int (*gradients)(dt_stream, TensorCoreTask &))
{
    const dt_attention_call &c = task.call;
    task.padded =
        (unsigned)((c.length + BACKWARD_ROWS - 1) / BACKWARD_ROWS) * BACKWARD_ROWS;
    int64_t rows = c.batch * c.heads * task.padded;
    Scratch statistics(stream, (size_t)rows * sizeof(Statistic));
    task.statistics = (Statistic *)statistics.data;
    if (!task.statistics || START_BARRIERS(DOING, stream, (attention_dots_tiles<E>),
                                           rows / (BLOCK / row_lanes<E>), task))
        return -1;
    return gradients(stream, task);
}

} // namespace

#endif
