#include "cpu/runtime/backend.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"
#include "cpu/kernels/walk.h"

/* Elements that are folded in one go, and gathered for that where they lie apart. A
 * power of two of leaves makes a group, the unit of parallel work within one result. */
#define LEAF  512
#define GROUP (128 * LEAF)
/* The same for columns: rows folded in one go, columns of a block, rows of a group. */
#define LEAF_ROWS  64
#define GROUP_ROWS (16 * LEAF_ROWS)
#define COLUMNS    1024
#define WORK       16384 /* elements of a piece of parallel work, at least */
#define LEVELS     64

static const char *const names[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...)                       \
    [DT_REDUCE_##name] = #name,
#include "ops/reduce.def"
#undef REDUCE
};

/* Of `columns` partial results each, a stack of subtrees of the sizes of a binary
 * number's ones: each new leaf is joined with the subtrees of its own size. */
typedef struct tree {
    const dt_reduce_kernel *kernel;
    int64_t columns, leaves;
    size_t bytes; /* of one level */
    char *levels;
    int depth;
} tree;

static char *tree_next(tree *t)
{
    return t->levels + (size_t)t->depth * t->bytes;
}

static void tree_push(tree *t)
{
    t->depth++;
    for (int64_t ones = t->leaves++; ones & 1; ones >>= 1) {
        t->depth--;
        t->kernel->join(t->columns, tree_next(t) - t->bytes, tree_next(t));
    }
}

static char *tree_finish(tree *t)
{
    while (t->depth > 1) {
        t->depth--;
        t->kernel->join(t->columns, tree_next(t) - t->bytes, tree_next(t));
    }
    return t->levels;
}

static int levels_for(int64_t leaves)
{
    int levels = 2;
    while (leaves >>= 1)
        levels++;
    return levels;
}

/* --- one result at a time --- */

typedef struct call {
    const dt_reduction *r;
    const dt_reduce_kernel *kernel;
    dt_dtype compute; /* the type that kernels take */
    size_t element;   /* bytes of one of it */
    size_t partial;   /* bytes of a partial result */
    bool dense;       /* elements of a result lie next to each other, in the type */
    int64_t groups, blocks;
    char *out; /* partial results, [kept][group] or [outer][group][column] */
    int failed;
} call;

static void fold_some(const call *c, int64_t kept, int64_t begin, int64_t end,
                      char *out)
{
    const dt_reduction *r = c->r;
    const char *base = offset_of(r, kept);
    _Alignas(64) char buffer[LEAF * 8];
    char levels[LEVELS * 8];
    tree t = {.kernel = c->kernel, .columns = 1, .bytes = c->partial, .levels = levels};
    walk w = {.ndim = 0};
    if (!c->dense)
        walk_start(&w, base, r->folded_ndim, r->folded_shape, r->folded_strides, begin);
    for (; begin < end; begin += LEAF) {
        int64_t n = end - begin > LEAF ? LEAF : end - begin;
        const char *x = base + begin * (int64_t)c->element;
        if (!c->dense) {
            gather(&w, r->input_dtype, c->compute, n, buffer);
            x = buffer;
        }
        if (end - begin == n && t.leaves == 0) {
            c->kernel->run(n, x, r->parameter, out);
            return;
        }
        c->kernel->run(n, x, r->parameter, tree_next(&t));
        tree_push(&t);
    }
    memcpy(out, tree_finish(&t), c->partial);
}

static void fold_each(void *context, int64_t begin, int64_t end)
{
    const call *c = context;
    for (int64_t item = begin; item < end; item++) {
        int64_t kept = c->groups == 1 ? item : item / c->groups;
        int64_t first = (item - kept * c->groups) * GROUP, last = c->r->folded_numel;
        if (last - first > GROUP)
            last = first + GROUP;
        fold_some(c, kept, first, last, c->out + (size_t)item * c->partial);
    }
}

/* --- columns side by side --- */

/* Rows begin to end-1 of `columns` columns that start at kept element `kept`. */
static int fold_block(const call *c, int64_t kept, int64_t columns, int64_t begin,
                      int64_t end, char *out)
{
    const dt_reduction *r = c->r;
    size_t bytes = (size_t)columns * c->partial;
    bytes = (bytes + 63) & ~(size_t)63;
    size_t row = ((size_t)columns * c->element + 63) & ~(size_t)63;
    bool direct = r->input_dtype == c->compute;
    int levels = levels_for((end - begin) / LEAF_ROWS + 1);
    size_t total = (size_t)levels * bytes + (direct ? 0 : LEAF_ROWS * row);
    char *scratch = NULL;
    if (posix_memalign((void **)&scratch, 64, total))
        return -1;
    char *buffer = scratch + (size_t)levels * bytes;
    tree t = {
        .kernel = c->kernel, .columns = columns, .bytes = bytes, .levels = scratch};
    dt_kernel *convert = dt_cpu_kernels.copy->convert[c->compute][r->input_dtype];
    walk w;
    walk_start(&w, offset_of(r, kept), r->folded_ndim, r->folded_shape,
               r->folded_strides, begin);
    for (; begin < end; begin += LEAF_ROWS) {
        int64_t n = end - begin > LEAF_ROWS ? LEAF_ROWS : end - begin;
        char *partial = tree_next(&t);
        for (int64_t done = 0; done < n;) {
            int64_t run = walk_run(&w), stride = w.ndim ? w.strides[w.ndim - 1] : 0;
            const char *x = w.data;
            run = run > n - done ? n - done : run;
            if (!direct) {
                for (int64_t i = 0; i < run; i++) {
                    char *data[2] = {buffer + (size_t)i * row,
                                     (char *)(uintptr_t)(x + i * stride)};
                    int64_t strides[2] = {(int64_t)c->element,
                                          (int64_t)dt_dtype_size(r->input_dtype)};
                    convert(columns, data, strides);
                }
                x = buffer;
                stride = (int64_t)row;
            }
            if (done == 0)
                c->kernel->start(columns, x, partial);
            c->kernel->rows(run, stride, columns, x, r->parameter, partial);
            walk_on(&w, run);
            done += run;
        }
        tree_push(&t);
    }
    memcpy(out, tree_finish(&t), (size_t)columns * c->partial);
    free(scratch);
    return 0;
}

static void fold_blocks(void *context, int64_t begin, int64_t end)
{
    call *c = context;
    const dt_reduction *r = c->r;
    int64_t width = inner_columns(r);
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item % c->blocks, group = item / c->blocks % c->groups;
        int64_t outer = item / c->blocks / c->groups;
        int64_t column = block * COLUMNS;
        int64_t columns = width - column > COLUMNS ? COLUMNS : width - column;
        int64_t first = group * GROUP_ROWS, last = r->folded_numel;
        if (last - first > GROUP_ROWS)
            last = first + GROUP_ROWS;
        char *out = c->out +
                    (size_t)((outer * c->groups + group) * width + column) * c->partial;
        if (fold_block(c, outer * width + column, columns, first, last, out))
            __atomic_store_n(&c->failed, 1, __ATOMIC_RELAXED);
    }
}

/* --- the whole --- */

static int fail_for_memory(const char *name)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "%s: no memory for partial results; delete some tensors first",
                   name);
}

/* Joins the groups of each result, which lie in rows of `columns`, as one tree. */
static int join_groups(const call *c, int64_t results, int64_t columns, char *out)
{
    size_t row = (size_t)columns * c->partial;
    char *levels = malloc((size_t)levels_for(c->groups) * row);
    if (!levels)
        return -1;
    for (int64_t i = 0; i < results; i++) {
        tree t = {
            .kernel = c->kernel, .columns = columns, .bytes = row, .levels = levels};
        for (int64_t g = 0; g < c->groups; g++) {
            memcpy(tree_next(&t), c->out + (size_t)(i * c->groups + g) * row, row);
            tree_push(&t);
        }
        memcpy(out + (size_t)i * row, tree_finish(&t), row);
    }
    free(levels);
    return 0;
}

/* n float32 numbers narrowed to the type of 16 bits. */
static void narrow(dt_dtype dtype, int64_t n, void *out, const float *x)
{
    char *data[2] = {out, (char *)(uintptr_t)x};
    int64_t strides[2] = {(int64_t)dt_dtype_size(dtype), sizeof *x};
    dt_cpu_kernels.copy->convert[dtype][DT_FLOAT32](n, data, strides);
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
        narrow(r->output_dtype, r->kept_numel, r->output, wide);
    if (wide != few)
        free(wide);
    return status;
}

int dt_cpu_reduce(dt_stream stream, dt_reduce_op op, const dt_reduction *r)
{
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    if (dt_dtype_is_half(r->output_dtype))
        return reduce_to_half(stream, op, r);
    call c = {.r = r, .compute = r->output_dtype};
    c.kernel = &kernels->fold[r->input_dtype][op];
    if (c.kernel->run && c.kernel->gives_bool)
        c.compute = dt_dtype_compute(r->input_dtype);
    else
        c.kernel = &kernels->fold[r->output_dtype][op];
    if (!c.kernel->run || (c.kernel->gives_bool && r->output_dtype != DT_BOOL))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: elements of type %s are not supported on the CPU; convert them "
            "first, for example with .float()",
            names[op], dt_dtype_name(r->input_dtype));
    c.element = dt_dtype_size(c.compute);
    c.partial = c.kernel->gives_bool ? sizeof(bool) : c.element;
    if (r->folded_numel == 0) {
        if (c.kernel->needs_element)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: there is no element to choose from; give a tensor that has some",
                names[op]);
        c.kernel->start(r->kept_numel, NULL, r->output);
        c.kernel->finish(r->kept_numel, r->output, 0, r->parameter);
        return 0;
    }
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    c.dense =
        r->input_dtype == c.compute &&
        (r->folded_ndim == 0 || (r->folded_ndim == 1 && r->folded_strides[0] == size));
    if (c.dense && r->kept_numel == 1 && r->folded_numel <= LEAF) {
        c.kernel->run(r->folded_numel, r->input, r->parameter, r->output);
        c.kernel->finish(1, r->output, r->folded_numel, r->parameter);
        return 0;
    }
    bool columns = by_columns(r);
    int64_t per_group = columns ? GROUP_ROWS : GROUP;
    c.groups = (r->folded_numel + per_group - 1) / per_group;
    c.blocks = columns ? (inner_columns(r) + COLUMNS - 1) / COLUMNS : 1;
    int64_t results = columns ? r->kept_numel / inner_columns(r) : r->kept_numel;
    c.out = r->output;
    if (c.groups > 1 &&
        !(c.out = malloc((size_t)(c.groups * r->kept_numel) * c.partial)))
        return fail_for_memory(names[op]);
    int64_t each = r->folded_numel < per_group ? r->folded_numel : per_group;
    if (columns)
        each *= inner_columns(r) < COLUMNS ? inner_columns(r) : COLUMNS;
    int64_t items = results * c.groups * c.blocks;
    if (items * each < 2 * WORK)
        (columns ? fold_blocks : fold_each)(&c, 0, items);
    else
        dt_pool_run(columns ? fold_blocks : fold_each, &c, items,
                    (WORK + each - 1) / each);
    int status = c.failed;
    if (c.groups > 1) {
        if (!status)
            status =
                join_groups(&c, results, columns ? inner_columns(r) : 1, r->output);
        free(c.out);
    }
    if (status)
        return fail_for_memory(names[op]);
    c.kernel->finish(r->kept_numel, r->output, r->folded_numel, r->parameter);
    return 0;
}

/* --- extremes and where they are --- */

typedef struct arg_call {
    const dt_reduction *r;
    const dt_reduce_kernel *extreme;
    const dt_arg_kernel *arg;
    dt_dtype compute;
    size_t element; /* bytes of one of it */
    bool dense, greatest;
    int64_t blocks;
} arg_call;

/* n results from number `kept` on. */
static void store(const arg_call *c, int64_t kept, int64_t n, const void *values,
                  const int64_t *where)
{
    const dt_reduction *r = c->r;
    char *out = r->output;
    if (out && r->input_dtype != c->compute)
        narrow(r->input_dtype, n, out + kept * (int64_t)dt_dtype_size(r->input_dtype),
               values);
    else if (out)
        memcpy(out + (size_t)kept * c->element, values, (size_t)n * c->element);
    if (r->index)
        memcpy(r->index + kept, where, (size_t)n * sizeof *where);
}

static void find_each(void *context, int64_t begin, int64_t end)
{
    const arg_call *c = context;
    const dt_reduction *r = c->r;
    _Alignas(64) char buffer[LEAF * 8];
    for (int64_t kept = begin; kept < end; kept++) {
        const char *base = offset_of(r, kept);
        dt_element best = {.bytes = {0}};
        int64_t index = -1;
        walk w = {.ndim = 0};
        if (!c->dense)
            walk_start(&w, base, r->folded_ndim, r->folded_shape, r->folded_strides, 0);
        for (int64_t i = 0; i < r->folded_numel; i += LEAF) {
            int64_t n = r->folded_numel - i > LEAF ? LEAF : r->folded_numel - i;
            const char *x = base + i * (int64_t)c->element;
            if (!c->dense) {
                gather(&w, r->input_dtype, c->compute, n, buffer);
                x = buffer;
            }
            dt_element top;
            c->extreme->run(n, x, 0, &top);
            if (index >= 0 && !c->arg->beats(&top, &best, c->greatest))
                continue;
            index = i + c->arg->find(n, x, &top);
            /* The very element, since 0 and -0 are equal. */
            memcpy(&best, x + (index - i) * (int64_t)c->element, c->element);
        }
        store(c, kept, 1, &best, &index);
    }
}

static void widen(dt_dtype dtype, int64_t n, float *out, const void *x)
{
    char *data[2] = {(char *)out, (char *)(uintptr_t)x};
    int64_t strides[2] = {sizeof *out, (int64_t)dt_dtype_size(dtype)};
    dt_cpu_kernels.copy->convert[DT_FLOAT32][dtype](n, data, strides);
}

static void find_blocks(void *context, int64_t begin, int64_t end)
{
    const arg_call *c = context;
    const dt_reduction *r = c->r;
    int64_t width = inner_columns(r);
    for (int64_t item = begin; item < end; item++) {
        int64_t column = item % c->blocks * COLUMNS, outer = item / c->blocks;
        int64_t columns = width - column > COLUMNS ? COLUMNS : width - column;
        int64_t kept = outer * width + column;
        _Alignas(64) char best[COLUMNS * 8];
        _Alignas(64) float widened[COLUMNS];
        int64_t where[COLUMNS];
        walk w = {.ndim = 0};
        walk_start(&w, offset_of(r, kept), r->folded_ndim, r->folded_shape,
                   r->folded_strides, 0);
        memset(where, 0, (size_t)columns * sizeof *where);
        for (int64_t i = 0; i < r->folded_numel; i++) {
            const void *x = w.data;
            if (r->input_dtype != c->compute) {
                widen(r->input_dtype, columns, widened, x);
                x = widened;
            }
            if (i)
                c->arg->row(columns, x, c->greatest, i, best, where);
            else
                memcpy(best, x, (size_t)columns * c->element);
            walk_on(&w, 1);
        }
        store(c, kept, columns, best, where);
    }
}

int dt_cpu_argreduce(dt_stream stream, bool greatest, const dt_reduction *r)
{
    (void)stream;
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    if (r->folded_numel < 1)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: there is no element to choose from; give a tensor "
                       "that has some",
                       greatest ? "argmax" : "argmin");
    arg_call c = {
        .r = r,
        .extreme =
            &kernels->fold[r->input_dtype][greatest ? DT_REDUCE_amax : DT_REDUCE_amin],
        .arg = kernels->arg[r->input_dtype],
        .compute = dt_dtype_compute(r->input_dtype),
        .element = dt_dtype_size(dt_dtype_compute(r->input_dtype)),
        .greatest = greatest,
    };
    c.dense = c.compute == r->input_dtype &&
              (r->folded_ndim == 0 ||
               (r->folded_ndim == 1 && r->folded_strides[0] == (int64_t)c.element));
    bool columns = by_columns(r);
    c.blocks = columns ? (inner_columns(r) + COLUMNS - 1) / COLUMNS : 1;
    int64_t items =
        columns ? r->kept_numel / inner_columns(r) * c.blocks : r->kept_numel;
    int64_t each = r->folded_numel;
    if (columns)
        each *= inner_columns(r) < COLUMNS ? inner_columns(r) : COLUMNS;
    dt_pool_run(columns ? find_blocks : find_each, &c, items,
                (2 * WORK + each - 1) / each);
    return 0;
}
