/* Products whose derivative is recorded again: where a factor is 0, a quotient by it says
 * nothing of the product of the others, so that is computed from the factors. */
#ifndef DT_AUTOGRAD_FACTORS_H
#define DT_AUTOGRAD_FACTORS_H

#include "autograd/grad.h"

/* Whether the pass is recorded and x has an element 0; waits for x's device to see it. */
bool dt_grad_factors_needed(dt_grad *g, dt_arg x);
/* x along dim for each of its positions, with that one replaced by 1: (..., n, n, ...),
 * where dim is the position that is left out and dim + 1 the factor. */
dt_arg dt_grad_factors(dt_grad *g, dt_arg x, int64_t dim);
/* Whether the factor is not before the position; broadcasts with such a tensor. */
dt_arg dt_grad_factors_from(dt_grad *g, dt_arg x, int64_t dim);

#endif
