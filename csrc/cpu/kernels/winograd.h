/* Convolutions by kernels of 3 x 3 with fewer multiplications: Winograd's F(2 x 2, 3 x
 * 3), as A. Lavin and S. Gray describe it in "Fast Algorithms for Convolutional Neural
 * Networks" (2016).
 *
 * The target is cut into cells of 2 x 2, which meet 4 x 4 elements of the source.
 * Source and weights are transformed into 16 planes, in which 16 products of matrices
 * (rows x channels by channels x cells) take the place of 36, and their results are
 * transformed back. The gradient of the weights is the adjoint: products of rows x
 * cells by cells x channels. An inf or nan reaches all results of the cells that meet
 * it.
 *
 * An item of the work is a range of lines, which are rows of cells. Its transformed
 * source stays in the second cache while the weights pass by it. */
#ifndef DT_CPU_KERNELS_WINOGRAD_H
#define DT_CPU_KERNELS_WINOGRAD_H

#include <stdbool.h>

#include "cpu/kernels/convolution.h"

#define DT_WINOGRAD_PLANES 16
/* Cells whose products one call adds up for the gradient of the weights. */
#define DT_WINOGRAD_CELLS 64

typedef struct dt_winograd {
    const dt_patches *p; /* one group, float32 */
    bool turned;         /* taps count backwards */
    int64_t offset[2];   /* of the source's element that cell (0, 0) begins at */
    int64_t down, across, lines; /* cells of an image; lines of all images */
    int64_t line_part, cells;    /* lines of an item, and their cells */
    /* Tiles of rows; tiles of an item, and items of its lines. */
    int64_t tile_rows, tiles, tile_part, tile_parts;
    float *weights; /* transformed: [tile][plane][channel][row of the tile] */
    /* For the gradient: channels of a block, filled up to tiles of tile_rows; ranges of
     * lines that add up alone. */
    int64_t block, blocks, filled, line_range, parts;
    float *sums; /* [block][part][plane][channel][row], rows filled up to `width` */
    int64_t width;
    int failed; /* no memory */
} dt_winograd;

/* Tasks of dt_pool_run over `context`, a dt_winograd. */
typedef struct dt_winograd_kernels {
    int64_t tile_rows, tile_columns; /* of a product's tile */
    void (*weights)(void *context, int64_t begin, int64_t end);  /* tiles */
    void (*product)(void *context, int64_t begin, int64_t end);  /* items */
    void (*gradient)(void *context, int64_t begin, int64_t end); /* blocks x parts */
    void (*gradient_sum)(void *context, int64_t begin, int64_t end); /* channels */
} dt_winograd_kernels;

/* Whether the convolution, of elements of `size` bytes, is such a one, and so large
 * that it is faster so; and its gradient of the weights. */
bool dt_winograd_pays(const dt_patches *p, int64_t size);
bool dt_winograd_gradient_pays(const dt_patches *p, int64_t size);
/* -1 after dt_fail. */
int dt_winograd_run(const dt_patches *p);
int dt_winograd_run_gradient(const dt_patches *p);

#endif
