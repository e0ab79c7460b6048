/* Shapes and strides as plain arrays: no tensors, no devices. */
#ifndef DT_BASE_SHAPE_H
#define DT_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of dimensions. Shape and strides are stored inline in every tensor. */
#define DT_MAX_NDIM 16

/* Number of elements (1 for ndim 0). -1 after dt_fail if a size is negative or if
 * the elements, of `item` bytes each, exceed the address space. `op_name` is for the
 * message. */
int64_t dt_shape_numel(const char *op_name, int ndim, const int64_t *shape,
                       size_t item);

/* Row-major strides in elements. As in PyTorch, a dimension of size 0 counts as size
 * 1. Cannot fail. */
void dt_shape_strides(int ndim, const int64_t *shape, int64_t *strides);

/* The dimensions by stride, the largest first; those of one stride as they are. */
void dt_shape_order(int ndim, const int64_t *strides, int *order);

/* The strides of a dense tensor whose dimensions are in memory in this order. */
void dt_shape_ordered_strides(int ndim, const int64_t *shape, const int *order,
                              int64_t *strides);

/* Whether strides are row-major without gaps. Ignores dimensions of size 1; an array
 * without elements is contiguous. */
bool dt_shape_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides);

/* Elements of memory from the first to the last element, gaps included; 0 if there are
 * no elements. Strides must not be negative. */
int64_t dt_shape_extent(int ndim, const int64_t *shape, const int64_t *strides);

/* Broadcasts two shapes into out (DT_MAX_NDIM entries) and *out_ndim. -1 after
 * dt_fail with both shapes in the message. */
int dt_shape_broadcast(const char *op_name, int andim, const int64_t *ashape, int bndim,
                       const int64_t *bshape, int *out_ndim, int64_t *out);

bool dt_shape_equal(int andim, const int64_t *ashape, int bndim, const int64_t *bshape);

/* Writes "[2, 3]" into text, truncated to size; returns text. */
char *dt_shape_text(int ndim, const int64_t *shape, char *text, size_t size);
#define DT_SHAPE_TEXT 256

/* Wraps a negative dimension into 0..ndim-1 (ndim 0 accepts 0 and -1). -1 after
 * dt_fail(DT_ERROR_INDEX). */
int dt_shape_wrap_dim(const char *op_name, int64_t dim, int ndim);

/* Wraps `count` dimensions, each named once, and marks them in `named`, which has
 * DT_MAX_NDIM entries. -1 after dt_fail. */
int dt_shape_wrap_dims(const char *op_name, int count, const int64_t *dims, int ndim,
                       bool *named);

/* Wraps two dimensions, which must differ. -1 after dt_fail. */
int dt_shape_wrap_pair(const char *op_name, int64_t dim1, int64_t dim2, int ndim,
                       int *out1, int *out2);

/* Fails where a result would have more dimensions than a tensor can have. */
int dt_shape_check_ndim(const char *op_name, int ndim);

#ifdef __cplusplus
}
#endif
#endif
