/* Attention by tiles of 64 rows and 64 keys: a block has the scores of a tile, 4 by 4 of
 * them in the registers of each thread, and multiplies matrices through shared memory.
 * No thread adds to what another one has written, so results are the same each time. */
#include "cuda/kernels/attention.h"
#include "cuda/kernels/attention_dropout.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/warp.h"
#ifdef SIM_CUDA
#include "sim/outer.h"
#endif

#include "ops/attention.h"

namespace {

#define TILE 64
#define SIDE 16   /* threads along a side of a tile */
#define EACH 4    /* elements of a thread along a side */
#ifdef __CUDACC__ /* to keep wheels small, float64 is not unrolled */
#define UNROLL_PRODUCTS _Pragma("unroll (sizeof(T) == 8 ? 1 : 4)")
#else
#define UNROLL_PRODUCTS
#endif

struct AttentionTask {
    dt_attention_call call;
    Dropout dropout;
    void *dots; /* of each row, the sum of out times its gradient; of the call's type */
    unsigned row_tiles, key_tiles, group; /* heads of query to one of key */
};
POINTERS_OF(AttentionTask, f(s.call.query.data); f(s.call.key.data);
            f(s.call.value.data); f(s.call.out.data); f(s.call.mask); f(s.call.log_sum);
            f(s.call.grad.data); f(s.call.query_grad.data); f(s.call.key_grad.data);
            f(s.call.value_grad.data); each_pointer(s.dropout, f); f(s.dots);)

template <typename T>
struct Shared {
    static constexpr int chunk = sizeof(T) == 8 ? 8 : 16;
    alignas(16) T a[chunk][TILE + 4], b[chunk][TILE + 4];
    T scores[TILE][TILE + 1];
    /* Bit w of a counter of dropout: whether the share of word w stays. */
    alignas(4) uint8_t kept[TILE * TILE / 4];
};

/* The first row and column of a thread's elements in a tile. */
static __device__ __forceinline__ int thread_row()
{
    return (int)(threadIdx.x / SIDE) * EACH;
}
static __device__ __forceinline__ int thread_column()
{
    return (int)(threadIdx.x % SIDE) * EACH;
}

template <typename T>
struct Square {
    T v[EACH][EACH];
    __device__ __forceinline__ void clear()
    {
        UNROLL
        for (int i = 0; i < EACH; i++) {
            UNROLL
            for (int k = 0; k < EACH; k++)
                v[i][k] = 0;
        }
    }
    /* += x * y', each product and sum rounded once, as by cuBLAS. */
    __device__ __forceinline__ void add(const Vector<T, EACH> &x,
                                        const Vector<T, EACH> &y)
    {
#ifdef SIM_CUDA
        if constexpr (sizeof(T) == sizeof(float))
            return sim::add_outer(v, x.v, y.v);
#endif
        UNROLL
        for (int i = 0; i < EACH; i++) {
            UNROLL
            for (int k = 0; k < EACH; k++)
                v[i][k] = fma(x.v[i], y.v[k], v[i][k]);
        }
    }
    /* f(row, column of the tile, element) */
    template <class F>
    __device__ __forceinline__ void each(F f)
    {
        int row = thread_row(), column = thread_column();
        UNROLL
        for (int i = 0; i < EACH; i++) {
            UNROLL
            for (int k = 0; k < EACH; k++)
                f(row + i, column + k, v[i][k]);
        }
    }
};

/* Copies a chunk of an operand to shared memory. Neighbouring threads read along the
 * dimension of adjacent elements: that of the sum (ALONG), or the side of the tile. */
template <bool ALONG, typename T, class F>
static __device__ __forceinline__ void fill(T (*to)[TILE + 4], int first, int n, F f)
{
    constexpr int chunk = Shared<T>::chunk;
    UNROLL_PRODUCTS
    for (int u = 0; u < chunk * TILE / BLOCK; u++) {
        const unsigned at = threadIdx.x + (unsigned)u * BLOCK;
        const int k = (int)(ALONG ? at % chunk : at / TILE);
        const int i = (int)(ALONG ? at / chunk : at % TILE);
        to[k][i] = first + k < n ? f(i, first + k) : (T)0;
    }
}

/* The parts of a tile that count, from its corner on. */
struct Extent {
    int rows, columns;
};

/* sums += the product of a tile's rows a(i, k) and columns b(i, k), k below n. All threads
 * of the block call it; when it returns, none of them reads shared memory. */
template <bool A_ALONG, bool B_ALONG, typename T, class A, class B>
static __device__ __forceinline__ void multiply(Shared<T> &s, Square<T> &sums,
                                                Extent extent, int n, A a, B b)
{
    int row = thread_row(), column = thread_column();
    const bool counts = row < extent.rows && column < extent.columns;
    ROLLED
    for (int first = 0; first < n; first += Shared<T>::chunk) {
        fill<A_ALONG>(s.a, first, n, a);
        fill<B_ALONG>(s.b, first, n, b);
        __syncthreads();
        if (counts) {
            UNROLL_PRODUCTS
            for (int k = 0; k < Shared<T>::chunk; k++)
                sums.add(*(const Vector<T, EACH> *)&s.a[k][row],
                         *(const Vector<T, EACH> *)&s.b[k][column]);
        }
        __syncthreads();
    }
}

/* A matrix of one batch and head, `count` rows from row `first` on; beyond are zeros. */
template <typename T>
struct Rows {
    T *data;
    int64_t row;
    int count, size;
    __device__ __forceinline__ Rows(const dt_attention_matrices &m, int64_t batch,
                                    int64_t head, int64_t first, int64_t rows,
                                    int64_t columns)
        : data((T *)m.data + batch * m.batch + head * m.head + first * m.row),
          row(m.row), count(rows - first < TILE ? (int)(rows - first) : TILE),
          size((int)columns)
    {
    }
    __device__ __forceinline__ bool has(int i, int k) const
    {
        return i < count && k < size;
    }
    __device__ __forceinline__ T operator()(int i, int k) const
    {
        return has(i, k) ? data[i * row + k] : (T)0;
    }
    /* `square` between registers and columns from `from` on. */
    __device__ __forceinline__ void load(Square<T> &square, int from) const
    {
        square.each([&](int i, int k, T &v) { v = (*this)(i, from + k); });
    }
    __device__ __forceinline__ void store(Square<T> &square, int from) const
    {
        square.each([&](int i, int k, T &v) {
            if (has(i, from + k))
                data[i * row + from + k] = v;
        });
    }
};

/* One tile: rows of a head against keys of its key head. */
struct Place {
    int64_t batch, head, key_head, row, key;
};

/* The block's tile: its rows, or its keys with the first head of query. A grid has fewer than
 * 2^31 blocks. */
static __device__ __forceinline__ Place tile_of_rows(const AttentionTask &task)
{
    unsigned of = blockIdx.x / task.row_tiles, heads = (unsigned)task.call.heads;
    unsigned head = of % heads, tile = blockIdx.x % task.row_tiles;
    return {of / heads, head, head / task.group, (int64_t)tile * TILE, 0};
}
static __device__ __forceinline__ Place tile_of_keys(const AttentionTask &task)
{
    unsigned of = blockIdx.x / task.key_tiles, heads = (unsigned)task.call.key_heads;
    unsigned head = of % heads, tile = blockIdx.x % task.key_tiles;
    return {of / heads, (int64_t)head * task.group, head, 0, (int64_t)tile * TILE};
}
/* Goes to the next rows, or to the first ones of the next head. */
static __device__ __forceinline__ void next_rows(const dt_attention_call &c, Place *p)
{
    p->row += TILE;
    if (p->row >= c.length) {
        p->row = 0;
        p->head++;
    }
}

template <typename T>
static __device__ __forceinline__ Rows<T> rows_of(const dt_attention_call &c,
                                                  const dt_attention_matrices &m,
                                                  const Place &p, int64_t size)
{
    return Rows<T>(m, p.batch, p.head, p.row, c.length, size);
}
template <typename T>
static __device__ __forceinline__ Rows<T> keys_of(const dt_attention_call &c,
                                                  const dt_attention_matrices &m,
                                                  const Place &p, int64_t size)
{
    return Rows<T>(m, p.batch, p.key_head, p.key, c.key_length, size);
}
static __device__ __forceinline__ int64_t row_number(const dt_attention_call &c,
                                                     const Place &p, int i)
{
    return (p.batch * c.heads + p.head) * c.length + p.row + i;
}
/* Whether no key of the tile counts for any of its rows. */
static __device__ __forceinline__ bool is_left_out(const dt_attention_call &c,
                                                   const Place &p)
{
    return c.causal && p.key > p.row + TILE - 1;
}

template <typename T>
static __device__ __forceinline__ void
find_scores(const dt_attention_call &c, const Place &p, Shared<T> &s, Square<T> &scores)
{
    Rows<T> query = rows_of<T>(c, c.query, p, c.size);
    Rows<T> key = keys_of<T>(c, c.key, p, c.size);
    scores.clear();
    multiply<true, true>(s, scores, {query.count, key.count}, query.size, query, key);
    const int64_t *m = c.mask_strides;
    int64_t corner = p.batch * m[0] + p.head * m[1] + p.row * m[2] + p.key * m[3];
    scores.each([&](int i, int k, T &v) {
        if (i >= query.count || k >= key.count || (c.causal && p.key + k > p.row + i)) {
            v = -(T)INFINITY;
            return;
        }
        v *= (T)c.scale;
        int64_t at = corner + i * m[2] + k * m[3];
        if (c.mask && !c.mask_is_bool)
            v += ((const T *)c.mask)[at];
        else if (c.mask && !(bool)((const dt_bool *)c.mask)[at])
            v = -(T)INFINITY;
    });
}

/* Draws which shares of a tile stay. All threads of the block call it. */
#define TILE_BLOCKS (TILE / DROPOUT_SIDE) /* along a side */
LONG void draw_kept(const Dropout &dropout, uint64_t first, Extent extent,
                    uint8_t *kept)
{
    const DropoutDraw draw(dropout);
    ROLLED
    for (unsigned u = threadIdx.x; u < TILE * TILE / 4; u += BLOCK) {
        unsigned row = u / 64 / TILE_BLOCKS, column = u / 64 % TILE_BLOCKS, bits = 0;
        if ((int)row * DROPOUT_SIDE < extent.rows &&
            (int)column * DROPOUT_SIDE < extent.columns)
            draw.each(first + (row * dropout.key_blocks + column) * 64 + u % 64,
                      [&](int w, bool stays) { bits |= (unsigned)stays << w; });
        kept[u] = (uint8_t)bits;
    }
    __syncthreads();
}
template <typename T>
static __device__ __forceinline__ void
draw_kept(const AttentionTask &task, const Place &p, Extent extent, Shared<T> &s)
{
    const int64_t head = p.batch * task.call.heads + p.head;
    draw_kept(task.dropout, block_counter(task.dropout, head, p.row, p.key), extent,
              s.kept);
}
/* Shares, or their gradients, after dropout. A thread's have the same word of counters next
 * to each other. */
template <typename T>
static __device__ __forceinline__ void drop(const Dropout &dropout, const Shared<T> &s,
                                            Square<T> &shares)
{
    const int row = thread_row();
    const int column = thread_column();
    const int block = row / DROPOUT_SIDE * TILE_BLOCKS + column / DROPOUT_SIDE;
    const int word = row / 8 % 2 * 2 + column / 8 % 2;
    UNROLL
    for (int i = 0; i < EACH; i++) {
        const uint8_t *at = s.kept + block * 64 + (row % 8 + i) * 8 + column % 8;
        auto kept = *(const Vector<uint8_t, EACH> *)at;
        UNROLL
        for (int k = 0; k < EACH; k++)
            shares.v[i][k] =
                kept.v[k] >> word & 1 ? shares.v[i][k] * (T)dropout.factor : 0;
    }
}

/* The scores of a tile for all of the block. */
template <typename T>
static __device__ __forceinline__ void show(Shared<T> &s, Square<T> &scores)
{
    scores.each([&](int i, int k, T &v) { s.scores[i][k] = v; });
    __syncthreads();
}

/* Combines values of each row of a thread with those of the threads that share it. */
template <typename T, class Combine>
static __device__ __forceinline__ Vector<T, EACH>
along_rows(const Vector<T, EACH> &values, Combine combine)
{
    typedef Vector<T, EACH> Values;
    return reduce_lanes<SIDE>(values, [&](const Values &a, const Values &b) {
        Values combined;
        UNROLL
        for (int i = 0; i < EACH; i++)
            combined.v[i] = combine(a.v[i], b.v[i]);
        return combined;
    });
}

/* The largest score so far of each row of a thread, the sum of its exponentials, and the
 * factor that brings earlier exponentials down to them. */
template <typename T>
struct Softmax {
    T top[EACH], sum[EACH], factor[EACH];
    __device__ __forceinline__ void clear()
    {
        UNROLL
        for (int i = 0; i < EACH; i++) {
            top[i] = -(T)INFINITY;
            sum[i] = 0;
            factor[i] = 1;
        }
    }
    /* Scores of a tile become shares. */
    __device__ __forceinline__ void take(Square<T> &scores)
    {
        Vector<T, EACH> most, added = {};
        UNROLL
        for (int i = 0; i < EACH; i++) {
            most.v[i] = top[i];
            UNROLL
            for (int k = 0; k < EACH; k++)
                most.v[i] = scores.v[i][k] > most.v[i] ? scores.v[i][k] : most.v[i];
        }
        most = along_rows(most, [](T a, T b) { return b > a ? b : a; });
        UNROLL
        for (int i = 0; i < EACH; i++) {
            factor[i] = attention::correction(top[i], most.v[i]);
            top[i] = most.v[i];
            UNROLL
            for (int k = 0; k < EACH; k++)
                added.v[i] += scores.v[i][k] =
                    attention::share(scores.v[i][k], most.v[i]);
        }
        added = along_rows(added, [](T a, T b) { return a + b; });
        UNROLL
        for (int i = 0; i < EACH; i++)
            sum[i] = sum[i] * factor[i] + added.v[i];
    }
};

template <typename T>
__global__ void attention_forward(GRID_CONSTANT(AttentionTask) task)
{
    STATIC_SHARED(Shared<T>, s);
    const dt_attention_call &c = task.call;
    Place p = tile_of_rows(task);
    Rows<T> out = rows_of<T>(c, c.out, p, c.value_size);
    Square<T> scores, kept, sums;
    Softmax<T> softmax;
    softmax.clear();
    kept.clear();
    int row = thread_row();
    ROLLED
    for (; p.key < c.key_length && !is_left_out(c, p); p.key += TILE) {
        Rows<T> value = keys_of<T>(c, c.value, p, c.value_size);
        if (task.dropout.on)
            draw_kept(task, p, {out.count, value.count}, s);
        find_scores(c, p, s, scores);
        if (row / 8 * 8 < out.count) /* the same for all of a warp */
            softmax.take(scores);
        if (task.dropout.on)
            drop(task.dropout, s, scores);
        show(s, scores);
        /* The first columns of the result stay in registers. */
        ROLLED
        for (int from = 0; from < out.size; from += TILE) {
            if (!from)
                sums = kept;
            else if (p.key)
                out.load(sums, from);
            else
                sums.clear();
            sums.each([&](int i, int, T &v) { v *= softmax.factor[i - row]; });
            multiply<true, false>(
                s, sums, {out.count, out.size - from}, value.count,
                [&](int i, int k) { return s.scores[i][k]; },
                [&](int i, int k) { return value(k, from + i); });
            if (from)
                out.store(sums, from);
            else
                kept = sums;
        }
    }
    ROLLED
    for (int from = 0; from < out.size; from += TILE) {
        if (from)
            out.load(kept, from);
        kept.each([&](int i, int, T &v) {
            v *= attention::inverse_sum(softmax.sum[i - row]);
        });
        out.store(kept, from);
    }
    UNROLL
    for (int i = 0; i < EACH; i++)
        if (threadIdx.x % SIDE == 0 && row + i < out.count)
            ((T *)c.log_sum)[row_number(c, p, row + i)] =
                attention::log_sum(softmax.top[i], softmax.sum[i]);
    leave_start(task.dropout);
}

/* A row for each warp. */
template <typename T>
__global__ void attention_dots(GRID_CONSTANT(AttentionTask) task)
{
    const dt_attention_call &c = task.call;
    int64_t number = (int64_t)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (number >= c.batch * c.heads * c.length)
        return;
    int64_t head = number / c.length, row = number % c.length;
    Rows<T> out(c.out, head / c.heads, head % c.heads, row, c.length, c.value_size);
    Rows<T> grad(c.grad, head / c.heads, head % c.heads, row, c.length, c.value_size);
    T sum = 0;
    ROLLED
    for (int k = (int)(threadIdx.x % 32); k < out.size; k += 32)
        sum += out.data[k] * grad.data[k];
    sum = reduce_group<true>(sum, 32, [](T a, T b) { return a + b; });
    if (threadIdx.x % 32 == 0)
        ((T *)task.dots)[number] = sum;
}

/* The shares of a tile and the gradients of its products. after(shares) runs between. */
template <typename T, class After>
static __device__ __forceinline__ void find_gradients(const AttentionTask &task,
                                                      const Place &p, Shared<T> &s,
                                                      Square<T> &gradients, After after)
{
    const dt_attention_call &c = task.call;
    Rows<T> grad = rows_of<T>(c, c.grad, p, c.value_size);
    Rows<T> value = keys_of<T>(c, c.value, p, c.value_size);
    Square<T> shares;
    if (task.dropout.on)
        draw_kept(task, p, {grad.count, value.count}, s);
    find_scores(c, p, s, shares);
    shares.each([&](int i, int, T &v) {
        T log_sum = i < grad.count ? ((const T *)c.log_sum)[row_number(c, p, i)] : (T)0;
        v = attention::share(v, log_sum);
    });
    after(shares);
    gradients.clear();
    multiply<true, true>(s, gradients, {grad.count, value.count}, grad.size, grad,
                         value);
    if (task.dropout.on)
        drop(task.dropout, s, gradients);
    int row = thread_row(), column = thread_column();
    gradients.each([&](int i, int k, T &v) {
        T dot = i < grad.count ? ((const T *)task.dots)[row_number(c, p, i)] : (T)0;
        v = attention::product_gradient(shares.v[i - row][k - column], v, dot,
                                        (T)c.scale);
    });
    show(s, gradients);
}

/* into += the product with a tile of s.scores, of which b has the columns. Those in
 * `kept` are the first; others are added in memory, but for the first tile. */
template <bool TRANSPOSED, typename T>
static __device__ __forceinline__ void add_product(Shared<T> &s, const Rows<T> &into,
                                                   Square<T> &kept, bool adds,
                                                   const Rows<T> &b)
{
    Square<T> sums;
    ROLLED
    for (int from = 0; from < into.size; from += TILE) {
        if (!from)
            sums = kept;
        else if (adds)
            into.load(sums, from);
        else
            sums.clear();
        multiply<!TRANSPOSED, false>(
            s, sums, {into.count, into.size - from}, b.count,
            [&](int i, int k) { return TRANSPOSED ? s.scores[k][i] : s.scores[i][k]; },
            [&](int i, int k) { return b(k, from + i); });
        if (from)
            into.store(sums, from);
        else
            kept = sums;
    }
}

template <typename T>
__global__ void attention_backward_rows(GRID_CONSTANT(AttentionTask) task)
{
    STATIC_SHARED(Shared<T>, s);
    const dt_attention_call &c = task.call;
    Place p = tile_of_rows(task);
    Rows<T> into = rows_of<T>(c, c.query_grad, p, c.size);
    Square<T> kept, gradients;
    kept.clear();
    ROLLED
    for (; p.key < c.key_length && !is_left_out(c, p); p.key += TILE) {
        find_gradients(task, p, s, gradients, [](Square<T>) {});
        add_product<false>(s, into, kept, p.key > 0, keys_of<T>(c, c.key, p, c.size));
    }
    into.store(kept, 0);
}

template <typename T>
__global__ void attention_backward_keys(GRID_CONSTANT(AttentionTask) task)
{
    STATIC_SHARED(Shared<T>, s);
    const dt_attention_call &c = task.call;
    Place p = tile_of_keys(task);
    Rows<T> for_key = keys_of<T>(c, c.key_grad, p, c.size);
    Rows<T> for_value = keys_of<T>(c, c.value_grad, p, c.value_size);
    Square<T> kept_key, kept_value, gradients;
    bool adds = false;
    kept_key.clear();
    kept_value.clear();
    ROLLED
    for (int64_t left = (int64_t)task.group * task.row_tiles; left > 0;
         left--, next_rows(c, &p)) {
        if (is_left_out(c, p))
            continue;
        find_gradients(task, p, s, gradients, [&](Square<T> shares) {
            if (!c.value_grad.data)
                return;
            if (task.dropout.on)
                drop(task.dropout, s, shares);
            show(s, shares);
            add_product<true>(s, for_value, kept_value, adds,
                              rows_of<T>(c, c.grad, p, c.value_size));
        });
        if (c.key_grad.data)
            add_product<true>(s, for_key, kept_key, adds,
                              rows_of<T>(c, c.query, p, c.size));
        adds = true;
    }
    if (c.key_grad.data)
        for_key.store(kept_key, 0);
    if (c.value_grad.data)
        for_value.store(kept_value, 0);
    /* Keys that are left out in all rows. */
    kept_key.clear();
    ROLLED
    for (int from = TILE; !adds && from < for_key.size && c.key_grad.data; from += TILE)
        for_key.store(kept_key, from);
    ROLLED
    for (int from = TILE; !adds && from < for_value.size && c.value_grad.data;
         from += TILE)
        for_value.store(kept_key, from);
}

template <typename T>
static int start_attention(dt_stream stream, AttentionTask &task)
{
    const dt_attention_call &c = task.call;
    int64_t rows = c.batch * c.heads * c.length;
    if (!c.grad.data)
        return START_BARRIERS("starting attention", stream, (attention_forward<T>),
                              c.batch * c.heads * task.row_tiles, task);
    Scratch dots(stream, (size_t)rows * sizeof(T));
    task.dots = dots.data;
    if (!task.dots || START_BARRIERS("starting attention", stream, (attention_dots<T>),
                                     (rows + BLOCK / 32 - 1) / (BLOCK / 32), task))
        return -1;
    if (c.query_grad.data &&
        START_BARRIERS("starting attention", stream, (attention_backward_rows<T>),
                       c.batch * c.heads * task.row_tiles, task))
        return -1;
    return c.key_grad.data || c.value_grad.data
               ? START_BARRIERS("starting attention", stream,
                                (attention_backward_keys<T>),
                                c.batch * c.key_heads * task.key_tiles, task)
               : 0;
}

/* Writes the mask, a block for each 16 rows. */
__global__ void dropout_mask(dt_bool *out, int64_t length, int64_t key_length,
                             GRID_CONSTANT(Dropout) d)
{
    const unsigned blocks = (unsigned)d.row_blocks, head = blockIdx.x / blocks;
    const int64_t row = (int64_t)(blockIdx.x % blocks) * DROPOUT_SIDE;
    const DropoutDraw draw(d);
    ROLLED
    for (int64_t u = threadIdx.x; u < d.key_blocks * 64; u += BLOCK)
        draw.each(block_counter(d, head, row, 0) + u, [&](int w, bool stays) {
            int64_t i = row + u % 64 / 8 + w / 2 * 8;
            int64_t k = u / 64 * DROPOUT_SIDE + u % 8 + w % 2 * 8;
            if (i < length && k < key_length)
                out[(head * length + i) * key_length + k] = dt_bool(stays);
        });
    leave_start(d);
}

} // namespace

int dt_cuda_attention(dt_stream stream, const dt_attention_call *call)
{
    Dropout dropout;
    const dt_dropout_mask_call mask = {nullptr, call->batch * call->heads, call->length,
                                       call->key_length, call->dropout};
    if (take_attention_dropout(stream, &mask, &dropout))
        return -1;
    if (dt_dtype_is_half(call->dtype))
        return attention_of_halves(stream, call, dropout);
    dt_device_properties gpu;
    if (dt_cuda_device_properties(stream.device, &gpu))
        return -1;
    /* To keep wheels small, there are no kernels with dropout on tensor cores of float32. */
    if (!dropout.on && attention_fits_floats(call, 10 * gpu.major + gpu.minor))
        return attention_of_floats(stream, call);
    AttentionTask task = {*call,
                          dropout,
                          nullptr,
                          (unsigned)((call->length + TILE - 1) / TILE),
                          (unsigned)((call->key_length + TILE - 1) / TILE),
                          (unsigned)(call->heads / call->key_heads)};
    return call->dtype == DT_FLOAT64 ? start_attention<double>(stream, task)
                                     : start_attention<float>(stream, task);
}

int dt_cuda_attention_backward(dt_stream stream, const dt_attention_call *call)
{
    return dt_cuda_attention(stream, call);
}

int dt_cuda_dropout_mask(dt_stream stream, const dt_dropout_mask_call *c)
{
    Dropout dropout;
    if (take_attention_dropout(stream, c, &dropout))
        return -1;
    return START_BLOCKS("drawing a mask", stream, dropout_mask,
                        c->batch * dropout.row_blocks, c->out, c->length, c->key_length,
                        dropout);
}
