/* Walks through the elements of a reduction, in row-major order of its dimensions. */
#ifndef DT_CPU_KERNELS_WALK_H
#define DT_CPU_KERNELS_WALK_H

#include "cpu/kernels/kernels.h"
#include "device/plan.h"

typedef struct walk {
    int ndim;
    const int64_t *shape, *strides;
    int64_t at[DT_MAX_NDIM];
    const char *data;
} walk;

/* To element `index` in row-major order. */
static inline void walk_start(walk *w, const void *data, int ndim, const int64_t *shape,
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
static inline int64_t walk_run(const walk *w)
{
    return w->ndim ? w->shape[w->ndim - 1] - w->at[w->ndim - 1] : 1;
}

/* Past `n` elements, no more than walk_run said. */
static inline void walk_on(walk *w, int64_t n)
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

static inline const char *offset_of(const dt_reduction *r, int64_t kept)
{
    walk w;
    walk_start(&w, r->input, r->kept_ndim, r->kept_shape, r->kept_strides, kept);
    return w.data;
}

/* Copies n elements from the walk's place on to where they are dense and of dtype. */
static inline void gather(walk *w, dt_dtype from, dt_dtype to, int64_t n, char *out)
{
    dt_kernel *convert = dt_cpu_kernels.copy->convert[to][from];
    int64_t size = (int64_t)dt_dtype_size(to);
    while (n > 0) {
        int64_t run = walk_run(w);
        run = run > n ? n : run;
        char *data[2] = {out, (char *)(uintptr_t)w->data};
        int64_t strides[2] = {size, w->ndim ? w->strides[w->ndim - 1] : 0};
        convert(run, data, strides);
        walk_on(w, run);
        out += run * size;
        n -= run;
    }
}

static inline int64_t inner_columns(const dt_reduction *r)
{
    return r->kept_shape[r->kept_ndim - 1];
}

/* Whether results lie next to each other and the elements of one do not. */
static inline bool by_columns(const dt_reduction *r)
{
    if (!r->kept_ndim || !r->folded_ndim || r->folded_numel < 2)
        return false;
    int64_t size = (int64_t)dt_dtype_size(r->input_dtype);
    return r->kept_strides[r->kept_ndim - 1] == size && inner_columns(r) >= 4 &&
           r->folded_strides[r->folded_ndim - 1] != size;
}

#endif
