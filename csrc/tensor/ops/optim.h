/* Many tensors at once: updates in place by the rules of ops/optim.def. */
#ifndef DT_TENSOR_OPS_OPTIM_H
#define DT_TENSOR_OPS_OPTIM_H

#include "ops/ops.h"
#include "tensor/tensor.h"

typedef struct dt_optim_rule {
    const char *name;
    int nstates, nnumbers;
    int nkept;
    const char *states, *numbers, *own, *kept; /* their names, as "(a, b)" */
} dt_optim_rule;

extern const dt_optim_rule dt_optim_rules[]; /* by dt_optim_op */

/* A number that is kept for a parameter from step to step. */
typedef struct dt_optim_kept {
    double value;
    bool is_float32; /* the type that it is kept in; else float64 */
} dt_optim_kept;

/* An update of `count` parameters. A parameter's gradient and states have its shape and
 * are on its device, in any layout and any floating type, but those of the parameter
 * are the quick ones. */
typedef struct dt_optim_update {
    dt_optim_op op;
    int64_t count;
    const dt_tensor *const *tensors; /* the parameters, then their gradients, then for
                                        each state of the rule one a parameter */
    const double *steps; /* which update of each parameter it is, from 1; NULL: 1 */
    dt_optim_kept
        *kept; /* for each parameter those of the rule, which the call changes */
    double numbers[DT_OPTIM_NUMBERS];
    const dt_tensor
        *scale; /* one element, by which gradients are multiplied; or NULL */
    /* One float32 on the parameters' device, which becomes 1 where the rule says FOUND;
     * or NULL. */
    const dt_tensor *found;
    /* One element on the parameters' GPU, which is the number lr; then numbers are
     * those of an lr of 1. NULL: they are what counts. */
    const dt_tensor *rate;
    /* While a graph captures: the table of per-parameter numbers on the GPU, which
     * dt_optim_prepare fills before each replay; else NULL. */
    const dt_tensor *own;
} dt_optim_update;

/* Writes the numbers of each parameter's next step, DT_OPTIM_OWN doubles, into a table;
 * changes what is kept. */
void dt_optim_prepare(const dt_optim_update *update, double *table);

/* Makes one call of the backend for each device and type among the parameters. Counts a
 * write of each parameter and state. A misfit fails before anything is written. Does
 * not wait, unless scale is on a GPU and a parameter on the CPU. */
int dt_optim_step(const char *op_name, const dt_optim_update *update);

#endif
