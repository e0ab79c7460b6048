/* The one iteration planner: from operands of any layout to a plan that a backend runs.
 */
#ifndef DT_TENSOR_ITERATE_H
#define DT_TENSOR_ITERATE_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* An input of an elementwise operation: a tensor on the plan's device, or one element.
 */
typedef struct dt_input {
    const dt_tensor *tensor; /* NULL: immediate */
    dt_element value;
    dt_dtype dtype;
} dt_input;

/* Plans out = f(inputs), broadcasting. Where out holds nothing, it is made, of the
 * broadcast shape, with dtype, on device, laid out as its inputs are (PyTorch's rule);
 * else it is the destination, which the inputs must broadcast to, and whose elements
 * must not overlap. Returns 0, 1 when there is no element and nothing to run, -1 after
 * dt_fail. */
int dt_iterate_plan(dt_plan *plan, const char *what, dt_tensor *out, dt_dtype dtype,
                    dt_device device, const dt_input *inputs, int ninputs);

/* Whether t and other share memory other than element for element, so that writing one
 * while reading the other goes wrong. May say yes when they do not. */
bool dt_iterate_partly_overlaps(const dt_tensor *t, const dt_tensor *other);

/* Whether the memory from t's first to its last element meets that of other. May say
 * yes where only gaps do. */
bool dt_iterate_overlaps(const dt_tensor *t, const dt_tensor *other);

#endif
