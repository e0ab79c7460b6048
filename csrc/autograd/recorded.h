/* The operations of floor 4 as the binding calls them: each does the work, and where a
 * gradient is wanted hangs a node on the result.
 *
 * They take what their namesakes in csrc/tensor take, fill `out` in the same way and
 * fail with the same errors. Names of nodes are PyTorch's. */
#ifndef DT_AUTOGRAD_RECORDED_H
#define DT_AUTOGRAD_RECORDED_H

#include "autograd/dispatch.h"
#include "autograd/variable.h"
#include "tensor/format.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* --- elements --- */

int dt_recorded_elementwise(dt_elementwise_op op, dt_tensor *out, const dt_arg *args);
/* Computes op, and records it as the row `as`, which has other derivatives. */
int dt_recorded_elementwise_as(dt_elementwise_op as, dt_elementwise_op op,
                               dt_tensor *out, const dt_arg *args);
int dt_recorded_elementwise_into(dt_elementwise_op op, dt_tensor *target,
                                 const dt_arg *args);

/* --- copies --- */

int dt_recorded_to(dt_tensor *out, const dt_tensor *x, dt_dtype dtype,
                   dt_device device);
int dt_recorded_to_format(dt_tensor *out, const dt_tensor *x, dt_dtype dtype,
                          dt_device device, dt_format format, bool non_blocking);
int dt_recorded_copy_into(const char *what, dt_tensor *target, const dt_tensor *source);

/* --- views --- */

int dt_recorded_index(dt_tensor *out, const dt_tensor *x, const dt_subscript *items,
                      int count);
/* Makes t what view, a recorded view of all of it, is, and takes view over. `name` is
 * the node's, `what` the operation's. */
int dt_recorded_become_steal(const char *what, const char *name, dt_tensor *t,
                             dt_tensor *view);
int dt_recorded_strided(dt_tensor *out, const dt_tensor *x, int ndim,
                        const int64_t *shape, const int64_t *strides, int64_t offset);

/* The sum over the dimensions that were broadcast from shape. */
int dt_recorded_sum_to(dt_tensor *out, const dt_tensor *x, int ndim,
                       const int64_t *shape);

#endif
