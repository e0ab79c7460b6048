/* A reduction as the CPU divides it: into pieces of work of one or more results, whose
 * elements come in leaves. The pieces depend on shape and strides alone, so that results do
 * not depend on threads. */
#ifndef DT_CPU_KERNELS_REDUCE_CALL_H
#define DT_CPU_KERNELS_REDUCE_CALL_H

#include "cpu/kernels/reduce.h"

/* Columns: rows that one loop reduces, columns of a block. */
#define DT_REDUCE_LEAF_ROWS 64
#define DT_REDUCE_COLUMNS   1024

/* --- a walk through elements, in row-major order of some dimensions --- */

typedef struct dt_reduce_walk {
    int ndim;
    const int64_t *shape, *strides;
    int64_t at[DT_MAX_NDIM];
    const char *data;
} dt_reduce_walk;

/* Starts at element `index` in row-major order. */
static inline void dt_reduce_walk_start(dt_reduce_walk *w, const void *data, int ndim,
                                        const int64_t *shape, const int64_t *strides,
                                        int64_t index)
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
static inline int64_t dt_reduce_walk_run(const dt_reduce_walk *w)
{
    return w->ndim ? w->shape[w->ndim - 1] - w->at[w->ndim - 1] : 1;
}

/* Past `n` elements, no more than dt_reduce_walk_run said. */
static inline void dt_reduce_walk_on(dt_reduce_walk *w, int64_t n)
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

static inline const char *dt_reduce_offset(const dt_reduction *r, int64_t kept)
{
    dt_reduce_walk w;
    dt_reduce_walk_start(&w, r->input, r->kept_ndim, r->kept_shape, r->kept_strides,
                         kept);
    return w.data;
}

/* Starts at the reduced element number `index` of a result. */
static inline void dt_reduce_walk_elements(dt_reduce_walk *w, const dt_reduction *r,
                                           int64_t kept, int64_t index)
{
    dt_reduce_walk_start(w, dt_reduce_offset(r, kept), r->reduced_ndim,
                         r->reduced_shape, r->reduced_strides, index);
}

/* --- calls --- */

typedef struct dt_reduce_call dt_reduce_call;
typedef int dt_reduce_call_fn(const dt_reduce_call *c, int64_t kept, int64_t columns,
                              int64_t begin, int64_t end, int64_t place);

struct dt_reduce_call {
    const dt_reduction *r;
    const char *name;
    const dt_reduce_kernel *kernel;
    const dt_arg_kernel *arg; /* argreduce */
    bool greatest;
    /* Reduces elements begin to end-1 of results `kept` and the next, `columns` in all. */
    dt_reduce_call_fn *reduce;
    dt_dtype compute; /* the type that kernels take */
    int64_t element;  /* bytes of one of it */
    bool dense;       /* elements of a result are adjacent, in the type */
    int64_t run;      /* length of their runs between other results'; or 0 */
    int64_t columns; /* results that are reduced together: neighbours, or short; or 1 */
    int64_t block, blocks; /* of them in a piece of work; how many pieces that makes */
    int64_t rows, groups;  /* the same for the elements of a result */
    char *out;             /* partial results, [outer][group][column] */
    int failed;
};

/* block: columns of a piece of work, at most. */
dt_reduce_call dt_reduce_call_of(const dt_reduction *r, const char *name,
                                 const dt_reduce_kernel *kernel, dt_dtype compute,
                                 int64_t block);

/* Runs c->reduce for all pieces. -1: Ctrl-C. */
int dt_reduce_call_run(dt_reduce_call *c);

/* Whether results are short, and the elements of each adjacent: then pieces of work have many
 * of them, as columns. */
bool dt_reduce_take_short(dt_reduce_call *c);

/* A leaf: the elements of a result from number `first` on, *n of them, all before `end`,
 * contiguous and in the type that kernels take. Returns their address, or that of the
 * buffer into which they were gathered. */
const char *dt_reduce_leaf(const dt_reduce_call *c, dt_reduce_walk *w, int64_t first,
                           int64_t end, int64_t *n, char *buffer);

/* For dt_reduce_leaf: from the reduced element number `index` on. */
void dt_reduce_walk_leaves(dt_reduce_walk *w, const dt_reduce_call *c, int64_t kept,
                           int64_t index);

int dt_reduce_fail_empty(dt_error_code code, const char *name);

#endif
