#include "cpu/kernels/winograd.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Channels and rows from which on the products outweigh the transforms: of images of many
 * tiles, and of others. Fewer tiles in all do not outweigh those of the weights. */
#define LEAST       128
#define LEAST_SMALL 256
#define MANY_TILES  128
#define LEAST_TILES 48
/* Of the transformed source and target of a part: what a processor's caches hold. */
#define PART_BYTES (8 << 20)

static bool is_three(const dt_patch_axis *a)
{
    return a->taps == 3 && a->tap_step == 1 && a->move == 1 && a->step == 1 &&
           (a->offset_step == 1 || a->offset_step == -1);
}

bool dt_winograd_pays(const dt_patches *p, int64_t size)
{
    const dt_patch_axis *a = p->axis;
    const int64_t thin = p->channels < p->rows ? p->channels : p->rows;
    const int64_t tiles = (a[1].count + 1) / 2 * ((a[2].count + 1) / 2);
    return size == sizeof(float) && p->groups == 1 &&
           thin >= (tiles < MANY_TILES ? LEAST_SMALL : LEAST) &&
           p->batch * tiles >= LEAST_TILES && a[0].taps == 1 && a[0].count == 1 &&
           a[0].size == 1 && is_three(&a[1]) && is_three(&a[2]) &&
           a[1].offset_step == a[2].offset_step;
}

/* At least n, and no multiple of a large power of two: rows that lie so far apart take the
 * same places of a cache. */
static int64_t spread(int64_t n)
{
    return (n + 31) / 32 * 32 + 16;
}

static int multiply(const dt_winograd *w)
{
    const int64_t rows = w->p->rows, channels = w->p->channels;
    const dt_gemm g = {.dtype = DT_FLOAT32,
                       .batch = DT_WINOGRAD_PLANES,
                       .m = rows,
                       .n = w->columns,
                       .k = channels,
                       .a = w->weights,
                       .a_batch = rows * w->depth,
                       .a_row = w->depth,
                       .a_col = 1,
                       .b = w->source,
                       .b_batch = channels * w->pitch,
                       .b_row = w->pitch,
                       .b_col = 1,
                       .c = w->target,
                       .c_batch = rows * w->pitch,
                       .c_row = w->pitch,
                       .alpha = 1};
    return dt_cpu_gemm((dt_stream){0, NULL}, &g);
}

static int run_part(dt_winograd *w)
{
    const dt_winograd_kernels *kernels = dt_cpu_kernels.winograd;
    w->columns = w->images * w->tiles;
    w->pitch = spread(w->columns);
    return dt_pool_try(kernels->source, w, w->p->channels, 8) < 0 || w->failed ||
                   multiply(w) || dt_pool_try(kernels->target, w, w->p->rows, 8) < 0
               ? -1
               : 0;
}

int dt_winograd_run(const dt_patches *p)
{
    dt_winograd w = {.p = p, .turned = p->axis[1].offset_step < 0};
    for (int d = 0; d < 2; d++)
        w.offset[d] = p->axis[1 + d].offset - (w.turned ? 2 : 0);
    w.down = (p->axis[1].count + 1) / 2;
    w.across = (p->axis[2].count + 1) / 2;
    w.tiles = w.down * w.across;
    const int64_t item = DT_WINOGRAD_PLANES * (int64_t)sizeof(float);
    const int64_t column = item * (p->channels + p->rows);
    int64_t most = PART_BYTES / (column * w.tiles);
    most = most < 1 ? 1 : most > p->batch ? p->batch : most;
    void *room = NULL;
    w.depth = spread(p->channels);
    const int64_t weights = p->rows * w.depth * item, columns = spread(most * w.tiles);
    if (posix_memalign(&room, 64, (size_t)(weights + columns * column)))
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "convolution: no memory for its transformed operands; delete "
                       "some tensors first");
    w.weights = room;
    w.source = w.weights + weights / (int64_t)sizeof(float);
    w.target = w.source + DT_WINOGRAD_PLANES * p->channels * columns;
    int status =
        dt_pool_try(dt_cpu_kernels.winograd->weights, &w, p->rows, 8) < 0 ? -1 : 0;
    for (; !status && w.first < p->batch; w.first += w.images) {
        w.images = p->batch - w.first < most ? p->batch - w.first : most;
        status = run_part(&w);
    }
    free(room);
    return w.failed ? dt_fail(DT_ERROR_HOST_MEMORY,
                              "convolution: no memory to arrange the source in; delete "
                              "some tensors first")
                    : status;
}
