/* Softmax: kernels for the first derivative, formulas for higher ones. */
#include "autograd/grad.h"
#include "autograd/formula.h"
#include "tensor/ops/nn.h"

dt_arg dt_grad_along(dt_grad *g, const dt_tensor *t, const dt_tensor *x, int dim)
{
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = d == dim ? x->shape[d] : 1;
    return CALL_OP(reshape, dt_value_tensor(t), dt_value_ints(x->ndim, shape));
}

int dt_softmax_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg G = GRAD, Y = dt_grad_output(g, 0);
    bool log = g->op == DT_RECORD(log_softmax);
    if (scope->failed)
        return -1;
    if (!dt_recording(G.tensor) && !dt_recording(Y.tensor)) {
        dt_tensor *out = dt_scope_slot(scope);
        int dim = dt_shape_wrap_dim(g->node->name, g->args[1].i, Y.tensor->ndim);
        if (!out || dt_softmax_gradient(log ? DT_NN_log_softmax_backward
                                            : DT_NN_softmax_backward,
                                        out, G.tensor, Y.tensor, dim) < 0)
            return -1;
        return dt_grad_set(g, 0, dt_arg_tensor(out));
    }
#define ROW_SUM(x)                                                                     \
    CALL_OP(sum, TENSOR(x), dt_value_ints(1, &g->args[1].i), dt_value_bool(true))
    if (log)
        return dt_grad_set(g, 0, SUB(G, MUL(EXP(Y), ROW_SUM(G))));
    dt_arg part = MUL(G, Y);
    return dt_grad_set(g, 0, SUB(part, MUL(Y, ROW_SUM(part))));
#undef ROW_SUM
}
