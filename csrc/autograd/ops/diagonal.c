/* Diagonals: derivatives and composites. */
#include "autograd/grad.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

int dt_diag_embed_backward(dt_grad *g)
{
    return dt_grad_set(
        g, 0, CALL_OP(diagonal, TENSOR(GRAD), g->args[1], g->args[2], g->args[3]));
}

int dt_diagflat_forward(dt_call *c)
{
    DT_LOCAL(flat);
    if (DT_CALL(flatten, &flat, c->args[0]) < 0)
        return -1;
    return DT_CALL(diag_embed, c->out[0], dt_value_tensor(&flat), c->args[1],
                   dt_value_int(0), dt_value_int(1));
}

/* The gradient of a matrix's diagonal: in its place, with zeros around it. */
static int matrix_backward(dt_grad *g, int64_t offset)
{
    dt_arg whole = dt_grad_zeros(g, 0);
    DT_LOCAL(part);
    if (g->scope->failed || dt_view_diagonal(&part, whole.tensor, offset, 0, 1) < 0)
        return -1;
    return dt_grad_place(g, 0, whole, &part, GRAD.tensor);
}

int dt_diag_backward(dt_grad *g)
{
    if (dt_grad_like(g, 0)->ndim == 2)
        return matrix_backward(g, g->args[1].i);
    return dt_grad_set(
        g, 0,
        CALL_OP(diagonal, TENSOR(GRAD), g->args[1], dt_value_int(0), dt_value_int(1)));
}

int dt_trace_backward(dt_grad *g)
{
    return matrix_backward(g, 0);
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/diagonal.def"
