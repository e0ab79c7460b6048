/* Convolutions by kernels of 3 x 3 with fewer multiplications: Winograd's F(2 x 2, 3 x 3),
 * as A. Lavin and S. Gray describe it in "Fast Algorithms for Convolutional Neural
 * Networks" (2016).
 *
 * The target is cut into tiles of 2 x 2, which meet 4 x 4 elements of the source. Source
 * and weights are transformed, 16 products of matrices (rows x channels by channels x
 * tiles) take the place of 36, and their results are transformed back. An inf or nan
 * reaches all results of the tiles that meet it. */
#ifndef DT_CPU_KERNELS_WINOGRAD_H
#define DT_CPU_KERNELS_WINOGRAD_H

#include <stdbool.h>

#include "cpu/kernels/convolution.h"

#define DT_WINOGRAD_PLANES 16

typedef struct dt_winograd {
    const dt_patches *p; /* one group, float32 */
    bool turned;         /* taps count backwards */
    int64_t offset[2];   /* of the source's element that tile (0, 0) begins at */
    int64_t down, across, tiles;    /* of an image */
    int64_t first, images, columns; /* of this part: images, and their tiles */
    /* By plane: [16][rows][depth], [16][channels][pitch], [16][rows][pitch]; depth is of
     * the channels, pitch of the columns. */
    float *weights, *source, *target;
    int64_t depth, pitch;
    int failed; /* no memory */
} dt_winograd;

/* Tasks of dt_pool_run over `context`, a dt_winograd. */
typedef struct dt_winograd_kernels {
    void (*weights)(void *context, int64_t begin, int64_t end); /* rows */
    void (*source)(void *context, int64_t begin, int64_t end);  /* channels */
    void (*target)(void *context, int64_t begin, int64_t end);  /* rows */
} dt_winograd_kernels;

/* Whether the convolution, of elements of `size` bytes, is such a one, and so large that it
 * is faster so. */
bool dt_winograd_pays(const dt_patches *p, int64_t size);
/* -1 after dt_fail. */
int dt_winograd_run(const dt_patches *p);

#endif
