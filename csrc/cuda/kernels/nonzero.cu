#include "cuda/kernels/layout.h"

/* Tiles of elements are counted, then numbered by where their results begin: first the
 * tiles of each group, then the groups. No thread waits for another, and no stage is
 * longer than the square root of the number of tiles. */
#define TILE ((int64_t)DT_NONZERO_TILE)

typedef dt_tiles Tiles;
NO_POINTERS(Tiles)

__global__ void count_tiles(const dt_bool *holds, int64_t *counts, Tiles t)
{
    int64_t tile = thread_number(), begin = tile * TILE;
    if (tile >= t.tiles)
        return;
    int64_t end = begin + TILE < t.numel ? begin + TILE : t.numel, count = 0;
    for (int64_t i = begin; i < end; i++)
        count += (bool)holds[i];
    counts[tile] = count;
}

/* The tiles of a group: from counts to where each begins within the group. */
__global__ void number_tiles(int64_t *counts, Tiles t)
{
    int64_t group = thread_number(), begin = group * t.group;
    if (group >= t.groups)
        return;
    int64_t end = begin + t.group < t.tiles ? begin + t.group : t.tiles, sum = 0;
    for (int64_t i = begin; i < end; i++) {
        int64_t count = counts[i];
        counts[i] = sum;
        sum += count;
    }
    counts[t.tiles + group] = sum;
}

/* The groups, by one thread; after them the total. */
__global__ void number_groups(int64_t *counts, Tiles t)
{
    if (thread_number())
        return;
    int64_t sum = 0;
    for (int64_t g = 0; g < t.groups; g++) {
        int64_t count = counts[t.tiles + g];
        counts[t.tiles + g] = sum;
        sum += count;
    }
    counts[t.tiles + t.groups] = sum;
}

struct Shape {
    int ndim;
    int64_t sizes[DT_MAX_NDIM];
};
NO_POINTERS(Shape)

__global__ void write_places(const dt_bool *holds, const int64_t *counts, int64_t *out,
                             Tiles t, GRID_CONSTANT(Shape) shape)
{
    int64_t tile = thread_number(), begin = tile * TILE;
    if (tile >= t.tiles)
        return;
    int64_t end = begin + TILE < t.numel ? begin + TILE : t.numel;
    int64_t *to = out + counts[tile] + counts[t.tiles + tile / t.group];
    int64_t total = counts[t.tiles + t.groups];
    /* Other work may have written `holds` since they were counted. */
    for (int64_t i = begin; i < end && to < out + total; i++) {
        if (!(bool)holds[i])
            continue;
        int64_t rest = i;
        ROLLED
        for (int d = shape.ndim - 1; d >= 0; d--) {
            to[d * total] = rest % shape.sizes[d];
            rest /= shape.sizes[d];
        }
        to++;
    }
}

int dt_cuda_nonzero_count(dt_stream stream, const dt_nonzero_call *call)
{
    const char *doing = "counting what is not 0";
    Tiles t = dt_tiles_of(call->numel);
    if (START(doing, stream, count_tiles, t.tiles, call->holds, call->workspace, t) ||
        START(doing, stream, number_tiles, t.groups, call->workspace, t))
        return -1;
    return START(doing, stream, number_groups, 1, call->workspace, t);
}

int dt_cuda_nonzero_write(dt_stream stream, const dt_nonzero_call *call)
{
    Tiles t = dt_tiles_of(call->numel);
    Shape shape = {};
    shape.ndim = call->ndim;
    for (int d = 0; d < call->ndim; d++)
        shape.sizes[d] = call->shape[d];
    return START("writing where something is not 0", stream, write_places, t.tiles,
                 call->holds, call->workspace, call->out, t, shape);
}
