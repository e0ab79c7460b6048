#include "cpu/runtime/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/reduce.h"
#include "cpu/runtime/pool.h"
#include "ops/reduce_ops.h"

/* The tree in which elements are reduced depends on shape and strides alone, so that the
 * result does not depend on threads.
 *
 * The elements of a leaf are gathered first if they are not adjacent. A power of two of
 * leaves makes a group, the unit of parallel work within one result. */
#define LEAF  DT_REDUCE_LEAF
#define GROUP (128 * LEAF)
/* A result's elements may be runs, with runs of other results between them: the minimum
 * of short runs in a group, and the length from which a run is not gathered. */
#define RUNS     8
#define LONG_RUN 128
/* The same for columns: rows that one loop reduces, rows of a group, columns of a block. */
#define LEAF_ROWS  64
#define GROUP_ROWS (16 * LEAF_ROWS)
#define COLUMNS    1024
#define WORK       16384 /* elements of a piece of parallel work, at least */

static const char *const names[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...)                       \
    [DT_REDUCE_##name] = #name,
#include "ops/reduce.def"
#undef REDUCE
};

/* --- a walk through elements, in row-major order of some dimensions --- */

typedef struct walk {
    int ndim;
    const int64_t *shape, *strides;
    int64_t at[DT_MAX_NDIM];
    const char *data;
} walk;

/* Starts at element `index` in row-major order. */
static void walk_start(walk *w, const void *data, int ndim, const int64_t *shape,
                       const int64_t *strides, int64_t index)
{
    w->ndim = ndim;
    w->shape = shape;
    w->strides = strides;
    w->data = data;
    for (int d = ndim - 1; d >= 0; d--) {
        w->at[d] = index % shape[d];
        index /= shape[d];
        w->data += w->at[d] * strides[d];
    }
}

/* How many elements follow along the last dimension, this one included. */
static int64_t walk_run(const walk *w)
{
    return w->ndim ? w->shape[w->ndim - 1] - w->at[w->ndim - 1] : 1;
}

/* Past `n` elements, no more than walk_run said. */
static void walk_on(walk *w, int64_t n)
{
    for (int d = w->ndim - 1; d >= 0; d--, n = 1) {
        w->data += n * w->strides[d];
        w->at[d] += n;
        if (w->at[d] < w->shape[d])
            return;
        w->data -= w->shape[d] * w->strides[d];
        w->at[d] = 0;
    }
}

static const char *offset_of(const dt_reduction *r, int64_t kept)
{
    walk w;
    walk_start(&w, r->input, r->kept_ndim, r->kept_shape, r->kept_strides, kept);
    return w.data;
}

/* Starts at the reduced element number `index` of a result. */
static void walk_reduced(walk *w, const dt_reduction *r, int64_t kept, int64_t index)
{
    walk_start(w, offset_of(r, kept), r->reduced_ndim, r->reduced_shape,
               r->reduced_strides, index);
}

static int levels_for(int64_t leaves)
{
    int levels = 2;
    while (leaves >>= 1)
        levels++;
    return levels;
}

/* --- calls --- */

typedef struct call call;
typedef int reduce_fn(const call *c, int64_t kept, int64_t columns, int64_t begin,
                      int64_t end, int64_t place);

struct call {
    const dt_reduction *r;
    const char *name;
    const dt_reduce_kernel *kernel;
    const dt_arg_kernel *arg; /* argreduce */
    bool greatest;
    /* Reduces elements begin to end-1 of results `kept` and the next, `columns` in all. */
    reduce_fn *reduce;
    dt_dtype compute; /* the type that kernels take */
    int64_t element;  /* bytes of one of it */
    bool dense;       /* elements of a result are adjacent, in the type */
    int64_t run;      /* length of their runs between other results'; or 0 */
    int64_t columns;  /* results next to each other, whose elements are not; or 1 */
    int64_t block, blocks; /* of them in a piece of work; how many pieces that makes */
    int64_t rows, groups;  /* the same for the elements of a result */
    char *out;             /* partial results, [outer][group][column] */
    int failed;
};

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
    int64_t runs = (LEAF + run - 1) / run;
    return run * (run < LEAF && runs < RUNS ? RUNS : runs);
}

/* block: columns of a piece of work, at most. */
static call call_of(const dt_reduction *r, const char *name,
                    const dt_reduce_kernel *kernel, dt_dtype compute, int64_t block)
{
    call c = {.r = r,
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
    call *c = context;
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

static int run_reduction(call *c)
{
    const dt_reduction *r = c->r;
    int64_t items = r->kept_numel / c->columns * c->groups * c->blocks;
    int64_t each = (r->reduced_numel < c->rows ? r->reduced_numel : c->rows) * c->block;
    if (items * each >= 2 * WORK)
        return dt_pool_try(run_pieces, c, items, (WORK + each - 1) / each);
    run_pieces(c, 0, items);
    return 0;
}

static int fail_for_memory(const char *name)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "%s: no memory for partial results; delete some tensors first",
                   name);
}

static int fail_for_emptiness(dt_error_code code, const char *name)
{
    return dt_fail(
        code, "%s: there is no element to choose from; give a tensor that has some",
        name);
}

/* --- one result at a time --- */

/* A leaf: the elements of a result from number `first` on, *n of them, all before `end`,
 * contiguous and in the type that kernels take. Returns their address, or that of the
 * buffer into which they were gathered. */
static const char *leaf_of(const call *c, walk *w, int64_t first, int64_t end,
                           int64_t *n, char *buffer)
{
    *n = end - first > LEAF ? LEAF : end - first;
    if (c->dense)
        return w->data + first * c->element;
    if (c->run >= LONG_RUN) {
        const char *run = w->data;
        *n = *n > walk_run(w) ? walk_run(w) : *n;
        walk_on(w, *n);
        return run;
    }
    char *out = buffer;
    for (int64_t left = *n; left > 0;) {
        int64_t run = walk_run(w), stride = w->ndim ? w->strides[w->ndim - 1] : 0;
        run = run > left ? left : run;
        dt_convert(c->compute, c->r->input_dtype, run, out, c->element, w->data,
                   stride);
        walk_on(w, run);
        out += run * c->element;
        left -= run;
    }
    return buffer;
}

/* For leaf_of: from the reduced element number `index` on. */
static void walk_leaves(walk *w, const call *c, int64_t kept, int64_t index)
{
    if (c->dense)
        w->data = offset_of(c->r, kept);
    else
        walk_reduced(w, c->r, kept, index);
}

static int reduce_elements(const call *c, int64_t kept, int64_t columns, int64_t begin,
                           int64_t end, int64_t place)
{
    _Alignas(64) char buffer[LEAF * 8];
    _Alignas(8) char levels[DT_REDUCE_LEVELS * DT_REDUCE_PARTIAL];
    double p = c->r->parameter;
    size_t bytes = c->kernel->partial;
    char *out = c->out + (size_t)place * bytes;
    dt_reduce_tree t = {
        .kernel = c->kernel, .columns = columns, .bytes = bytes, .levels = levels};
    walk w;
    walk_leaves(&w, c, kept, begin);
    for (int64_t n; begin < end; begin += n) {
        const char *x = leaf_of(c, &w, begin, end, &n, buffer);
        bool only = !t.leaves && n == end - begin;
        c->kernel->run(n, x, p, only ? out : dt_reduce_tree_next(&t));
        if (only)
            return 0;
        dt_reduce_tree_push(&t);
    }
    memcpy(out, dt_reduce_tree_finish(&t), bytes);
    return 0;
}

/* --- short results --- */

/* Whether results are short, and the elements of each adjacent: then pieces of work have many
 * of them, as columns. */
static bool take_short(call *c)
{
    const dt_reduction *r = c->r;
    const int last = r->kept_ndim - 1;
    const int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    if (r->reduced_ndim > 1 || (r->reduced_ndim && r->reduced_strides[0] != size) ||
        r->reduced_numel > LEAF || last < 0 || r->kept_shape[last] < 4)
        return false;
    c->columns = r->kept_shape[last];
    c->block = WORK / r->reduced_numel;
    c->blocks = (c->columns + c->block - 1) / c->block;
    return true;
}

static int reduce_short(const call *c, int64_t kept, int64_t columns, int64_t begin,
                        int64_t end, int64_t place)
{
    const dt_reduction *r = c->r;
    const int64_t n = end - begin, stride = r->kept_strides[r->kept_ndim - 1];
    const char *x = offset_of(r, kept);
    char *out = c->out + (size_t)place * c->kernel->partial;
    if (r->input_dtype == c->compute) {
        c->kernel->runs(columns, stride, n, x, r->parameter, out);
        return 0;
    }
    _Alignas(64) char buffer[LEAF * 8];
    const bool together = stride == n * (int64_t)dt_dtype_size(r->input_dtype);
    for (int64_t some; columns > 0; columns -= some, x += some * stride) {
        some = columns < LEAF / n ? columns : LEAF / n;
        const int64_t rows = together ? 1 : some, each = together ? some * n : n;
        for (int64_t k = 0; k < rows; k++)
            dt_convert_dense(c->compute, r->input_dtype, each,
                             buffer + k * n * c->element, x + k * stride);
        c->kernel->runs(some, n * c->element, n, buffer, r->parameter, out);
        out += (size_t)some * c->kernel->partial;
    }
    return 0;
}

/* --- columns side by side --- */

static int reduce_columns(const call *c, int64_t kept, int64_t columns, int64_t begin,
                          int64_t end, int64_t place)
{
    const dt_reduction *r = c->r;
    size_t bytes = ((size_t)columns * c->kernel->partial + 63) & ~(size_t)63;
    size_t row = ((size_t)(columns * c->element) + 63) & ~(size_t)63;
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    bool direct = r->input_dtype == c->compute;
    size_t levels = (size_t)levels_for((end - begin) / LEAF_ROWS + 1);
    char *scratch = NULL;
    if (posix_memalign((void **)&scratch, 64,
                       levels * bytes + (direct ? 0 : LEAF_ROWS * row)))
        return -1;
    char *buffer = scratch + levels * bytes;
    dt_reduce_tree t = {
        .kernel = c->kernel, .columns = columns, .bytes = bytes, .levels = scratch};
    walk w;
    walk_reduced(&w, r, kept, begin);
    for (; begin < end; begin += LEAF_ROWS) {
        int64_t n = end - begin > LEAF_ROWS ? LEAF_ROWS : end - begin;
        char *partial = dt_reduce_tree_next(&t);
        for (int64_t done = 0; done < n;) {
            int64_t run = walk_run(&w), stride = w.strides[w.ndim - 1];
            const char *x = w.data;
            run = run > n - done ? n - done : run;
            if (!direct) {
                for (int64_t i = 0; i < run; i++)
                    dt_convert(c->compute, r->input_dtype, columns,
                               buffer + (size_t)i * row, c->element, x + i * stride,
                               size);
                x = buffer;
                stride = (int64_t)row;
            }
            if (done == 0)
                c->kernel->start(columns, x, partial);
            c->kernel->rows(run, stride, columns, x, r->parameter, partial);
            walk_on(&w, run);
            done += run;
        }
        dt_reduce_tree_push(&t);
    }
    memcpy(c->out + (size_t)place * c->kernel->partial, dt_reduce_tree_finish(&t),
           (size_t)columns * c->kernel->partial);
    free(scratch);
    return 0;
}

/* --- the whole --- */

/* Joins the groups of each result, stored as rows of columns, as one tree. */
static int join_groups(const call *c, char *out)
{
    size_t row = (size_t)c->columns * c->kernel->partial;
    char *levels = malloc((size_t)levels_for(c->groups) * row);
    if (!levels)
        return -1;
    for (int64_t i = 0; i < c->r->kept_numel / c->columns; i++) {
        dt_reduce_tree t = {
            .kernel = c->kernel, .columns = c->columns, .bytes = row, .levels = levels};
        for (int64_t g = 0; g < c->groups; g++) {
            memcpy(dt_reduce_tree_next(&t), c->out + (size_t)(i * c->groups + g) * row,
                   row);
            dt_reduce_tree_push(&t);
        }
        memcpy(out + (size_t)i * row, dt_reduce_tree_finish(&t), row);
    }
    free(levels);
    return 0;
}

/* Partial results of all elements, one for each result. */
static int reduce(call *c, void *out)
{
    size_t bytes = (size_t)(c->groups * c->r->kept_numel) * c->kernel->partial;
    if (c->columns > 1)
        c->reduce = reduce_columns;
    else
        c->reduce = take_short(c) ? reduce_short : reduce_elements;
    c->out = c->groups > 1 ? malloc(bytes) : out;
    if (!c->out)
        return fail_for_memory(c->name);
    int status = run_reduction(c);
    if (!status && (c->failed || (c->groups > 1 && join_groups(c, out) < 0)))
        status = fail_for_memory(c->name);
    if (c->groups > 1)
        free(c->out);
    return status;
}

/* A result of 16 bits is rounded at the very end. */
static int reduce_to_half(dt_stream stream, dt_reduce_op op, const dt_reduction *r)
{
    float few[64], *wide = few;
    if (r->kept_numel > 64 && !(wide = malloc((size_t)r->kept_numel * sizeof *wide)))
        return fail_for_memory(names[op]);
    dt_reduction same = *r;
    same.output = wide;
    same.output_dtype = DT_FLOAT32;
    int status = dt_cpu_reduce(stream, op, &same);
    if (!status)
        dt_convert_dense(r->output_dtype, DT_FLOAT32, r->kept_numel, r->output, wide);
    if (wide != few)
        free(wide);
    return status;
}

const dt_reduce_kernel *dt_cpu_reduce_kernel(dt_reduce_op op, dt_dtype input,
                                             dt_dtype result, dt_dtype *compute)
{
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    const dt_reduce_kernel *kernel = &kernels->rows[input][op];
    *compute = result;
    if (kernel->run && kernel->gives_bool)
        *compute = dt_dtype_compute(input);
    else
        kernel = &kernels->rows[result][op];
    return kernel->run && (!kernel->gives_bool || result == DT_BOOL) ? kernel : NULL;
}

int dt_cpu_reduce(dt_stream stream, dt_reduce_op op, const dt_reduction *r)
{
    if (dt_dtype_is_half(r->output_dtype))
        return reduce_to_half(stream, op, r);
    dt_dtype compute;
    const dt_reduce_kernel *kernel =
        dt_cpu_reduce_kernel(op, r->input_dtype, r->output_dtype, &compute);
    if (!kernel)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: elements of type %s are not supported on the CPU; convert them "
            "first, for example with .float()",
            names[op], dt_dtype_name(r->input_dtype));
    call c = call_of(r, names[op], kernel, compute, COLUMNS);
    if (r->reduced_numel == 0) {
        if (kernel->needs_element)
            return fail_for_emptiness(DT_ERROR_RUNTIME, names[op]);
        kernel->start(r->kept_numel, NULL, r->output);
    } else if (c.dense && r->kept_numel == 1 && r->reduced_numel <= LEAF) {
        kernel->run(r->reduced_numel, r->input, r->parameter, r->output);
    } else if (reduce(&c, r->output)) {
        return -1;
    }
    kernel->finish(r->kept_numel, r->output, r->reduced_numel, r->parameter);
    return 0;
}

static void store_double(const dt_reduction *r, void *to, int64_t i, double value)
{
    if (r->output_dtype == DT_FLOAT32)
        ((float *)to)[i] = (float)value;
    else
        ((double *)to)[i] = value;
}

void dt_cpu_moments_store(const dt_reduction *r, void *mean, const dt_moments *all)
{
    double divisor = (double)r->reduced_numel - r->parameter;
    divisor = divisor > 0 ? divisor : 0;
    for (int64_t i = 0; i < r->kept_numel; i++) {
        store_double(r, r->output, i, all ? all[i].square / divisor : NAN);
        if (mean)
            store_double(r, mean, i, all ? all[i].mean : NAN);
    }
}

int dt_cpu_moments(dt_stream stream, void *mean, const dt_reduction *r)
{
    (void)stream;
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    const dt_reduce_kernel *kernel = r->input_dtype == DT_FLOAT32
                                         ? &kernels->moments_float32
                                         : &kernels->moments_float64;
    call c = call_of(r, "var", kernel, r->input_dtype, DT_MOMENTS_COLUMNS);
    dt_moments few[64], *all = few;
    if (r->kept_numel > 64 && !(all = malloc((size_t)r->kept_numel * sizeof *all)))
        return fail_for_memory("var");
    int status = 0;
    if (r->reduced_numel)
        status = reduce(&c, all);
    if (!status)
        dt_cpu_moments_store(r, mean, r->reduced_numel ? all : NULL);
    if (all != few)
        free(all);
    return status;
}

/* --- extremes and where they are --- */

/* Leaves, or rows of columns, between two looks for an interrupt. */
#define LOOK 1024
/* Results whose elements are looked at side by side, if each has at most SHORT. */
#define SIDE  128
#define SHORT 32

/* n results from number `kept` on. */
static int store_found(const call *c, int64_t kept, int64_t n, const void *values,
                       const int64_t *where)
{
    const dt_reduction *r = c->r;
    char *out = r->output;
    if (out)
        dt_convert_dense(r->input_dtype, c->compute, n,
                         out + kept * (int64_t)dt_dtype_size(r->input_dtype), values);
    if (r->index)
        memcpy(r->index + kept, where, (size_t)n * sizeof *where);
    return 0;
}

static int find_element(const call *c, int64_t kept, int64_t columns, int64_t begin,
                        int64_t end, int64_t place)
{
    (void)columns, (void)place;
    _Alignas(64) char buffer[LEAF * 8];
    dt_element best = {.bytes = {0}};
    int64_t index = -1;
    walk w;
    walk_leaves(&w, c, kept, begin);
    for (int64_t n, leaves = 1; begin < end; begin += n, leaves++) {
        const char *x = leaf_of(c, &w, begin, end, &n, buffer);
        dt_element top;
        if (leaves % LOOK == 0 && dt_pool_is_stopping())
            return 0;
        c->kernel->run(n, x, 0, &top);
        if (index >= 0 && !c->arg->beats(&top, &best, c->greatest))
            continue;
        int64_t found = c->arg->find(n, x, &top);
        /* None is found where another thread has written x meanwhile. */
        index = begin + (found < 0 ? 0 : found);
        /* The very element, since 0 and -0 are equal. */
        memcpy(&best, x + (index - begin) * c->element, (size_t)c->element);
    }
    return store_found(c, kept, 1, &best, &index);
}

static int find_short(const call *c, int64_t kept, int64_t columns, int64_t begin,
                      int64_t end, int64_t place)
{
    (void)place;
    _Alignas(64) char best[SIDE * 8];
    int64_t where[SIDE];
    const int64_t stride = c->r->kept_strides[c->r->kept_ndim - 1];
    const char *x = offset_of(c->r, kept);
    for (int64_t some; columns > 0; columns -= some, kept += some, x += some * stride) {
        some = columns < SIDE ? columns : SIDE;
        c->arg->runs(some, stride, end - begin, x, c->greatest, best, where);
        store_found(c, kept, some, best, where);
    }
    return 0;
}

static int find_columns(const call *c, int64_t kept, int64_t columns, int64_t begin,
                        int64_t end, int64_t place)
{
    (void)place;
    const dt_reduction *r = c->r;
    _Alignas(64) char best[COLUMNS * 8];
    _Alignas(64) float widened[COLUMNS];
    int64_t where[COLUMNS];
    walk w;
    memset(where, 0, (size_t)columns * sizeof *where);
    walk_reduced(&w, r, kept, begin);
    for (int64_t i = begin; i < end; i++) {
        const void *x = w.data;
        if (i % LOOK == LOOK - 1 && dt_pool_is_stopping())
            return 0;
        if (r->input_dtype != c->compute) {
            dt_convert_dense(c->compute, r->input_dtype, columns, widened, x);
            x = widened;
        }
        if (i)
            c->arg->row(columns, x, c->greatest, i, best, where);
        else
            memcpy(best, x, (size_t)(columns * c->element));
        walk_on(&w, 1);
    }
    return store_found(c, kept, columns, best, where);
}

int dt_cpu_argreduce(dt_stream stream, bool greatest, const dt_reduction *r)
{
    (void)stream;
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    const char *name = greatest ? "argmax" : "argmin";
    if (r->reduced_numel < 1)
        return fail_for_emptiness(DT_ERROR_INDEX, name);
    dt_reduce_op op = greatest ? DT_REDUCE_amax : DT_REDUCE_amin;
    call c = call_of(r, name, &kernels->rows[r->input_dtype][op],
                     dt_dtype_compute(r->input_dtype), COLUMNS);
    c.arg = kernels->arg[r->input_dtype];
    c.greatest = greatest;
    c.rows = r->reduced_numel;
    c.groups = 1;
    if (c.columns > 1)
        c.reduce = find_columns;
    else if (c.dense && r->reduced_numel <= SHORT && take_short(&c))
        c.reduce = find_short;
    else
        c.reduce = find_element;
    return run_reduction(&c);
}
