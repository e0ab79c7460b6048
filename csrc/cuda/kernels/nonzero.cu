#include "cuda/kernels/warp.h"

/* Tiles of elements are counted, then numbered by where their results begin: first the
 * tiles of each group, then the groups. A block has a tile, or numbers a group, and waits
 * for no other; a group has no more tiles than the square root of their number. */
enum { PACK = 16 }; /* elements of a thread: one load */
static_assert(DT_NONZERO_TILE == BLOCK * PACK, "a block has a tile");

typedef dt_tiles Tiles;
NO_POINTERS(Tiles)

template <typename T>
static __device__ __forceinline__ T plus(T a, T b)
{
    return a + b;
}

/* A bit for each byte that is not 0. */
static __device__ __forceinline__ unsigned bits_of_word(unsigned word)
{
    unsigned high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
    /* Moves bits 7, 15, 23 and 31 next to each other. */
    return ((high >> 7) * 0x01020408u) >> 24 & 15u;
}

/* A bit for each element of this thread's pack; none for those beyond the end. */
static __device__ __forceinline__ unsigned bits_of_pack(const dt_bool *holds,
                                                        int64_t numel)
{
    const int64_t at = thread_number() * PACK;
    unsigned bits = 0;
    if (at + PACK <= numel && is_aligned(holds + at, PACK)) {
        Vector<unsigned, 4> words = *(const Vector<unsigned, 4> *)(holds + at);
        UNROLL
        for (int k = 0; k < 4; k++)
            bits |= bits_of_word(words.v[k]) << 4 * k;
    } else {
        ROLLED
        for (int k = 0; k < PACK && at + k < numel; k++)
            bits |= (unsigned)(bool)holds[at + k] << k;
    }
    return bits;
}

__global__ void count_tiles(const dt_bool *holds, int64_t *counts, Tiles t)
{
    int count = __popc(bits_of_pack(holds, t.numel));
    count = reduce_group<false>(count, BLOCK, plus<int>);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = count;
}

/* `width` counts for each block, from its first one to `end` at most: each becomes the sum
 * of those before it, and the sum of all is the block's of `totals`. */
__global__ void number_tiles(int64_t *counts, int64_t *totals, int64_t width,
                             int64_t end)
{
    STATIC_SHARED(int64_t[BLOCK / 32], warps);
    const int64_t begin = blockIdx.x * width;
    end = begin + width < end ? begin + width : end;
    int64_t sum = 0;
    ROLLED
    for (int64_t first = begin; first < end; first += BLOCK) {
        const int64_t at = first + threadIdx.x;
        int64_t mine = at < end ? counts[at] : 0, all;
        int64_t before = before_in_block(mine, sum, &all, warps, plus<int64_t>);
        if (at < end)
            counts[at] = before;
        sum = all;
    }
    if (threadIdx.x == 0)
        totals[blockIdx.x] = sum;
}

struct Shape {
    int ndim;
    LongDivider sizes[DT_MAX_NDIM];
};
NO_POINTERS(Shape)

__global__ void write_places(const dt_bool *holds, const int64_t *counts, int64_t *out,
                             Tiles t, GRID_CONSTANT(Shape) shape)
{
    STATIC_SHARED(unsigned[BLOCK / 32], warps);
    STATIC_SHARED(unsigned short[DT_NONZERO_TILE], found); /* indices in the tile */
    const int64_t tile = blockIdx.x, total = counts[t.tiles + t.groups];
    const int64_t start =
        counts[tile] + counts[t.tiles + blockIdx.x / (unsigned)t.group];
    unsigned bits = bits_of_pack(holds, t.numel), all;
    unsigned at =
        before_in_block((unsigned)__popc(bits), 0u, &all, warps, plus<unsigned>);
    ROLLED
    for (; bits; bits &= bits - 1)
        found[at++] = (unsigned short)(threadIdx.x * PACK +
                                       (unsigned)__popc((bits & (0 - bits)) - 1));
    __syncthreads();
    /* Neighbouring threads take neighbouring results. */
    ROLLED
    for (unsigned i = threadIdx.x; i < all; i += BLOCK) {
        const int64_t to = start + i;
        if (to >= total) /* other work has written `holds` since they were counted */
            return;
        int64_t rest = tile * DT_NONZERO_TILE + found[i];
        ROLLED
        for (int d = shape.ndim - 1; d > 0; d--) {
            const int64_t above = divide(rest, shape.sizes[d]);
            out[d * total + to] = rest - above * shape.sizes[d].divisor;
            rest = above;
        }
        out[to] = rest;
    }
}

int dt_cuda_nonzero_count(dt_stream stream, const dt_nonzero_call *call)
{
    const char *doing = "counting what is not 0";
    Tiles t = dt_tiles_of(call->numel);
    int64_t *counts = call->workspace, *groups = counts + t.tiles;
    if (START_BARRIERS(doing, stream, count_tiles, t.tiles, call->holds, counts, t) ||
        START_BARRIERS(doing, stream, number_tiles, t.groups, counts, groups, t.group,
                       t.tiles))
        return -1;
    return START_BARRIERS(doing, stream, number_tiles, 1, groups, groups + t.groups,
                          t.groups, t.groups);
}

int dt_cuda_nonzero_write(dt_stream stream, const dt_nonzero_call *call)
{
    Tiles t = dt_tiles_of(call->numel);
    Shape shape = {};
    shape.ndim = call->ndim;
    for (int d = 0; d < call->ndim; d++)
        shape.sizes[d] = long_divider_for(call->shape[d]);
    return START_BARRIERS("writing where something is not 0", stream, write_places,
                          t.tiles, call->holds, call->workspace, call->out, t, shape);
}
