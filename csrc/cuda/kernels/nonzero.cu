#include "cuda/kernels/nonzero.h"

#include "cuda/runtime/device.h"
#include "cuda/kernels/layout.h"

/* Tiles of elements are counted, then numbered by where their results begin: first the
 * tiles of each group, then the groups. No thread waits for another, and no stage is
 * longer than the square root of the number of tiles. */
#define TILE ((int64_t)DT_NONZERO_TILE)

typedef dt_tiles Tiles;
NO_POINTERS(Tiles)

static __device__ __forceinline__ int64_t running_number()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void count_tiles(const bool *holds, int64_t *counts, Tiles t)
{
    int64_t tile = running_number(), begin = tile * TILE;
    if (tile >= t.tiles)
        return;
    int64_t end = begin + TILE < t.numel ? begin + TILE : t.numel, count = 0;
    for (int64_t i = begin; i < end; i++)
        count += holds[i];
    counts[tile] = count;
}

/* The tiles of a group: from counts to where each begins within the group. */
__global__ void number_tiles(int64_t *counts, Tiles t)
{
    int64_t group = running_number(), begin = group * t.group;
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
    if (running_number())
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

__global__ void write_places(const bool *holds, const int64_t *counts, int64_t *out,
                             Tiles t, GRID_CONSTANT(Shape) shape)
{
    int64_t tile = running_number(), begin = tile * TILE;
    if (tile >= t.tiles)
        return;
    int64_t end = begin + TILE < t.numel ? begin + TILE : t.numel;
    int64_t *to = out + counts[tile] + counts[t.tiles + tile / t.group];
    int64_t total = counts[t.tiles + t.groups];
    for (int64_t i = begin; i < end; i++) {
        if (!holds[i])
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

int nonzero_count(dt_stream stream, const dt_nonzero_call *call)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    Tiles t = dt_tiles_of(call->numel);
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("counting what is not 0",
             LAUNCH(count_tiles, blocks_for(t.tiles), BLOCK, 0, handle, call->holds,
                    call->workspace, t));
    CUDA_TRY("numbering what is not 0", LAUNCH(number_tiles, blocks_for(t.groups),
                                               BLOCK, 0, handle, call->workspace, t));
    CUDA_TRY("numbering what is not 0",
             LAUNCH(number_groups, 1, 1, 0, handle, call->workspace, t));
    return 0;
}

int nonzero_write(dt_stream stream, const dt_nonzero_call *call)
{
    Tiles t = dt_tiles_of(call->numel);
    Shape shape = {};
    shape.ndim = call->ndim;
    for (int d = 0; d < call->ndim; d++)
        shape.sizes[d] = call->shape[d];
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("writing where something is not 0",
             LAUNCH(write_places, blocks_for(t.tiles), BLOCK, 0,
                    (cudaStream_t)stream.handle, call->holds, call->workspace,
                    call->out, t, shape));
    return 0;
}
