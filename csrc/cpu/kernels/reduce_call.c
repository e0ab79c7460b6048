#include "cpu/kernels/reduce_call.h"

#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Leaves are gathered where their elements are not adjacent. A power of two of them makes a
 * group, the unit of parallel work within one result. */
#define GROUP      (128 * DT_REDUCE_LEAF)
#define GROUP_ROWS (16 * DT_REDUCE_LEAF_ROWS)
/* A result's elements may be runs, with runs of other results between them: the minimum
 * of short runs in a group, and the length from which a run is not gathered. */
#define RUNS     8
#define LONG_RUN 128
#define WORK     16384 /* elements of a piece of parallel work, at least */

/* The length of a run, if a result's elements are runs in the type, each shorter than a
 * group, with runs of other results between them; else 0. */
static int64_t run_of(const dt_reduction *r, dt_dtype compute)
{
    int last = r->reduced_ndim - 1;
    bool apart = last > 0 && r->kept_ndim && r->input_dtype == compute &&
                 r->reduced_strides[last] == (int64_t)dt_dtype_size(compute) &&
                 r->kept_strides[r->kept_ndim - 1] < r->reduced_strides[last - 1];
    return apart && r->reduced_shape[last] < GROUP ? r->reduced_shape[last] : 0;
}

/* The elements of a group: a leaf's worth, and of few runs, since each may be in a page of
 * its own. */
static int64_t run_group(int64_t run)
{
    int64_t runs = (DT_REDUCE_LEAF + run - 1) / run;
    return run * (run < DT_REDUCE_LEAF && runs < RUNS ? RUNS : runs);
}

dt_reduce_call dt_reduce_call_of(const dt_reduction *r, const char *name,
                                 const dt_reduce_kernel *kernel, dt_dtype compute,
                                 int64_t block)
{
    dt_reduce_call c = {.r = r,
                        .name = name,
                        .kernel = kernel,
                        .compute = compute,
                        .element = (int64_t)dt_dtype_size(compute),
                        .columns = 1};
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    int last = r->kept_ndim - 1, reduced = r->reduced_ndim - 1;
    c.dense = r->input_dtype == compute &&
              (reduced < 0 || (reduced == 0 && r->reduced_strides[0] == size));
    if (last >= 0 && reduced >= 0 && r->reduced_numel > 1 &&
        r->kept_strides[last] == size && r->kept_shape[last] >= 4 &&
        r->reduced_strides[reduced] != size)
        c.columns = r->kept_shape[last];
    c.block = c.columns < block ? c.columns : block;
    c.blocks = (c.columns + block - 1) / block;
    c.run = run_of(r, compute);
    c.rows = c.columns > 1 ? GROUP_ROWS : c.run ? run_group(c.run) : GROUP;
    c.groups = (r->reduced_numel + c.rows - 1) / c.rows;
    return c;
}

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    dt_reduce_call *c = context;
    int64_t block = begin % c->blocks, group = begin / c->blocks % c->groups;
    int64_t outer = begin / c->blocks / c->groups;
    int64_t outers = c->r->kept_numel / c->columns;
    for (; begin < end; begin++) {
        if (c->run) { /* in the order of memory */
            group = begin / outers;
            outer = begin % outers;
        }
        int64_t column = block * c->block, columns = c->columns - column;
        int64_t first = group * c->rows, last = c->r->reduced_numel;
        int64_t place = (outer * c->groups + group) * c->columns + column;
        columns = columns > c->block ? c->block : columns;
        last = last - first > c->rows ? first + c->rows : last;
        if (c->reduce(c, outer * c->columns + column, columns, first, last, place))
            __atomic_store_n(&c->failed, 1, __ATOMIC_RELAXED);
        if (++block < c->blocks)
            continue;
        block = 0;
        if (++group == c->groups) {
            group = 0;
            outer++;
        }
    }
}

int dt_reduce_call_run(dt_reduce_call *c)
{
    const dt_reduction *r = c->r;
    int64_t items = r->kept_numel / c->columns * c->groups * c->blocks;
    int64_t each = (r->reduced_numel < c->rows ? r->reduced_numel : c->rows) * c->block;
    if (items * each >= 2 * WORK)
        return dt_pool_try(run_pieces, c, items, (WORK + each - 1) / each);
    run_pieces(c, 0, items);
    return 0;
}

bool dt_reduce_take_short(dt_reduce_call *c)
{
    const dt_reduction *r = c->r;
    const int last = r->kept_ndim - 1;
    const int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    if (r->reduced_ndim > 1 || (r->reduced_ndim && r->reduced_strides[0] != size) ||
        r->reduced_numel > DT_REDUCE_LEAF || last < 0 || r->kept_shape[last] < 4)
        return false;
    c->columns = r->kept_shape[last];
    c->block = WORK / r->reduced_numel;
    c->blocks = (c->columns + c->block - 1) / c->block;
    return true;
}

const char *dt_reduce_leaf(const dt_reduce_call *c, dt_reduce_walk *w, int64_t first,
                           int64_t end, int64_t *n, char *buffer)
{
    *n = end - first > DT_REDUCE_LEAF ? DT_REDUCE_LEAF : end - first;
    if (c->dense)
        return w->data + first * c->element;
    if (c->run >= LONG_RUN) {
        const char *run = w->data;
        *n = *n > dt_reduce_walk_run(w) ? dt_reduce_walk_run(w) : *n;
        dt_reduce_walk_on(w, *n);
        return run;
    }
    char *out = buffer;
    for (int64_t left = *n; left > 0;) {
        int64_t run = dt_reduce_walk_run(w),
                stride = w->ndim ? w->strides[w->ndim - 1] : 0;
        run = run > left ? left : run;
        dt_convert(c->compute, c->r->input_dtype, run, out, c->element, w->data,
                   stride);
        dt_reduce_walk_on(w, run);
        out += run * c->element;
        left -= run;
    }
    return buffer;
}

void dt_reduce_walk_leaves(dt_reduce_walk *w, const dt_reduce_call *c, int64_t kept,
                           int64_t index)
{
    if (c->dense)
        w->data = dt_reduce_offset(c->r, kept);
    else
        dt_reduce_walk_elements(w, c->r, kept, index);
}

int dt_reduce_fail_empty(dt_error_code code, const char *name)
{
    return dt_fail(
        code, "%s: there is no element to choose from; give a tensor that has some",
        name);
}
