/* Windows that slide over a tensor: their arguments, and the sizes of results. */
#ifndef DT_TENSOR_OPS_WINDOW_H
#define DT_TENSOR_OPS_WINDOW_H

#include "ops/window.h"
#include "tensor/call.h"

/* "int or tuple of ints": one number counts for each of the ndim dimensions, and an argument
 * that is left out, None or an empty tuple is `otherwise` for each. Writes `ndim` numbers.
 * -1 after dt_fail for another count, or a number below `least`. `name` is the
 * parameter's. */
int dt_window_numbers(const char *op_name, const char *name, const dt_value *value,
                      int ndim, int64_t least, int64_t otherwise, int64_t *out);

/* Fills all but `output` from arrays of ndim numbers; input has the sizes of the last ndim
 * dimensions of a tensor. dilation or padding NULL: 1 or 0. Cannot fail. */
void dt_window_set(dt_window *w, int ndim, const int64_t *input, const int64_t *kernel,
                   const int64_t *stride, const int64_t *padding,
                   const int64_t *dilation);

/* Computes `output` with `padding` on both sides. ceil_mode: a last window that begins in
 * the input or in the padding before it may end beyond the padding. -1 after dt_fail where
 * the kernel is larger than the padded input. */
int dt_window_slide(const char *op_name, dt_window *w, bool ceil_mode);

#endif
