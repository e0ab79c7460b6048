#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"
#include "device/convolution.h"

/* Positions of an item, and rows of one product: a panel of patches stays in the L1
 * cache, the stage in the L2 cache. */
#define POSITIONS    512
#define DEPTH        256
#define WEIGHT_DEPTH 192
#define STAGE_BYTES  (192 << 10)
/* Items of a gradient of a weight, about: they do not depend on the number of threads, nor
 * does its rounding. */
#define WEIGHT_ITEMS 16
#define LONG         5e5 /* multiplications from which on the GIL is released */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int no_memory(void)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "convolution: no memory to arrange the operands in; delete some "
                   "tensors first");
}

/* y from x: every tap, in steps of the stride. */
static void axis_of_output(dt_patch_axis *a, const dt_window *w, int d)
{
    *a = (dt_patch_axis){.count = w->output[d],
                         .step = 1,
                         .size = w->input[d],
                         .move = w->stride[d],
                         .offset = -w->padding[d],
                         .offset_step = w->dilation[d],
                         .taps = w->kernel[d],
                         .tap_step = 1};
}

/* x from y: elements first, first + stride, ... The taps that they meet are those for which
 * first + padding - tap * dilation is a multiple of the stride. */
static void axis_of_input(dt_patch_axis *a, const dt_window *w, int d, int64_t first)
{
    int64_t stride = w->stride[d], dilation = w->dilation[d], tap = 0;
    int64_t step = stride / common_divisor(stride, dilation);
    while (tap < step && tap < w->kernel[d] &&
           (first + w->padding[d] - tap * dilation) % stride)
        tap++;
    int64_t taps =
        tap < step && tap < w->kernel[d] ? dt_divide_up(w->kernel[d] - tap, step) : 0;
    *a = (dt_patch_axis){
        .count = dt_divide_up(w->input[d] - first, stride),
        .first = first,
        .step = stride,
        .size = w->output[d],
        .move = 1,
        .offset = taps ? (first + w->padding[d] - tap * dilation) / stride : 0,
        .offset_step = -(step * dilation / stride),
        .taps = taps,
        .tap_first = tap,
        .tap_step = step,
    };
}

/* Cuts the work. */
static void cut(dt_patches *p, int64_t size, int64_t depth)
{
    dt_patch_axis *a = p->axis;
    /* With one position the stride has no effect; a large one would enlarge the stage. */
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        if (a[d].count == 1)
            a[d].move = 1;
    int64_t plane = a[1].count * a[2].count, planes = p->batch * a[0].count;
    p->taps = a[0].taps * a[1].taps * a[2].taps;
    p->planes = plane < POSITIONS ? dt_least(POSITIONS / plane, planes) : 1;
    p->bands = plane < POSITIONS
                   ? 1
                   : dt_divide_up(a[1].count,
                                  a[2].count < POSITIONS ? POSITIONS / a[2].count : 1);
    p->band = dt_divide_up(a[1].count, p->bands);
    p->bands = dt_divide_up(a[1].count, p->band);
    p->places = dt_divide_up(planes, p->planes) * p->bands;
    int64_t across = a[2].taps ? a[2].taps - 1 : 0,
            down = a[1].taps ? a[1].taps - 1 : 0;
    int64_t width = (a[2].count - 1) * a[2].move + across * llabs(a[2].offset_step) + 1;
    p->stage_rows = (p->band - 1) * a[1].move + down * llabs(a[1].offset_step) + 1;
    p->pitch = dt_divide_up(width, a[2].move);
    p->row_length = p->pitch * a[2].move;
    p->plane_length = a[0].taps * p->stage_rows * p->row_length;
    int64_t bytes = p->planes * p->plane_length * size;
    p->block = p->taps ? depth / p->taps : p->channels;
    if (bytes && p->block > STAGE_BYTES / bytes)
        p->block = STAGE_BYTES / bytes;
    p->block = p->block < 1 ? 1 : p->block;
    p->blocks = p->channels ? dt_divide_up(p->channels, p->block) : 1;
    p->block = dt_divide_up(p->channels, p->blocks);
}

/* n rows in whole tiles, one at least. */
static int64_t fill(int64_t n, int64_t tile)
{
    return n < 1 ? tile : dt_divide_up(n, tile) * tile;
}

/* More items where there are few, by rows. */
static void cut_rows(dt_patches *p, const dt_patch_kernels *kernels)
{
    p->tile_rows = dt_even_part(p->rows, kernels->tile_rows);
    p->tile_columns = 2 * kernels->lanes;
    int64_t items = p->groups * p->places, tiles = dt_divide_up(p->rows, p->tile_rows);
    int64_t parts = dt_least(dt_divide_up(2 * dt_pool_threads(), items), tiles);
    p->row_part = dt_divide_up(tiles, parts) * p->tile_rows;
    p->row_parts = dt_divide_up(p->rows, p->row_part);
}

/* Whether the patches of a tap are a run of the stage, if positions are counted there. */
static int slides(const dt_patch_axis *a)
{
    return a[0].taps && a[1].taps && a[2].taps && a[1].move == 1 && a[2].move == 1;
}

static int run_product(dt_patches *p, const dt_patch_kernels *kernels, int64_t size)
{
    if (dt_winograd_pays(p, size))
        return dt_winograd_run(p);
    p->slides = p->rows <= kernels->tile_rows && slides(p->axis);
    cut(p, size, p->slides ? INT64_MAX : DEPTH);
    int status;
    if (p->channels == 1 && p->rows == 1) {
        status = dt_pool_try(kernels->depthwise, p, p->groups * p->places,
                             dt_divide_up(2048, POSITIONS));
    } else {
        cut_rows(p, kernels);
        void *packed = NULL;
        int64_t rows = fill(p->rows, p->tile_rows);
        int64_t bytes = p->groups * rows * p->channels * p->taps * size;
        if (posix_memalign(&packed, 64, (size_t)bytes + 64))
            return no_memory();
        kernels->pack(p, packed);
        p->weight = packed;
        status =
            dt_pool_try(kernels->product, p, p->groups * p->places * p->row_parts, 1);
        free(packed);
    }
    return status < 0 ? -1 : p->failed ? no_memory() : 0;
}

static int run_input(dt_patches *p, const dt_patch_kernels *kernels, const dt_window *w,
                     int64_t size)
{
    const void *weight = p->weight;
    for (int64_t z = 0; z < dt_least(w->stride[0], w->input[0]); z++)
        for (int64_t y = 0; y < dt_least(w->stride[1], w->input[1]); y++)
            for (int64_t x = 0; x < dt_least(w->stride[2], w->input[2]); x++) {
                const int64_t first[] = {z, y, x};
                for (int d = 0; d < DT_WINDOW_DIMS; d++)
                    axis_of_input(&p->axis[d], w, d, first[d]);
                p->weight = weight;
                if (run_product(p, kernels, size))
                    return -1;
            }
    return 0;
}

static int run_weight(dt_patches *p, const dt_patch_kernels *kernels, int64_t size)
{
    if (dt_winograd_gradient_pays(p, size))
        return dt_winograd_run_gradient(p);
    cut(p, size, WEIGHT_DEPTH);
    const int64_t depth_of_block = p->block * p->taps;
    p->slides = p->rows <= 2 * DT_FEW_ROWS && slides(p->axis);
    if (p->slides) {
        p->tile_columns = p->rows == 1 ? 1 : DT_FEW_ROWS;
        p->tile_rows = dt_even_part(depth_of_block, kernels->tile_rows /
                                                        (p->tile_columns == 1 ? 1 : 2));
    } else {
        const int64_t vectors = p->rows > kernels->lanes ? 2 : 1;
        p->tile_rows = dt_even_part(depth_of_block, 2 / vectors * kernels->tile_rows);
        p->tile_columns = vectors * kernels->lanes;
    }
    int64_t which = p->groups * p->blocks;
    int64_t depth = fill(depth_of_block, p->tile_rows);
    int64_t rows = fill(p->rows, p->tile_columns);
    p->parts = dt_least(dt_divide_up(WEIGHT_ITEMS, which), p->places);
    void *sums = NULL;
    if (posix_memalign(&sums, 64,
                       (size_t)(which * p->parts * depth * rows * size) + 64))
        return no_memory();
    p->sums = sums;
    int status = dt_pool_try(kernels->weight, p, which * p->parts, 1) < 0 ? -1
                 : p->failed ? no_memory()
                             : dt_pool_try(kernels->weight_sum, p, which,
                                           dt_divide_up(16384, depth * rows));
    free(sums);
    return status < 0 ? -1 : 0;
}

int dt_cpu_convolution(dt_stream stream, const dt_convolution *c)
{
    (void)stream;
    const dt_window *w = &c->window;
    const bool transposed = c->part == DT_CONVOLUTION_INPUT;
    const int64_t size = (int64_t)dt_dtype_size(c->dtype);
    const int64_t taps = dt_window_volume(w->kernel);
    const dt_patch_kernels *kernels = c->dtype == DT_FLOAT64
                                          ? &dt_cpu_kernels.convolution->float64
                                          : &dt_cpu_kernels.convolution->float32;
    dt_patches p = {.batch = c->batch,
                    .groups = c->groups,
                    .channels = transposed ? c->out : c->in,
                    .rows = transposed ? c->in : c->out,
                    .source = transposed ? c->y : c->x,
                    .target = transposed ? c->x : c->y,
                    .bias = c->bias,
                    .weight = c->w,
                    .weight_group = c->out * c->in * taps,
                    .weight_row = transposed ? taps : c->in * taps,
                    .weight_channel = transposed ? c->in * taps : taps,
                    .weight_tap = {w->kernel[1] * w->kernel[2], w->kernel[2], 1}};
    memcpy(p.target_size, transposed ? w->input : w->output, sizeof p.target_size);
    DT_WITHOUT_GIL((double)c->batch * (double)c->groups * (double)(c->in * c->out) *
                       (double)taps * (double)dt_window_volume(w->output) >
                   LONG);
    if (transposed)
        return run_input(&p, kernels, w, size);
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        axis_of_output(&p.axis[d], w, d);
    return c->part == DT_CONVOLUTION_WEIGHT ? run_weight(&p, kernels, size)
                                            : run_product(&p, kernels, size);
}
