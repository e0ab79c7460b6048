/* How the functions that make views end, and change the dimensions of the alias that a view
 * begins as. */
#ifndef DT_TENSOR_VIEW_DIMS_H
#define DT_TENSOR_VIEW_DIMS_H

#include "tensor/view.h"

/* Clears the alias on failure. */
static inline int dt_view_finish(dt_tensor *out, int status)
{
    if (status < 0) {
        dt_tensor_clear(out);
        return -1;
    }
    dt_tensor_update(out);
    return 0;
}

static inline void dt_view_drop_dim(dt_tensor *t, int dim)
{
    t->ndim--;
    for (int d = dim; d < t->ndim; d++) {
        t->shape[d] = t->shape[d + 1];
        t->strides[d] = t->strides[d + 1];
    }
}

static inline int dt_view_insert_dim(const char *op_name, dt_tensor *t, int dim,
                                     int64_t stride)
{
    if (dt_shape_check_ndim(op_name, t->ndim + 1))
        return -1;
    for (int d = t->ndim; d > dim; d--) {
        t->shape[d] = t->shape[d - 1];
        t->strides[d] = t->strides[d - 1];
    }
    t->ndim++;
    t->shape[dim] = 1;
    t->strides[dim] = stride;
    return 0;
}

#endif
