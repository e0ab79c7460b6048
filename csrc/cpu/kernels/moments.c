#include "cpu/runtime/backend.h"

#include <math.h>
#include <stdlib.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"
#include "cpu/kernels/walk.h"

#define LEAF  512 /* elements that are looked at twice while they are in the cache */
#define GROUP (128 * LEAF) /* the unit of parallel work within one result */
#define LEAF_ROWS  64
#define GROUP_ROWS (16 * LEAF_ROWS)
#define WORK       16384 /* elements of a piece of parallel work, at least */

typedef struct job {
    const dt_reduction *r;
    const dt_moments_kernel *kernel;
    size_t size;
    bool dense;
    int64_t groups, blocks;
    dt_moments *parts; /* [result][group], or [outer][group][column] */
} job;

static void reduce_each(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_reduction *r = j->r;
    _Alignas(64) char buffer[LEAF * sizeof(double)];
    for (int64_t item = begin; item < end; item++) {
        int64_t kept = item / j->groups, first = item % j->groups * GROUP;
        int64_t last =
            r->folded_numel - first > GROUP ? first + GROUP : r->folded_numel;
        const char *base = offset_of(r, kept);
        dt_moments all = {0, 0, 0}, leaf;
        walk w;
        walk_start(&w, base, r->folded_ndim, r->folded_shape, r->folded_strides, first);
        for (; first < last; first += LEAF) {
            int64_t n = last - first > LEAF ? LEAF : last - first;
            const char *x = base + first * (int64_t)j->size;
            if (!j->dense) {
                gather(&w, r->input_dtype, r->input_dtype, n, buffer);
                x = buffer;
            }
            j->kernel->run(n, x, &leaf);
            all = dt_moments_join(all, leaf);
        }
        j->parts[item] = all;
    }
}

static void reduce_blocks(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_reduction *r = j->r;
    int64_t width = inner_columns(r);
    dt_moments leaf[DT_MOMENTS_COLUMNS];
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item % j->blocks, group = item / j->blocks % j->groups;
        int64_t outer = item / j->blocks / j->groups;
        int64_t column = block * DT_MOMENTS_COLUMNS;
        int64_t columns = width - column;
        if (columns > DT_MOMENTS_COLUMNS)
            columns = DT_MOMENTS_COLUMNS;
        int64_t first = group * GROUP_ROWS, last = r->folded_numel;
        if (last - first > GROUP_ROWS)
            last = first + GROUP_ROWS;
        dt_moments *all = j->parts + (outer * j->groups + group) * width + column;
        for (int64_t c = 0; c < columns; c++)
            all[c].count = 0;
        walk w;
        walk_start(&w, offset_of(r, outer * width + column), r->folded_ndim,
                   r->folded_shape, r->folded_strides, first);
        while (first < last) {
            int64_t rows = walk_run(&w);
            if (rows > LEAF_ROWS)
                rows = LEAF_ROWS;
            if (rows > last - first)
                rows = last - first;
            j->kernel->rows(rows, w.strides[w.ndim - 1], columns, w.data, leaf);
            for (int64_t c = 0; c < columns; c++)
                all[c] = dt_moments_join(all[c], leaf[c]);
            walk_on(&w, rows);
            first += rows;
        }
    }
}

static void store(const dt_reduction *r, void *to, int64_t i, double value)
{
    if (r->output_dtype == DT_FLOAT32)
        ((float *)to)[i] = (float)value;
    else
        ((double *)to)[i] = value;
}

/* Joins the groups of every result, which are `stride` apart. */
static void finish(const job *j, void *mean, int64_t width)
{
    const dt_reduction *r = j->r;
    double divisor = (double)r->folded_numel - r->parameter;
    divisor = divisor > 0 ? divisor : 0;
    for (int64_t i = 0; i < r->kept_numel; i++) {
        dt_moments all = {0, NAN, 0};
        const dt_moments *parts = j->parts + i / width * j->groups * width + i % width;
        for (int64_t g = 0; g < j->groups; g++)
            all = dt_moments_join(all, parts[g * width]);
        store(r, r->output, i, all.count ? all.square / divisor : NAN);
        if (mean)
            store(r, mean, i, all.mean);
    }
}

int dt_cpu_moments(dt_stream stream, void *mean, const dt_reduction *r)
{
    (void)stream;
    const dt_moments_kernels *kernels = dt_cpu_kernels.moments;
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    job j = {.r = r, .size = (size_t)size};
    j.kernel = r->input_dtype == DT_FLOAT32 ? &kernels->float32 : &kernels->float64;
    j.dense =
        r->folded_ndim == 0 || (r->folded_ndim == 1 && r->folded_strides[0] == size);
    bool columns = by_columns(r);
    int64_t per_group = columns ? GROUP_ROWS : GROUP;
    int64_t width = columns ? inner_columns(r) : 1;
    j.groups = (r->folded_numel + per_group - 1) / per_group;
    j.blocks = (width + DT_MOMENTS_COLUMNS - 1) / DT_MOMENTS_COLUMNS;
    dt_moments few[64];
    int64_t count = j.groups * r->kept_numel;
    j.parts = count <= 64 ? few : malloc((size_t)count * sizeof *j.parts);
    if (!j.parts)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "var: no memory for partial results; delete some tensors first");
    int64_t items = r->kept_numel / width * j.groups * j.blocks;
    int64_t each = r->folded_numel < per_group ? r->folded_numel : per_group;
    if (columns)
        each *= width < DT_MOMENTS_COLUMNS ? width : DT_MOMENTS_COLUMNS;
    if (items * each < 2 * WORK)
        (columns ? reduce_blocks : reduce_each)(&j, 0, items);
    else
        dt_pool_run(columns ? reduce_blocks : reduce_each, &j, items,
                    (WORK + each - 1) / each);
    finish(&j, mean, width);
    if (j.parts != few)
        free(j.parts);
    return 0;
}
