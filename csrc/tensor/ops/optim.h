/* Many tensors at once: updates in place by the rules of ops/optim.def, and norms. */
#ifndef DT_TENSOR_OPS_OPTIM_H
#define DT_TENSOR_OPS_OPTIM_H

#include "ops/ops.h"
#include "tensor/tensor.h"

typedef struct dt_optim_rule {
    const char *name;
    int nstates;
    const char *states, *numbers; /* their names, as "(a, b)" */
} dt_optim_rule;

extern const dt_optim_rule dt_optim_rules[DT_NOPTIM];

/* A tensor to be updated, and what belongs to it: of its shape, on its device. Any
 * layout and any floating type will do, but those of the parameter are the quick ones.
 */
typedef struct dt_optim_item {
    dt_tensor *parameter;
    const dt_tensor *gradient;
    dt_tensor *states[DT_OPTIM_STATES]; /* as many as the rule has */
    double step;                        /* which update of the tensor it is, from 1 */
} dt_optim_item;

/* Applies a rule to all items, with one call of the backend for each device and type
 * among them. numbers: as many as the rule has. scale: one element, by which the
 * gradients are taken; or NULL. Counts a write of each parameter and state. A misfit
 * fails before anything is written. Does not wait, unless scale is on a GPU and an item
 * on the CPU. */
int dt_optim_step(const char *what, dt_optim_op op, int64_t count,
                  const dt_optim_item *items, const double *numbers,
                  const dt_tensor *scale);

/* The p-norm of all elements of `count` tensors together, which are on one device and
 * of one floating type: a tensor without dimensions. p is not 0. Does not wait. */
int dt_total_norm(const char *what, dt_tensor *out, int64_t count,
                  dt_tensor *const *tensors, double p);

#endif
