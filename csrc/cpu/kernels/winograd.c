#include "cpu/kernels/winograd.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Channels and rows from which on the products outweigh the transforms. Fewer cells in
 * all do not outweigh those of the weights. */
#define LEAST       16
#define LEAST_CELLS 64
/* Bytes of an item's transformed source. */
#define SOURCE_BYTES (384 << 10)
/* Channels of a block of the gradient, and items of it, about: they do not depend on
 * the number of threads, nor does its rounding. */
#define BLOCK          64
#define GRADIENT_ITEMS 8

static bool is_three(const dt_patch_axis *a)
{
    return a->taps == 3 && a->tap_step == 1 && a->move == 1 && a->step == 1 &&
           (a->offset_step == 1 || a->offset_step == -1);
}

static int64_t cells_of(const dt_patch_axis *a)
{
    return (a->count + 1) / 2;
}

bool dt_winograd_pays(const dt_patches *p, int64_t size)
{
    const dt_patch_axis *a = p->axis;
    return size == sizeof(float) && p->groups == 1 && p->channels >= LEAST &&
           p->rows >= LEAST &&
           p->batch * cells_of(&a[1]) * cells_of(&a[2]) >= LEAST_CELLS &&
           a[0].taps == 1 && a[0].count == 1 && a[0].size == 1 && is_three(&a[1]) &&
           is_three(&a[2]) && a[1].offset_step == a[2].offset_step;
}

bool dt_winograd_gradient_pays(const dt_patches *p, int64_t size)
{
    return dt_winograd_pays(p, size) && cells_of(&p->axis[2]) <= DT_WINOGRAD_CELLS;
}

static int no_memory(void)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "convolution: no memory for its transformed operands; delete some "
                   "tensors first");
}

static dt_winograd start_winograd(const dt_patches *p)
{
    dt_winograd w = {.p = p, .turned = p->axis[1].offset_step < 0};
    for (int d = 0; d < 2; d++)
        w.offset[d] = p->axis[1 + d].offset - (w.turned ? 2 : 0);
    w.down = cells_of(&p->axis[1]);
    w.across = cells_of(&p->axis[2]);
    w.lines = p->batch * w.down;
    return w;
}

/* Lines of at most `most` cells, of one line at least, that fill the products' tiles of
 * `columns` best. */
static int64_t best_lines(const dt_winograd *w, int64_t most, int64_t columns)
{
    int64_t best = 1;
    double share = 0;
    for (int64_t n = 1; n == 1 || (n <= w->lines && n * w->across <= most); n++) {
        const int64_t cells = n * w->across;
        const double filled =
            (double)cells / (double)(dt_divide_up(cells, columns) * columns);
        if (filled >= share) {
            share = filled;
            best = n;
        }
    }
    return best;
}

int dt_winograd_run(const dt_patches *p)
{
    const dt_winograd_kernels *kernels = dt_cpu_kernels.winograd;
    dt_winograd w = start_winograd(p);
    const int64_t cell = DT_WINOGRAD_PLANES * p->channels * (int64_t)sizeof(float);
    const int64_t threads = dt_pool_threads(), columns = kernels->tile_columns;
    int64_t most = SOURCE_BYTES / cell / columns * columns;
    most = dt_least(most, dt_divide_up(w.lines * w.across, threads));
    w.line_part = best_lines(&w, most < columns ? columns : most, columns);
    w.cells = w.line_part * w.across;
    const int64_t items = dt_divide_up(w.lines, w.line_part);
    w.tile_rows = dt_even_part(p->rows, kernels->tile_rows);
    w.tiles = dt_divide_up(p->rows, w.tile_rows);
    w.tile_part =
        dt_divide_up(w.tiles, dt_least(dt_divide_up(2 * threads, items), w.tiles));
    w.tile_parts = dt_divide_up(w.tiles, w.tile_part);
    void *room;
    if (posix_memalign(&room, 64, (size_t)(w.tiles * w.tile_rows * cell)))
        return no_memory();
    w.weights = room;
    int status = dt_pool_try(kernels->weights, &w, w.tiles, 1);
    if (!status)
        status = dt_pool_try(kernels->product, &w, items * w.tile_parts, 1);
    free(room);
    return status < 0 ? -1 : w.failed ? no_memory() : 0;
}

int dt_winograd_run_gradient(const dt_patches *p)
{
    const dt_winograd_kernels *kernels = dt_cpu_kernels.winograd;
    dt_winograd w = start_winograd(p);
    w.line_part = dt_least(DT_WINOGRAD_CELLS / w.across, w.lines);
    w.cells = w.line_part * w.across;
    w.block = dt_even_part(p->channels, BLOCK);
    w.blocks = dt_divide_up(p->channels, w.block);
    w.tile_rows = dt_even_part(w.block, kernels->tile_rows);
    w.filled = dt_divide_up(w.block, w.tile_rows) * w.tile_rows;
    w.width = dt_divide_up(p->rows, kernels->tile_columns) * kernels->tile_columns;
    const int64_t chunks = dt_divide_up(w.lines, w.line_part);
    w.parts = dt_least(dt_divide_up(GRADIENT_ITEMS, w.blocks), chunks);
    w.line_range = dt_divide_up(chunks, w.parts) * w.line_part;
    w.parts = dt_divide_up(w.lines, w.line_range);
    void *sums;
    const int64_t bytes = w.blocks * w.parts * DT_WINOGRAD_PLANES * w.filled * w.width *
                          (int64_t)sizeof(float);
    if (posix_memalign(&sums, 64, (size_t)bytes))
        return no_memory();
    w.sums = sums;
    int status = dt_pool_try(kernels->gradient, &w, w.blocks * w.parts, 1);
    if (!status && !w.failed)
        status = dt_pool_try(kernels->gradient_sum, &w, p->channels, 8);
    free(sums);
    return status < 0 ? -1 : w.failed ? no_memory() : 0;
}
