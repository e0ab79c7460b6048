/* Views: other shapes and strides over the same storage, no copies. Return 0, or -1
 * after dt_fail with `out` empty; never synchronize. */
#ifndef DT_TENSOR_VIEW_H
#define DT_TENSOR_VIEW_H

#include "tensor/tensor.h"

/* One item of a subscript. */
typedef enum dt_subscript_kind {
    DT_SUBSCRIPT_INTEGER,
    DT_SUBSCRIPT_SLICE,
    DT_SUBSCRIPT_NEW_AXIS,
    DT_SUBSCRIPT_ELLIPSIS
} dt_subscript_kind;
typedef struct dt_subscript {
    dt_subscript_kind kind;
    int64_t start, stop,
        step; /* slices use all three; an integer is in start, the size of a new axis
                 in stop */
    bool has_start, has_stop;
} dt_subscript;

/* t[items]. Fails with DT_ERROR_INDEX for too many items or an integer out of range,
 * DT_ERROR_VALUE for a step that is not positive. */
int dt_view_index(dt_tensor *out, const dt_tensor *t, const dt_subscript *items,
                  int count);

/* t with another shape; one size may be -1. dt_view_shape fails if that needs a
 * copy; dt_view_reshape then copies. */
int dt_view_shape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape);
int dt_view_reshape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape);

int dt_view_permute(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims);
int dt_view_transpose(dt_tensor *out, const dt_tensor *t, int64_t dim0, int64_t dim1);
int dt_view_t(dt_tensor *out, const dt_tensor *t); /* at most two dimensions */
int dt_view_mT(dt_tensor *out, const dt_tensor *t);
/* Reverses all dimensions: Tensor.T */
int dt_view_reverse(dt_tensor *out, const dt_tensor *t);
/* Removes the dimensions among dims that have size 1; count -1: all dimensions. */
int dt_view_squeeze(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims);
int dt_view_unsqueeze(dt_tensor *out, const dt_tensor *t, int64_t dim);
/* Expands to a shape; -1 keeps t's size. `op_name` is expand or broadcast_to. */
int dt_view_expand(const char *op_name, dt_tensor *out, const dt_tensor *t, int ndim,
                   const int64_t *shape);
int dt_view_flatten(dt_tensor *out, const dt_tensor *t, int64_t start, int64_t end);
int dt_view_narrow(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t start,
                   int64_t length);
int dt_view_select(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t index);
/* The elements (i, i + offset) of dimensions dim1 and dim2 as a new last dimension. */
int dt_view_diagonal(dt_tensor *out, const dt_tensor *t, int64_t offset, int64_t dim1,
                     int64_t dim2);
/* Windows of `size` elements along dim, every `step`; the window is a new last
 * dimension. */
int dt_view_unfold(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t size,
                   int64_t step);
/* Splits one dimension into several; one size may be -1. */
int dt_view_unflatten(dt_tensor *out, const dt_tensor *t, int64_t dim, int count,
                      const int64_t *sizes);
int dt_view_as_strided(dt_tensor *out, const dt_tensor *t, int ndim,
                       const int64_t *shape, const int64_t *strides, int64_t offset);

#endif
