/* Extremes and where they are. */
#include <string.h>

#include "cpu/kernels/reduce_call.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"
#include "ops/reduce_ops.h"

/* Leaves, or rows of columns, between two looks for an interrupt. */
#define LOOK 1024
/* Results whose elements are looked at side by side, if each has at most SHORT. */
#define SIDE  128
#define SHORT 32

/* n results from number `kept` on. */
static int store_found(const dt_reduce_call *c, int64_t kept, int64_t n,
                       const void *values, const int64_t *where)
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

static int find_element(const dt_reduce_call *c, int64_t kept, int64_t columns,
                        int64_t begin, int64_t end, int64_t place)
{
    (void)columns, (void)place;
    _Alignas(64) char buffer[DT_REDUCE_LEAF * 8];
    dt_element best = {.bytes = {0}};
    int64_t index = -1;
    dt_reduce_walk w;
    dt_reduce_walk_leaves(&w, c, kept, begin);
    for (int64_t n, leaves = 1; begin < end; begin += n, leaves++) {
        const char *x = dt_reduce_leaf(c, &w, begin, end, &n, buffer);
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

static int find_short(const dt_reduce_call *c, int64_t kept, int64_t columns,
                      int64_t begin, int64_t end, int64_t place)
{
    (void)place;
    _Alignas(64) char best[SIDE * 8];
    int64_t where[SIDE];
    const int64_t stride = c->r->kept_strides[c->r->kept_ndim - 1];
    const char *x = dt_reduce_offset(c->r, kept);
    for (int64_t some; columns > 0; columns -= some, kept += some, x += some * stride) {
        some = columns < SIDE ? columns : SIDE;
        c->arg->runs(some, stride, end - begin, x, c->greatest, best, where);
        store_found(c, kept, some, best, where);
    }
    return 0;
}

static int find_columns(const dt_reduce_call *c, int64_t kept, int64_t columns,
                        int64_t begin, int64_t end, int64_t place)
{
    (void)place;
    const dt_reduction *r = c->r;
    _Alignas(64) char best[DT_REDUCE_COLUMNS * 8];
    _Alignas(64) float widened[DT_REDUCE_COLUMNS];
    int64_t where[DT_REDUCE_COLUMNS];
    dt_reduce_walk w;
    memset(where, 0, (size_t)columns * sizeof *where);
    dt_reduce_walk_elements(&w, r, kept, begin);
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
        dt_reduce_walk_on(&w, 1);
    }
    return store_found(c, kept, columns, best, where);
}

int dt_cpu_argreduce(dt_stream stream, bool greatest, const dt_reduction *r)
{
    (void)stream;
    const dt_reduce_kernels *kernels = dt_cpu_kernels.reduce;
    const char *name = greatest ? "argmax" : "argmin";
    if (r->reduced_numel < 1)
        return dt_reduce_fail_empty(DT_ERROR_INDEX, name);
    dt_reduce_op op = greatest ? DT_REDUCE_amax : DT_REDUCE_amin;
    dt_reduce_call c =
        dt_reduce_call_of(r, name, &kernels->rows[r->input_dtype][op],
                          dt_dtype_compute(r->input_dtype), DT_REDUCE_COLUMNS);
    c.arg = kernels->arg[r->input_dtype];
    c.greatest = greatest;
    c.rows = r->reduced_numel;
    c.groups = 1;
    if (c.columns > 1)
        c.reduce = find_columns;
    else if (c.dense && r->reduced_numel <= SHORT && dt_reduce_take_short(&c))
        c.reduce = find_short;
    else
        c.reduce = find_element;
    return dt_reduce_call_run(&c);
}
