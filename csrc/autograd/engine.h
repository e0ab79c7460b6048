/* The backward pass. */
#ifndef DT_AUTOGRAD_ENGINE_H
#define DT_AUTOGRAD_ENGINE_H

#include "autograd/variable.h"

/* Computes gradients from `roots` (results of nodes, or leaves).
 *
 * gradients[i], borrowed, is the gradient of root i. With ninputs 0, leaves
 * accumulate their gradients. Otherwise only nodes between roots and inputs run, and
 * into[i] becomes the gradient of input i, or stays empty if there is none; into NULL:
 * leaves among the inputs accumulate theirs. keep_graph: saved tensors are kept for another pass. create_graph:
 * the pass itself is differentiable. Work on GPUs is queued on the streams of the
 * forward pass; does not synchronize. -1 after dt_fail; leaves may have accumulated
 * some gradients. */
int dt_backward(int nroots, const dt_edge *roots, dt_tensor *const *gradients,
                int ninputs, const dt_edge *inputs, dt_tensor *into, bool keep_graph,
                bool create_graph);

#endif
