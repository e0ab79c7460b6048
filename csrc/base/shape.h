/* Shapes and strides as plain arrays: arithmetic only, no tensors, no devices. */
#ifndef DT_BASE_SHAPE_H
#define DT_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions that a tensor has. Shape and strides live inside the tensor
 * object, so this bounds its size. */
#define DT_MAX_NDIM 16

/* The number of elements, checked: -1 after dt_fail for a negative size or a product
 * beyond 2^63-1 (times `item` bytes). 1 for ndim 0. `what` names the operation in the
 * message. */
int64_t dt_shape_numel(const char *what, int ndim, const int64_t *shape, size_t item);

/* Strides of a row-major array, in elements, as PyTorch has them: a dimension of size 0
 * counts as 1 for the ones before it. Cannot fail. */
void dt_shape_strides(int ndim, const int64_t *shape, int64_t *strides);

/* Whether elements follow one another in row-major order; dimensions of size 1 do not
 * matter and an array without elements is contiguous. */
bool dt_shape_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides);

/* The shape that both broadcast to, into out (DT_MAX_NDIM entries) and *out_ndim. -1
 * after dt_fail with both shapes in the message. `what` names the operation. */
int dt_shape_broadcast(const char *what, int andim, const int64_t *ashape, int bndim,
                       const int64_t *bshape, int *out_ndim, int64_t *out);

bool dt_shape_equal(int andim, const int64_t *ashape, int bndim, const int64_t *bshape);

/* Writes "[2, 3]" into text, cut to size; returns text. */
char *dt_shape_text(int ndim, const int64_t *shape, char *text, size_t size);
#define DT_SHAPE_TEXT 256

/* Wraps a dimension index into 0..ndim-1 (a tensor of no dimension accepts 0 and -1).
 * -1 after dt_fail(DT_ERROR_INDEX). */
int dt_shape_wrap_dim(const char *what, int64_t dim, int ndim);

#ifdef __cplusplus
}
#endif
#endif
