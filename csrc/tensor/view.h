/* Views: other shapes and strides over the same storage, no copies. */
#ifndef DT_TENSOR_VIEW_H
#define DT_TENSOR_VIEW_H

#include "tensor/tensor.h"

/* One item of a subscript, already checked for its Python type. */
typedef enum dt_subscript_kind {
    DT_SUBSCRIPT_INTEGER,
    DT_SUBSCRIPT_SLICE,
    DT_SUBSCRIPT_NEW_AXIS,
    DT_SUBSCRIPT_ELLIPSIS
} dt_subscript_kind;
typedef struct dt_subscript {
    dt_subscript_kind kind;
    int64_t start, stop,
        step; /* of a slice; an integer's start; a new axis's size: stop */
    bool has_start, has_stop;
} dt_subscript;

/* t[items]: DT_ERROR_INDEX for too many items or an integer out of range,
 * DT_ERROR_VALUE for a step that is not positive. */
int dt_view_index(dt_tensor *out, const dt_tensor *t, const dt_subscript *items,
                  int count);

/* Strides under which t's elements have the shape without a copy, one size may be -1.
 * dt_view_shape fails where that cannot be; dt_view_reshape then copies. */
int dt_view_shape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape);
int dt_view_reshape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *shape);

int dt_view_permute(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims);
int dt_view_transpose(dt_tensor *out, const dt_tensor *t, int64_t dim0, int64_t dim1);
int dt_view_t(dt_tensor *out, const dt_tensor *t); /* of at most two dimensions */
int dt_view_mT(dt_tensor *out, const dt_tensor *t);
/* All dimensions reversed: Tensor.T */
int dt_view_reverse(dt_tensor *out, const dt_tensor *t);
/* Without the dimensions of size 1 among dims; count -1: all of them. */
int dt_view_squeeze(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims);
int dt_view_unsqueeze(dt_tensor *out, const dt_tensor *t, int64_t dim);
/* To a shape whose sizes of -1 keep t's own. `what` is expand or broadcast_to. */
int dt_view_expand(const char *what, dt_tensor *out, const dt_tensor *t, int ndim,
                   const int64_t *shape);
int dt_view_flatten(dt_tensor *out, const dt_tensor *t, int64_t start, int64_t end);
int dt_view_narrow(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t start,
                   int64_t length);
int dt_view_select(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t index);
/* The elements i, i + offset of dimensions dim1 and dim2, as a last dimension. */
int dt_view_diagonal(dt_tensor *out, const dt_tensor *t, int64_t offset, int64_t dim1,
                     int64_t dim2);
/* Windows of `size` along dim, one every `step`; within a window: a last dimension. */
int dt_view_unfold(dt_tensor *out, const dt_tensor *t, int64_t dim, int64_t size,
                   int64_t step);
/* One dimension as several, of which one size may be -1. */
int dt_view_unflatten(dt_tensor *out, const dt_tensor *t, int64_t dim, int count,
                      const int64_t *sizes);
int dt_view_as_strided(dt_tensor *out, const dt_tensor *t, int ndim,
                       const int64_t *shape, const int64_t *strides, int64_t offset);

#endif
