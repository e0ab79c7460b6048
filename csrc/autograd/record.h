/* The recorder: makes nodes for operations and attaches them to results. The dispatcher
 * records by it what has a record (op_node.h); elementwise operations, subscripts and
 * strided views, which are called without the dispatcher, have nodes of their own. */
#ifndef DT_AUTOGRAD_RECORD_H
#define DT_AUTOGRAD_RECORD_H

#include "autograd/grad.h"

static inline bool dt_recording_arg(dt_arg a)
{
    return a.tensor && dt_recording(a.tensor);
}

/* A node whose edges lead to the inputs. NULL after dt_fail. */
dt_node *dt_record_node(const dt_node_type *type, const char *name, int ninputs,
                        const dt_tensor *const *inputs, int nsaved, int nresults,
                        size_t data_bytes);
/* Makes out result i of node. */
int dt_record_result(dt_tensor *out, dt_node *node, int i);
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

#endif
