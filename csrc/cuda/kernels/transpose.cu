/* Transposes by way of tiles in shared memory: a block reads a tile along the rows of the
 * source and writes it along those of the result, so that both are read and written in
 * runs. */
#include "cuda/kernels/transpose.h"

#include "cuda/kernels/compute.h"

namespace {

/* Elements of a side of a tile. Where they are small a tile is larger, so that a thread
 * has enough of them on their way. */
template <typename Word>
constexpr int tile_side = sizeof(Word) < 8 ? 64 : 32;

/* Tiles are numbered as elements are: their two dimensions are the innermost ones of the
 * layout, that of the source's runs and then that of the result's. */
struct Tiles {
    Layout<2> layout;
    unsigned across, along;      /* elements of these dimensions */
    int64_t out_across, x_along; /* bytes */
};
NO_POINTERS(Tiles)

template <typename Word>
__global__ void transpose_tiles(char *out, const char *x, GRID_CONSTANT(Tiles) t)
{
    constexpr int SIDE = tile_side<Word>, WARPS = BLOCK / 32;
    constexpr int LINES = SIDE / WARPS, PARTS = SIDE / 32;
    /* Lines of an odd number of words of 4 or 8 bytes: the elements of a column are in
     * different banks. */
    constexpr int LINE = SIDE + (sizeof(Word) < 4 ? 4 / (int)sizeof(Word) : 1);
    STATIC_SHARED(Word[SIDE][LINE], tile);
    const Divider *sizes = t.layout.sizes + t.layout.ndim;
    int64_t at[2];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned along = layout_offsets(t.layout, blockIdx.x, at) * SIDE;
    unsigned left = divide(blockIdx.x, sizes[-1]);
    unsigned across = (left - divide(left, sizes[-2]) * sizes[-2].divisor) * SIDE;
    Word read[LINES][PARTS] = {};
    UNROLL
    for (int k = 0; k < LINES; k++) {
        unsigned line = warp + k * WARPS;
        const Word *from = (const Word *)(x + at[1] + line * t.x_along);
        UNROLL
        for (int part = 0; part < PARTS; part++)
            if (along + line < t.along && across + lane + part * 32 < t.across)
                read[k][part] = from[lane + part * 32];
    }
    UNROLL
    for (int k = 0; k < LINES; k++) {
        UNROLL
        for (int part = 0; part < PARTS; part++)
            tile[warp + k * WARPS][lane + part * 32] = read[k][part];
    }
    __syncthreads();
    UNROLL
    for (int k = 0; k < LINES; k++) {
        unsigned line = warp + k * WARPS;
        Word *to = (Word *)(out + at[0] + line * t.out_across);
        UNROLL
        for (int part = 0; part < PARTS; part++)
            if (across + line < t.across && along + lane + part * 32 < t.along)
                to[lane + part * 32] = tile[lane + part * 32][line];
    }
}

template <typename Word>
int start_tiles(dt_stream stream, const dt_plan *plan, int dim)
{
    /* The dimension of the source's runs goes next to the innermost one, which is that
     * of the result's. */
    const int SIDE = tile_side<Word>, last = plan->ndim - 1;
    dt_plan tiles = *plan;
    int64_t number = 1;
    for (int d = 0, to = 0; d < plan->ndim; d++) {
        int at = d == dim ? last - 1 : d == last ? last : to++;
        bool tiled = d == dim || d == last;
        tiles.shape[at] = tiled ? (plan->shape[d] + SIDE - 1) / SIDE : plan->shape[d];
        number *= tiles.shape[at];
        for (int k = 0; k < 2; k++)
            tiles.operands[k].strides[at] =
                plan->operands[k].strides[d] * (tiled ? SIDE : 1);
    }
    Tiles t = {layout_of<2>(&tiles), (unsigned)plan->shape[dim],
               (unsigned)plan->shape[last], plan->operands[0].strides[dim],
               plan->operands[1].strides[last]};
    return START_BARRIERS("starting a transpose", stream, (transpose_tiles<Word>),
                          number, (char *)plan->operands[0].data,
                          (const char *)plan->operands[1].data, t);
}

} // namespace

int transposed_dim(const dt_plan *plan)
{
    const dt_operand &out = plan->operands[0], &x = plan->operands[1];
    const int64_t item = (int64_t)dt_dtype_size(out.dtype), least = 16;
    int last = plan->ndim - 1;
    if (out.strides[last] != item || !x.strides[last] || x.strides[last] == item ||
        plan->shape[last] < least)
        return -1;
    for (int d = last - 1; d >= 0; d--)
        if (x.strides[d] == item && plan->shape[d] >= least)
            return d;
    return -1;
}

int start_transpose(dt_stream stream, const dt_plan *plan, int dim)
{
    return with_word(plan->operands[0].dtype, [&](auto word) {
        return start_tiles<decltype(word)>(stream, plan, dim);
    });
}
