/* Attention of float16 and bfloat16 forward on GPUs of compute capability 9.0, whose
 * tensor cores read shared memory on their own (warpgroup.h).
 *
 * Each warpgroup of a block but the first has 64 rows of the query. It goes through tiles
 * of keys and values, and keeps of each row the greatest score so far, the sum of the
 * exponentials of its scores less that, and the sum of values times these exponentials,
 * its shares; both are multiplied by a factor when a greater score comes. The first
 * warpgroup does nothing but copy tiles, of which there are two of each in shared memory.
 *
 * The tensor cores are to have work all the time. So a warpgroup starts two products, of
 * the next tile's keys with the query and of this tile's shares with values, and takes
 * exponentials of the first one while the second one runs; and warpgroups take turns, so
 * that one multiplies while another one takes exponentials. Rounding is that of
 * attention_halves.cu. */
#include "cuda/kernels/attention_warpgroups.h"

namespace {

#define KEYS   128 /* of a tile */
#define STAGES 2

/* A tile that the first warpgroup fills and the others use, again and again. */
template <int D>
struct Stage {
    Tile<KEYS, D> tile;
    PhaseBarrier there, used;

    __device__ __forceinline__ void fill(AsyncCopies &copies, const Rows &from,
                                         int turn)
    {
        used.await((unsigned)turn / STAGES % 2 ^ 1);
        tile.fill(copies, from);
        copies.arrive_at(&there.state);
    }
    __device__ __forceinline__ Tile<KEYS, D> &await(int turn)
    {
        there.await((unsigned)turn / STAGES % 2);
        release_to_products();
        return tile;
    }
    /* This warp has finished its products with the tile. */
    __device__ __forceinline__ void release()
    {
        if (threadIdx.x % 32 == 0)
            used.arrive();
    }
};

template <int D, int GROUPS>
struct Memory {
    Tile<GROUP_ROWS, D> query[GROUPS];
    Stage<D> keys[STAGES], values[STAGES];

    __device__ __forceinline__ void begin(int groups)
    {
        for (int i = 0; i < STAGES; i++) {
            keys[i].there.begin(GROUP);
            values[i].there.begin(GROUP);
            keys[i].used.begin(4 * (unsigned)groups);
            values[i].used.begin(4 * (unsigned)groups);
        }
    }
};

/* The rows of a block, and the tiles of keys that they are multiplied by. */
struct Place {
    unsigned of; /* batch and head as one number */
    int head, batch, key_head, first, tiles;
    int groups; /* warpgroups that have rows, at most so many of a block */
    __device__ __forceinline__ Place(const TensorCoreTask &task, int most)
    {
        const dt_attention_call &c = task.call;
        of = blockIdx.x / task.tiles;
        head = (int)(of % (unsigned)c.heads);
        batch = (int)(of / (unsigned)c.heads);
        key_head = (int)((unsigned)head / task.group);
        /* The last rows first: where scores are causal, they take longest. */
        first = (int)(task.tiles - 1 - blockIdx.x % task.tiles) * most * GROUP_ROWS;
        groups = ((int)c.length - first + GROUP_ROWS - 1) / GROUP_ROWS;
        if (groups > most)
            groups = most;
        const int rows = groups * GROUP_ROWS;
        int end = (int)c.key_length;
        if (c.causal && end > first + rows)
            end = first + rows;
        tiles = (end + KEYS - 1) / KEYS;
    }
};

/* Rows of a warpgroup in registers: a lane has elements of row lane / 4 of its warp's 16,
 * and of that 8 below. */
template <typename T, int D>
struct Strip {
    WarpgroupProducts products;
    float scores[KEYS / 8][4], sums[D / 8][4];
    unsigned shares[KEYS / 16][4]; /* rounded scores, as a factor */
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, factor[2];

    __device__ __forceinline__ void multiply(const Tile<GROUP_ROWS, D> &query,
                                             const Tile<KEYS, D> &key)
    {
        products.begin();
        UNROLL
        for (int k = 0; k < D / 16; k++)
            products.template start<T>(scores, query.across(k), key.across(k), k > 0);
        products.commit();
    }
    __device__ __forceinline__ void add_values(const Tile<KEYS, D> &value)
    {
        products.begin();
        UNROLL
        for (int k = 0; k < KEYS / 16; k++)
            products.template start_down<T>(sums, shares[k], value.down(k));
        products.commit();
    }
    /* Columns of the tile from ends[h] on do not count. */
    __device__ __forceinline__ void leave_out(const int (&ends)[2])
    {
        UNROLL
        for (int h = 0; h < 2; h++) {
            const int end = ends[h] - (int)threadIdx.x % 4 * 2;
            UNROLL
            for (int i = 0; i < KEYS / 8; i++) {
                UNROLL
                for (int e = 0; e < 2; e++)
                    if (i * 8 + e >= end)
                        scores[i][2 * h + e] = -INFINITY;
            }
        }
    }
    /* Scores become shares, and `factor` what `sums` has to be multiplied by. */
    __device__ __forceinline__ void weigh(float scale)
    {
        UNROLL
        for (int h = 0; h < 2; h++) {
            float most = top[h];
            UNROLL
            for (int i = 0; i < KEYS / 8; i++)
                most = fmaxf(most, fmaxf(scores[i][2 * h], scores[i][2 * h + 1]));
            most = along_row(most, [](float a, float b) { return fmaxf(a, b); });
            /* Where all are left out, each share is exp2(-inf), 0. */
            const float base = most == -INFINITY ? 0 : most * scale;
            factor[h] = power_of_2(top[h] * scale - base);
            top[h] = most;
            sum[h] *= factor[h]; /* of this lane's columns */
            UNROLL
            for (int i = 0; i < KEYS / 8; i++) {
                UNROLL
                for (int e = 2 * h; e < 2 * h + 2; e++) {
                    scores[i][e] = power_of_2(fmaf(scores[i][e], scale, -base));
                    sum[h] += scores[i][e];
                }
            }
        }
    }
    __device__ __forceinline__ void rescale()
    {
        UNROLL
        for (int i = 0; i < D / 8; i++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                sums[i][e] *= factor[e / 2];
        }
    }
};

/* `first`: the first of both rows of this lane. */
template <typename T, int D>
static __device__ __forceinline__ void store(const dt_attention_call &c, Strip<T, D> &s,
                                             const Place &place, int first)
{
    const Rows out(c.out, place.batch, place.head, 0, c.length, c.value_size);
    UNROLL
    for (int h = 0; h < 2; h++) {
        const int i = first + 8 * h;
        const float sum = along_row(s.sum[h], [](float a, float b) { return a + b; });
        if (threadIdx.x % 4 == 0 && i < out.count)
            ((float *)c.log_sum)[place.of * c.length + i] =
                attention::log_sum(s.top[h] * (float)c.scale, sum);
        store_row<T>(out, i, s.sums, h, attention::inverse_sum(sum));
    }
}

/* The work of the first warpgroup. It brings the last tile first, which is the one in which
 * columns may be left out. */
template <int D, int GROUPS>
static __device__ __forceinline__ void
bring_tiles(const dt_attention_call &c, const Place &place, Memory<D, GROUPS> &s)
{
    AsyncCopies copies;
    ROLLED
    for (int turn = 0; turn < place.tiles; turn++) {
        const int first = (place.tiles - 1 - turn) * KEYS;
        s.keys[turn % STAGES].fill(
            copies,
            Rows(c.key, place.batch, place.key_head, first, c.key_length, c.size),
            turn);
        s.values[turn % STAGES].fill(copies,
                                     Rows(c.value, place.batch, place.key_head, first,
                                          c.key_length, c.value_size),
                                     turn);
    }
    copies.await();
}

/* The turns of warpgroups at the tensor cores, at barriers 1 to GROUPS. A warpgroup that is
 * alone never waits for its turn. */
struct Turns {
    int mine, next, threads;
    __device__ __forceinline__ Turns(int group, int groups)
        : mine(1 + group), next(1 + (group + 1) % groups),
          threads(groups == 1 ? GROUP : 2 * GROUP)
    {
    }
    __device__ __forceinline__ void await() const { meet(mine, threads); }
    __device__ __forceinline__ void pass() const { ::pass(next, threads); }
};

/* The work of each other warpgroup that has rows; `mine` is its number among them. */
template <typename T, int D, int GROUPS>
static __device__ __forceinline__ void take_rows(const dt_attention_call &c,
                                                 const Place &place,
                                                 Memory<D, GROUPS> &s, int mine)
{
    const Turns turns(mine, place.groups);
    const float scale = (float)c.scale * LOG2_E;
    const int group_first = place.first + mine * GROUP_ROWS;
    const int warp_first = warp_row(group_first), row = lane_row(group_first);
    Strip<T, D> strip;
    clear(strip.sums);
    AsyncCopies copies;
    auto &query = s.query[mine];
    query.fill(copies,
               Rows(c.query, place.batch, place.head, group_first, c.length, c.size));
    copies.await();
    release_to_products();
    meet(1 + GROUPS + mine, GROUP); /* the warpgroup alone */
    if (mine == place.groups - 1)
        turns.pass();

    auto weigh = [&](int turn) {
        const int first = (place.tiles - 1 - turn) * KEYS,
                  end = (int)c.key_length - first;
        if (end < KEYS || (c.causal && warp_first + 1 - first < KEYS)) {
            int ends[2] = {end, end};
            UNROLL
            for (int h = 0; h < 2 && c.causal; h++)
                if (end > row + 8 * h + 1 - first)
                    ends[h] = row + 8 * h + 1 - first;
            strip.leave_out(ends);
        }
        strip.weigh(scale);
    };
    strip.multiply(query, s.keys[0].await(0));
    strip.products.template await<0>(strip.scores);
    s.keys[0].release();
    weigh(0);
    round_pairs<T>(strip.shares, strip.scores);
    ROLLED
    for (int turn = 1; turn < place.tiles; turn++) {
        auto &keys = s.keys[turn % STAGES];
        auto &values = s.values[(turn - 1) % STAGES];
        auto &key = keys.await(turn);
        turns.await();
        strip.multiply(query, key);
        strip.add_values(values.await(turn - 1));
        turns.pass();
        strip.products.template await<1>(strip.scores);
        keys.release();
        weigh(turn);
        strip.products.template await<0>(strip.sums);
        values.release();
        strip.rescale();
        round_pairs<T>(strip.shares, strip.scores);
    }
    strip.add_values(s.values[(place.tiles - 1) % STAGES].await(place.tiles - 1));
    strip.products.template await<0>(strip.sums);
    store(c, strip, place, row);
    if (mine == 0)
        turns
            .await(); /* the last turn that was passed to it: a barrier needs both sides */
}

template <typename T, int D, int GROUPS>
__global__ void __launch_bounds__((GROUPS + 1) * GROUP, 1)
    attention_forward_warpgroups(GRID_CONSTANT(TensorCoreTask) task)
{
    if constexpr (HAS_WARPGROUPS) {
        DYNAMIC_SHARED(unsigned char, start);
        auto &s = *(Memory<D, GROUPS> *)(start + (-shared_address(start) & 1023));
        const Place place(task, GROUPS);
        if (threadIdx.x == 0)
            s.begin(place.groups);
        __syncthreads();
        /* The warpgroups share 65536 registers; each is given as many as it needs. */
        if (threadIdx.x < GROUP) {
            give_registers<GROUPS == 3 ? 32 : 40>();
            bring_tiles(task.call, place, s);
        } else {
            take_registers<GROUPS == 3 ? 160 : 232>();
            const int mine = (int)threadIdx.x / GROUP - 1;
            if (mine < place.groups)
                take_rows<T>(task.call, place, s, mine);
        }
    }
}

template <typename T, int D, int GROUPS>
static int forward_of_size(dt_stream stream, TensorCoreTask &task)
{
    const dt_attention_call &c = task.call;
    const int rows = GROUPS * GROUP_ROWS;
    task.tiles = (unsigned)((c.length + rows - 1) / rows);
    return start_result(
        "starting attention",
        (Relaxed(), LAUNCH_LARGE((attention_forward_warpgroups<T, D, GROUPS>),
                                 c.batch * c.heads * task.tiles, (GROUPS + 1) * GROUP,
                                 sizeof(Memory<D, GROUPS>) + 1024,
                                 (cudaStream_t)stream.handle, task)));
}
template <typename T>
static int start_forward(dt_stream stream, TensorCoreTask &task)
{
    return task.call.size <= 64 && task.call.value_size <= 64
               ? forward_of_size<T, 64, 3>(stream, task)
               : forward_of_size<T, 128, 2>(stream, task);
}

static bool in_chunks(const dt_attention_matrices &m, int64_t columns)
{
    return is_aligned(m.data, 16) && (m.batch | m.head | m.row | columns) % 8 == 0;
}
} // namespace

bool attention_fits_warpgroups(const dt_attention_call *c, int capability)
{
#if defined(DT_WARPGROUPS) || defined(SIM_CUDA)
    const bool built = true;
#else
    const bool built = false;
#endif
    /* With a scale above 0 the greatest score is the greatest product times the scale.
     * Gradients that a call does not have are NULL with strides of 0. */
    return built && capability == 90 && !c->mask && c->scale > 0 &&
           in_chunks(c->query, c->size) && in_chunks(c->key, c->size) &&
           in_chunks(c->value, c->value_size) && in_chunks(c->out, c->value_size) &&
           in_chunks(c->grad, 0) && in_chunks(c->query_grad, 0) &&
           in_chunks(c->key_grad, 0) && in_chunks(c->value_grad, 0);
}

int attention_of_warpgroups(dt_stream stream, TensorCoreTask &task)
{
    return task.call.dtype == DT_FLOAT16 ? start_forward<dt_float16>(stream, task)
                                         : start_forward<dt_bfloat16>(stream, task);
}
