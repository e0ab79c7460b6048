/* A convolution as a matrix product with patches of a tensor, the source, as the CPU
 * computes it.
 *
 * Position (t0, t1, t2) of the target and tap (j0, j1, j2) of the kernel meet at the
 * source's element t * move + offset + j * offset_step, in each dimension, where there
 * is one. So y is computed from x, with every element of the kernel as a tap; and so is
 * x from y: the elements of x with one remainder by the stride meet the same taps, at
 * steps of 1 in y.
 *
 * The target is cut into items, of some rows of a plane or of some whole planes. The
 * part of the source that an item meets is staged: copied, a block of channels at a
 * time, with its padding, and columns with one remainder by `move` side by side. Then
 * each tap of a row of the target is a run of the stage, and a panel of patches is a
 * few runs for each tap. Where the target has few rows (channels), its products take
 * less time than packing such panels: then patches are read from the stage
 * itself. */
#ifndef DT_CPU_KERNELS_CONVOLUTION_H
#define DT_CPU_KERNELS_CONVOLUTION_H

#include "ops/window.h"

/* Rows of a tile of the gradient of a weight of so few rows that it is not packed. */
#define DT_FEW_ROWS 4

static inline int64_t dt_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t dt_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}
/* Cuts n into parts of equal size, of at most `most`: the size, at least 1. */
static inline int64_t dt_even_part(int64_t n, int64_t most)
{
    return n < 1 ? 1 : dt_divide_up(n, dt_divide_up(n, most));
}

typedef struct dt_patch_axis {
    int64_t count;       /* positions of the target: first, first + step, ... */
    int64_t first, step; /* of the target */
    int64_t size, move, offset, offset_step; /* of the source */
    int64_t taps, tap_first, tap_step;       /* of the kernel: tap_first, ... */
} dt_patch_axis;

/* Which channels, planes (of all images) and rows are staged. */
typedef struct dt_patch_part {
    int64_t group, channel, channels;
    int64_t plane, planes, row, rows;
} dt_patch_part;

typedef struct dt_patches {
    dt_patch_axis axis[DT_WINDOW_DIMS];
    int64_t batch, groups;
    int64_t channels, rows; /* of one group: the source's, the target's */
    int64_t taps;           /* of the three dimensions */
    const void *source;     /* [batch][groups * channels][sizes of the axes] */
    void *target;           /* [batch][groups * rows][target_size] */
    int64_t target_size[DT_WINDOW_DIMS];
    const void *bias; /* a number for each channel of the target, or NULL */
    const void
        *weight; /* element (group, row, channel, taps) by strides, in elements */
    void *sums;  /* of gradients of a weight: [item][patches of a block][rows], both
                  * filled up to whole tiles */
    int64_t weight_group, weight_row, weight_channel, weight_tap[DT_WINDOW_DIMS];
    /* How it is cut. */
    int64_t planes, bands; /* planes of an item; items of a plane, where planes is 1 */
    int64_t band;          /* rows of an item */
    int64_t places;        /* items of a group */
    int64_t block, blocks; /* channels of a block; blocks */
    int64_t row_parts, row_part;     /* items of a position, rows of one */
    int64_t tile_rows, tile_columns; /* of the products' tiles */
    int slides;                      /* Patches are read from the stage, not packed. */
    int64_t parts; /* of a gradient of a weight: ranges of positions, summed apart */
    /* Sizes of the stage, in elements. */
    int64_t stage_rows, pitch, row_length, plane_length;
    int failed; /* no memory */
} dt_patches;

typedef struct dt_patch_kernels {
    /* Rows of a tile, at most; lanes of a register. A tile's row is of two registers,
     * or of one: then it has up to twice the rows. */
    int64_t tile_rows, lanes;
    /* Weights in tiles of rows: packed[tile][channel][tap][row], for all groups. */
    void (*pack)(const dt_patches *p, void *packed);
    /* Items begin to end-1 of dt_pool_run; weight is packed. */
    void (*product)(void *patches, int64_t begin, int64_t end);
    /* One channel in and one out for each group; weight is as it was. */
    void (*depthwise)(void *patches, int64_t begin, int64_t end);
    /* The target is read, sums are written; then they are added to the weight. */
    void (*weight)(void *patches, int64_t begin, int64_t end);
    void (*weight_sum)(void *patches, int64_t begin, int64_t end);
} dt_patch_kernels;

typedef struct dt_convolution_kernels {
    dt_patch_kernels float32, float64;
} dt_convolution_kernels;

#endif
