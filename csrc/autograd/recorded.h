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

static inline bool dt_recording_arg(dt_arg a)
{
    return a.tensor && dt_recording(a.tensor);
}

/* --- helpers for those who record (not for the binding) --- */

/* A node whose edges lead to the inputs. NULL after dt_fail. */
dt_node *dt_record_node(const dt_node_type *type, const char *name, int ninputs,
                        const dt_tensor *const *inputs, int nsaved, int nresults,
                        size_t data_bytes);
/* Makes out the only result of node, whose reference is taken over. On failure out is
 * cleared. */
int dt_record_steal(dt_tensor *out, dt_node *node);
/* Replaces *gradient, a tensor that node's derivative gives, by an alias in scope that is
 * recorded for the inputs (bits) of node too, where the pass is recorded. */
int dt_record_flat(struct dt_scope *scope, dt_tensor **gradient, const dt_node *node,
                   unsigned inputs, dt_flat flat);
/* Makes out, which stays as it is on failure, the result of something without a
 * derivative: a backward pass that comes to it fails, naming `what`, which is static.
 */
int dt_record_refusal(dt_tensor *out, const char *what, const dt_tensor *x);
/* As dt_record_steal, out being a view of x. */
int dt_record_view_steal(dt_tensor *out, const dt_tensor *x, dt_node *node);

/* Gives a view whose base was written a history that leads to its base. */
int dt_record_as_strided(const dt_tensor *view, dt_variable *v);

/* --- in place --- */

/* Refuses to write to t where that would lose a gradient: t is a leaf that wants one,
 * or a view of such a leaf, and operations are recorded. `what` names the operation. */
int dt_in_place_check(const char *what, const dt_tensor *t);
/* After t was written: node, whose reference is taken over and whose edge 0 led to t as
 * it was, made what t holds now. For a view, its base takes part. */
int dt_in_place_steal(dt_tensor *t, dt_node *node);

/* --- elements --- */

int dt_recorded_elementwise(dt_elementwise_op op, dt_tensor *out, const dt_arg *args);
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
