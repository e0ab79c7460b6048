/* The iteration planner: turns operands of any layout into a plan for a backend. */
#ifndef DT_TENSOR_ITERATE_H
#define DT_TENSOR_ITERATE_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* An input of an elementwise operation: a tensor on the plan's device, or a scalar. */
typedef struct dt_input {
    const dt_tensor *tensor; /* NULL: a scalar operand */
    dt_element value;
    dt_dtype dtype;
} dt_input;

/* Plans out = f(inputs) with broadcasting. If `out` is empty, creates it with the
 * broadcast shape, dtype and device, and the layout of the inputs (PyTorch's rule).
 * Otherwise the inputs must broadcast to it, and its elements must not overlap.
 * Returns 0, 1 if there are no elements and nothing to run, -1 after dt_fail. */
int dt_iterate_plan(dt_plan *plan, const char *op_name, dt_tensor *out, dt_dtype dtype,
                    dt_device device, const dt_input *inputs, int ninputs);

/* Whether t and other share memory other than element for element, so that writing
 * one while reading the other is wrong. May report an overlap where there is none. */
bool dt_iterate_partly_overlaps(const dt_tensor *t, const dt_tensor *other);

/* Whether the memory ranges of t and other intersect, gaps included. */
bool dt_iterate_overlaps(const dt_tensor *t, const dt_tensor *other);

#endif
