/* Reductions and moments: one result at a time, or some side by side. */
#include "cpu/runtime/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/reduce_call.h"
#include "ops/reduce_ops.h"

static const char *const names[DT_NREDUCE] = {
#define REDUCE(name, class, identity, map, combine, finish, ...)                       \
    [DT_REDUCE_##name] = #name,
#include "ops/reduce.def"
#undef REDUCE
};

static int fail_for_memory(const char *name)
{
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "%s: no memory for partial results; delete some tensors first",
                   name);
}

/* --- one result at a time --- */

static int reduce_elements(const dt_reduce_call *c, int64_t kept, int64_t columns,
                           int64_t begin, int64_t end, int64_t place)
{
    _Alignas(64) char buffer[DT_REDUCE_LEAF * 8];
    _Alignas(8) char levels[DT_REDUCE_LEVELS * DT_REDUCE_PARTIAL];
    double p = c->r->parameter;
    size_t bytes = c->kernel->partial;
    char *out = c->out + (size_t)place * bytes;
    dt_reduce_tree t = {
        .kernel = c->kernel, .columns = columns, .bytes = bytes, .levels = levels};
    dt_reduce_walk w;
    dt_reduce_walk_leaves(&w, c, kept, begin);
    for (int64_t n; begin < end; begin += n) {
        const char *x = dt_reduce_leaf(c, &w, begin, end, &n, buffer);
        bool only = !t.leaves && n == end - begin;
        c->kernel->run(n, x, p, only ? out : dt_reduce_tree_next(&t));
        if (only)
            return 0;
        dt_reduce_tree_push(&t);
    }
    memcpy(out, dt_reduce_tree_finish(&t), bytes);
    return 0;
}

/* --- short results side by side --- */

static int reduce_short(const dt_reduce_call *c, int64_t kept, int64_t columns,
                        int64_t begin, int64_t end, int64_t place)
{
    const dt_reduction *r = c->r;
    const int64_t n = end - begin, stride = r->kept_strides[r->kept_ndim - 1];
    const char *x = dt_reduce_offset(r, kept);
    char *out = c->out + (size_t)place * c->kernel->partial;
    if (r->input_dtype == c->compute) {
        c->kernel->runs(columns, stride, n, x, r->parameter, out);
        return 0;
    }
    _Alignas(64) char buffer[DT_REDUCE_LEAF * 8];
    const bool together = stride == n * (int64_t)dt_dtype_size(r->input_dtype);
    for (int64_t some; columns > 0; columns -= some, x += some * stride) {
        some = columns < DT_REDUCE_LEAF / n ? columns : DT_REDUCE_LEAF / n;
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

static int levels_for(int64_t leaves)
{
    int levels = 2;
    while (leaves >>= 1)
        levels++;
    return levels;
}

static int reduce_columns(const dt_reduce_call *c, int64_t kept, int64_t columns,
                          int64_t begin, int64_t end, int64_t place)
{
    const dt_reduction *r = c->r;
    size_t bytes = ((size_t)columns * c->kernel->partial + 63) & ~(size_t)63;
    size_t row = ((size_t)(columns * c->element) + 63) & ~(size_t)63;
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    bool direct = r->input_dtype == c->compute;
    size_t levels = (size_t)levels_for((end - begin) / DT_REDUCE_LEAF_ROWS + 1);
    char *scratch = NULL;
    if (posix_memalign((void **)&scratch, 64,
                       levels * bytes + (direct ? 0 : DT_REDUCE_LEAF_ROWS * row)))
        return -1;
    char *buffer = scratch + levels * bytes;
    dt_reduce_tree t = {
        .kernel = c->kernel, .columns = columns, .bytes = bytes, .levels = scratch};
    dt_reduce_walk w;
    dt_reduce_walk_elements(&w, r, kept, begin);
    for (; begin < end; begin += DT_REDUCE_LEAF_ROWS) {
        int64_t n =
            end - begin > DT_REDUCE_LEAF_ROWS ? DT_REDUCE_LEAF_ROWS : end - begin;
        char *partial = dt_reduce_tree_next(&t);
        for (int64_t done = 0; done < n;) {
            int64_t run = dt_reduce_walk_run(&w), stride = w.strides[w.ndim - 1];
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
            dt_reduce_walk_on(&w, run);
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
static int join_groups(const dt_reduce_call *c, char *out)
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
static int reduce(dt_reduce_call *c, void *out)
{
    size_t bytes = (size_t)(c->groups * c->r->kept_numel) * c->kernel->partial;
    if (c->columns > 1)
        c->reduce = reduce_columns;
    else
        c->reduce = dt_reduce_take_short(c) ? reduce_short : reduce_elements;
    c->out = c->groups > 1 ? malloc(bytes) : out;
    if (!c->out)
        return fail_for_memory(c->name);
    int status = dt_reduce_call_run(c);
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
    dt_reduce_call c =
        dt_reduce_call_of(r, names[op], kernel, compute, DT_REDUCE_COLUMNS);
    if (r->reduced_numel == 0) {
        if (kernel->needs_element)
            return dt_reduce_fail_empty(DT_ERROR_RUNTIME, names[op]);
        kernel->start(r->kept_numel, NULL, r->output);
    } else if (c.dense && r->kept_numel == 1 && r->reduced_numel <= DT_REDUCE_LEAF) {
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
    dt_reduce_call c =
        dt_reduce_call_of(r, "var", kernel, r->input_dtype, DT_MOMENTS_COLUMNS);
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
