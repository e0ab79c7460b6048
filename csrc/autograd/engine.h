/* The backward pass. */
#ifndef DT_AUTOGRAD_ENGINE_H
#define DT_AUTOGRAD_ENGINE_H

#include "autograd/variable.h"

/* Carries gradients from `roots` (results of nodes, or leaves) to where they lead.
 *
 * gradients[i] is that of root i; it is lent. ninputs 0: leaves accumulate what reaches
 * them. Else only the nodes between roots and inputs run, no leaf accumulates, and
 * into[i] becomes the gradient of input i, or holds nothing where none came.
 * keep_graph: what nodes saved is kept for another pass. create_graph: the pass itself
 * is recorded. Work on GPUs is queued on the streams of the forward pass; nothing
 * waits. -1 after dt_fail; leaves may have accumulated a part by then. */
int dt_backward(int nroots, const dt_edge *roots, dt_tensor *const *gradients,
                int ninputs, const dt_edge *inputs, dt_tensor *into, bool keep_graph,
                bool create_graph);

#endif
