/* Gradients of attention of float16 and bfloat16 on GPUs of compute capability 9.0, beside
 * attention_warpgroups.cu: of query, a warpgroup for 64 rows; or with OF_KEYS of key and
 * value, a warpgroup for 64 keys.
 *
 * A warpgroup has its own rows of two matrices in shared memory, and goes through tiles of
 * the other side, which the first warpgroup of the block copies there. `first` and `second`
 * are query and the gradient of out, or key and value: scores are products of the first
 * ones, gradients of shares those of the second. Shares follow from scores and from the
 * sums of exponentials, which are among the statistics. While one warpgroup takes
 * exponentials, another one multiplies. Rounding is that of attention_halves.cu.
 *
 * Sizes to 64 leave registers for two blocks of query on a multiprocessor. These are
 * without the first warpgroup: the others copy tiles as well. */
#include "cuda/kernels/attention_warpgroups.h"

namespace {

#define GROUPS 2 /* warpgroups of a block that have rows */
#define STAGES 2

template <bool OF_KEYS, int D>
struct Block {
    static constexpr bool is_one_of_two = !OF_KEYS && D == 64;
    static constexpr int n = OF_KEYS || is_one_of_two ? 64 : 128; /* rows of a tile */
    static constexpr int threads = (GROUPS + !is_one_of_two) * GROUP;
    static constexpr int copiers = is_one_of_two ? threads : GROUP; /* of a tile */
};

template <bool OF_KEYS, int N, int D>
struct Memory {
    struct Stage {
        Tile<N, D> first, second;
        PhaseBarrier first_there, second_there, used;
    } stages[STAGES];
    struct Own {
        Tile<GROUP_ROWS, D> first, second;
    } own[GROUPS];
    alignas(16) Statistic statistics[OF_KEYS ? GROUPS * 4 : 1][N]; /* of each warp */

    __device__ __forceinline__ void begin(unsigned copiers)
    {
        for (Stage &stage : stages) {
            stage.first_there.begin(copiers);
            stage.second_there.begin(copiers);
            stage.used.begin(4 * GROUPS);
        }
    }
};

/* The rows of a block, and its way through the tiles of the other side. */
template <bool OF_KEYS, int N>
struct Place {
    int batch, head, first, rows; /* its first row, of so many */
    int others, start, end; /* of the other side: its rows, and those that count */
    int turns;              /* tiles from start to end, of one head after another */

    __device__ __forceinline__ Place(const TensorCoreTask &task)
    {
        const dt_attention_call &c = task.call;
        const unsigned heads = (unsigned)(OF_KEYS ? c.key_heads : c.heads);
        const unsigned of = blockIdx.x / task.tiles, tile = blockIdx.x % task.tiles;
        head = (int)(of % heads);
        batch = (int)(of / heads);
        /* Where scores are causal, what takes longest first. */
        first = (int)(OF_KEYS ? tile : task.tiles - 1 - tile) * GROUPS * GROUP_ROWS;
        rows = (int)(OF_KEYS ? c.key_length : c.length);
        others = end = (int)(OF_KEYS ? c.length : c.key_length);
        start = c.causal && OF_KEYS ? first / N * N : 0;
        if (c.causal && !OF_KEYS && end > first + GROUPS * GROUP_ROWS)
            end = first + GROUPS * GROUP_ROWS;
        turns = end > start ? (end - start + N - 1) / N : 0;
        turns *= OF_KEYS ? (int)task.group : 1;
    }
    /* f(number of the tile, its head, its first row) */
    template <class F>
    __device__ __forceinline__ void each_tile(const TensorCoreTask &task, F f) const
    {
        int at = start, other = head;
        other = OF_KEYS ? head * (int)task.group : head / (int)task.group;
        ROLLED
        for (int turn = 0; turn < turns; turn++) {
            f(turn, other, at);
            at += N;
            if (at >= end) {
                at = start;
                other++;
            }
        }
    }
};

/* The registers of a warpgroup: 64 rows of N and of D columns. */
template <typename T, int N, int D, bool OF_KEYS>
struct Strip {
    WarpgroupProducts products;
    float shares[N / 8][4],
        gradients[N / 8][4]; /* at first the products they come of */
    float sums[D / 8][4], value_sums[OF_KEYS ? D / 8 : 1][4];
    unsigned factor[N / 16][4], value_factor[OF_KEYS ? N / 16 : 1][4];
    Statistic own[2]; /* unless OF_KEYS, where each column has its own */

    __device__ __forceinline__ void multiply(float (&c)[N / 8][4],
                                             const Tile<GROUP_ROWS, D> &mine,
                                             const Tile<N, D> &tile)
    {
        release_to_products();
        products.begin();
        UNROLL
        for (int k = 0; k < D / 16; k++)
            products.template start<T>(c, mine.across(k), tile.across(k), k > 0);
        products.commit();
    }
    __device__ __forceinline__ void
    add(float (&c)[D / 8][4], const unsigned (&by)[N / 16][4], const Tile<N, D> &tile)
    {
        products.begin();
        UNROLL
        for (int k = 0; k < N / 16; k++)
            products.template start_down<T>(c, by[k], tile.down(k));
        products.commit();
    }
    /* Columns of row h that are before the first one or not among `count` from there on. */
    __device__ __forceinline__ void leave_out(int h, int first, int count)
    {
        first -= (int)threadIdx.x % 4 * 2;
        UNROLL
        for (int i = 0; i < N / 8; i++) {
            UNROLL
            for (int e = 0; e < 2; e++)
                if ((unsigned)(i * 8 + e - first) >= (unsigned)count)
                    shares[i][2 * h + e] = -INFINITY;
        }
    }
    /* f(eight columns, element, statistic of its row of the query) */
    template <class F>
    __device__ __forceinline__ void each(const Statistic *tile, F f)
    {
        UNROLL
        for (int i = 0; i < N / 8; i++) {
            Vector<Statistic, 2> columns{};
            if (OF_KEYS)
                columns =
                    *(const Vector<Statistic, 2> *)(tile + i * 8 + threadIdx.x % 4 * 2);
            UNROLL
            for (int e = 0; e < 4; e++)
                f(i, e, OF_KEYS ? columns.v[e % 2] : own[e / 2]);
        }
    }
};

/* The tile of this turn, from row `at` of a head on. */
template <bool OF_KEYS, int N, int D>
static __device__ __forceinline__ void
bring_tile(const TensorCoreTask &task, const Place<OF_KEYS, N> &place,
           Memory<OF_KEYS, N, D> &s, AsyncCopies &copies, int turn, int head, int at)
{
    constexpr int copiers = Block<OF_KEYS, D>::copiers;
    const dt_attention_call &c = task.call;
    auto &stage = s.stages[turn % STAGES];
    stage.used.await((unsigned)turn / STAGES % 2 ^ 1);
    stage.first.template fill<copiers>(
        copies,
        Rows(OF_KEYS ? c.query : c.key, place.batch, head, at, place.others, c.size));
    copies.arrive_at(&stage.first_there.state);
    stage.second.template fill<copiers>(copies,
                                        Rows(OF_KEYS ? c.grad : c.value, place.batch,
                                             head, at, place.others, c.value_size));
    copies.arrive_at(&stage.second_there.state);
}

/* The work of the first warpgroup where it has no rows. */
template <bool OF_KEYS, int N, int D>
static __device__ __forceinline__ void bring_tiles(const TensorCoreTask &task,
                                                   const Place<OF_KEYS, N> &place,
                                                   Memory<OF_KEYS, N, D> &s)
{
    AsyncCopies copies;
    place.each_tile(task, [&](int turn, int head, int at) {
        bring_tile(task, place, s, copies, turn, head, at);
    });
    copies.await();
}

/* The work of each warpgroup that has rows; `mine` is its number among them. */
template <typename T, bool OF_KEYS, int N, int D>
static __device__ __forceinline__ void take_rows(const TensorCoreTask &task,
                                                 const Place<OF_KEYS, N> &place,
                                                 Memory<OF_KEYS, N, D> &s, int mine)
{
    const dt_attention_call &c = task.call;
    const float scale = (float)c.scale * LOG2_E;
    const int group_first = place.first + mine * GROUP_ROWS;
    const int warp_first = warp_row(group_first), row = lane_row(group_first);
    auto &own = s.own[mine];
    AsyncCopies copies;
    own.first.fill(copies, Rows(OF_KEYS ? c.key : c.query, place.batch, place.head,
                                group_first, place.rows, c.size));
    own.second.fill(copies, Rows(OF_KEYS ? c.value : c.grad, place.batch, place.head,
                                 group_first, place.rows, c.value_size));
    copies.await();
    release_to_products();
    meet(1 + mine, GROUP); /* the warpgroup alone */

    Strip<T, N, D, OF_KEYS> strip;
    clear(strip.sums);
    if constexpr (OF_KEYS)
        clear(strip.value_sums);
    const int64_t head = place.batch * (int)c.heads + place.head;
    UNROLL
    for (int h = 0; h < 2 && !OF_KEYS; h++)
        if (row + 8 * h < (int)task.padded)
            strip.own[h] = task.statistics[head * task.padded + row + 8 * h];
        else
            strip.own[h] = {};

    constexpr bool brings = Block<OF_KEYS, D>::is_one_of_two;
    if (brings && place.turns)
        bring_tile(task, place, s, copies, 0, place.head / (int)task.group,
                   place.start);
    place.each_tile(task, [&](int turn, int other, int at) {
        Vector<Statistic, 2> pair{};
        if (OF_KEYS) {
            const int64_t rows =
                (int64_t)(place.batch * (int)c.heads + other) * task.padded + at;
            pair = *(const Vector<Statistic, 2> *)(task.statistics + rows +
                                                   threadIdx.x % 32 * 2);
        }
        auto &stage = s.stages[turn % STAGES];
        const unsigned parity = (unsigned)turn / STAGES % 2;
        stage.first_there.await(parity);
        strip.multiply(strip.shares, own.first, stage.first);
        stage.second_there.await(parity);
        strip.multiply(strip.gradients, own.second, stage.second);

        if (brings && turn + 1 < place.turns)
            bring_tile(task, place, s, copies, turn + 1, other, at + N);
        Statistic *statistics = s.statistics[OF_KEYS ? warp_row(0) / 16 + 4 * mine : 0];
        if constexpr (OF_KEYS) {
            __syncwarp(); /* those of the tile before have been read */
            *(Vector<Statistic, 2> *)(statistics + threadIdx.x % 32 * 2) = pair;
            __syncwarp();
        }
        strip.products.template await<1>(strip.shares);
        const int end = place.others - at;
        /* Whether keys of this warp are after rows of it; a row takes keys up to its own. */
        const bool later =
            c.causal && (OF_KEYS ? warp_first + 15 > at : warp_first + 1 - at < N);
        if (end < N || later) {
            UNROLL
            for (int h = 0; h < 2; h++) {
                const int diagonal = row + 8 * h - at;
                int first = 0, count = end;
                if (c.causal && OF_KEYS)
                    first = diagonal;
                else if (c.causal && count > diagonal + 1)
                    count = diagonal + 1;
                first = first > 0 ? first : 0;
                count -= first;
                strip.leave_out(h, first, count > 0 ? count : 0);
            }
        }
        strip.each(statistics, [&](int i, int e, const Statistic &of) {
            float &share = strip.shares[i][e];
            share = power_of_2(fmaf(share, scale, -of.log_sum));
        });
        if constexpr (OF_KEYS) {
            round_pairs<T>(strip.value_factor, strip.shares);
            strip.add(strip.value_sums, strip.value_factor, stage.second);
        }
        strip.products.template await<OF_KEYS ? 1 : 0>(strip.gradients);
        strip.each(statistics, [&](int i, int e, const Statistic &of) {
            float &gradient = strip.gradients[i][e];
            gradient = strip.shares[i][e] * (gradient - of.dot);
        });
        round_pairs<T>(strip.factor, strip.gradients);
        strip.add(strip.sums, strip.factor, stage.first);
        strip.products.template await<0>(strip.sums);
        if (threadIdx.x % 32 == 0)
            stage.used.arrive();
    });
    if constexpr (OF_KEYS)
        strip.products.template await<0>(strip.value_sums);
    auto store = [&](const dt_attention_matrices &to, int64_t size, float factor,
                     const float (&sums)[D / 8][4]) {
        const Rows gradient(to, place.batch, place.head, 0, place.rows, size);
        UNROLL
        for (int h = 0; h < 2 && to.data; h++)
            store_row<T>(gradient, row + 8 * h, sums, h, factor);
    };
    store(OF_KEYS ? c.key_grad : c.query_grad, c.size, (float)c.scale, strip.sums);
    if constexpr (OF_KEYS)
        store(c.value_grad, c.value_size, 1, strip.value_sums);
}

template <typename T, bool OF_KEYS, int D>
__global__ void __launch_bounds__(Block<OF_KEYS, D>::threads,
                                  Block<OF_KEYS, D>::is_one_of_two ? 2 : 1)
    attention_backward_warpgroups(GRID_CONSTANT(TensorCoreTask) task)
{
    if constexpr (HAS_WARPGROUPS) {
        typedef Block<OF_KEYS, D> Block;
        DYNAMIC_SHARED(unsigned char, start);
        auto &s =
            *(Memory<OF_KEYS, Block::n, D> *)(start + (-shared_address(start) & 1023));
        const Place<OF_KEYS, Block::n> place(task);
        if (threadIdx.x == 0)
            s.begin(Block::copiers);
        __syncthreads();
        if constexpr (Block::is_one_of_two) {
            take_rows<T>(task, place, s, (int)threadIdx.x / GROUP);
        } else if (threadIdx.x < GROUP) {
            give_registers<24>();
            bring_tiles(task, place, s);
        } else {
            take_registers<240>();
            take_rows<T>(task, place, s, (int)threadIdx.x / GROUP - 1);
        }
    }
}

template <typename T, bool OF_KEYS, int D>
static int side_of_size(dt_stream stream, TensorCoreTask &task)
{
    typedef Block<OF_KEYS, D> Block;
    const dt_attention_call &c = task.call;
    const int64_t rows = OF_KEYS ? c.key_length : c.length;
    const int of_block = GROUPS * GROUP_ROWS;
    task.tiles = (unsigned)((rows + of_block - 1) / of_block);
    return start_result(
        "starting attention",
        (Relaxed(),
         LAUNCH_LARGE((attention_backward_warpgroups<T, OF_KEYS, D>),
                      c.batch * (OF_KEYS ? c.key_heads : c.heads) * task.tiles,
                      Block::threads, sizeof(Memory<OF_KEYS, Block::n, D>) + 1024,
                      (cudaStream_t)stream.handle, task)));
}
template <typename T, int D>
static int gradients_of_size(dt_stream stream, TensorCoreTask &task)
{
    const dt_attention_call &c = task.call;
    if (c.query_grad.data && side_of_size<T, false, D>(stream, task))
        return -1;
    return c.key_grad.data || c.value_grad.data ? side_of_size<T, true, D>(stream, task)
                                                : 0;
}
template <typename T>
static int start_gradients(dt_stream stream, TensorCoreTask &task)
{
    return task.call.size <= 64 && task.call.value_size <= 64
               ? gradients_of_size<T, 64>(stream, task)
               : gradients_of_size<T, 128>(stream, task);
}
} // namespace

int attention_gradients_of_warpgroups(dt_stream stream, TensorCoreTask &task)
{
    return task.call.dtype == DT_FLOAT16 ? start_gradients<dt_float16>(stream, task)
                                         : start_gradients<dt_bfloat16>(stream, task);
}
