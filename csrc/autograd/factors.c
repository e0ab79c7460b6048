#include "autograd/factors.h"

#include "autograd/formula.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

bool dt_grad_factors_needed(dt_grad *g, dt_arg x)
{
    dt_scope *scope = g->scope;
    dt_scalar found = dt_scalar_int(0);
    if (!dt_grad_enabled || scope->failed)
        return false;
    dt_arg zeros = CALL_OP(sum, TENSOR(EQ(x, ZERO)));
    if (!scope->failed && dt_item("backward", zeros.tensor, &found) < 0)
        scope->failed = true;
    return !scope->failed && found.i != 0;
}

/* 0, 1, ... along one of the dimensions dim and dim + 1 of x with one more. */
static dt_arg numbers(dt_grad *g, dt_arg x, int64_t dim, bool second)
{
    int64_t shape[DT_MAX_NDIM] = {0};
    const int ndim = x.tensor->ndim - (int)dim + !second;
    dt_tensor *made = dt_scope_slot(g->scope);
    if (!made ||
        dt_arange(made, dt_scalar_int(0), dt_scalar_int(x.tensor->shape[dim]),
                  dt_scalar_int(1), DT_INT64, dt_tensor_device(x.tensor)) < 0) {
        g->scope->failed = true;
        return x;
    }
    for (int d = 0; d < ndim; d++)
        shape[d] = d ? 1 : x.tensor->shape[dim];
    return CALL_OP(reshape, dt_value_tensor(made), dt_value_ints(ndim, shape));
}

dt_arg dt_grad_factors(dt_grad *g, dt_arg x, int64_t dim)
{
    dt_scope *scope = g->scope;
    if (scope->failed)
        return x;
    dt_arg left = numbers(g, x, dim, false), factor = numbers(g, x, dim, true);
    return WHERE(EQ(left, factor), ONE,
                 CALL_OP(unsqueeze, TENSOR(x), dt_value_int(dim)));
}

dt_arg dt_grad_factors_from(dt_grad *g, dt_arg x, int64_t dim)
{
    dt_scope *scope = g->scope;
    if (scope->failed)
        return x;
    return LE(numbers(g, x, dim, false), numbers(g, x, dim, true));
}
