/* Elements chosen by index tensors and masks. */
#include "autograd/grad.h"
#include "autograd/formula.h"
#include "autograd/recorded.h"
#include "tensor/ops/ops.h"

static const int64_t first_dim[] = {0};

/* --- reading: the gradient is added to zeros where the elements were read --- */

int dt_index_select_backward(dt_grad *g)
{
    dt_arg whole = dt_grad_zeros(g, 0), index = dt_grad_input(g, 2);
    if (g->scope->failed || DT_CALL_INTO(index_add, (dt_tensor *)whole.tensor,
                                         g->args[1], TENSOR(index), TENSOR(GRAD)) < 0)
        return -1;
    return dt_grad_set(g, 0, whole);
}

int dt_gather_backward(dt_grad *g)
{
    return dt_grad_scatter(g, 0, DT_INDEX_ADD, g->args[1].i, dt_grad_input(g, 2));
}

int dt_grad_put(dt_grad *g, dt_arg index)
{
    const dt_result *x = dt_grad_like(g, 0);
    dt_arg flat = CALL_OP(flatten, TENSOR(dt_grad_zeros(g, 0)));
    if (g->scope->failed ||
        DT_CALL_INTO(index_put, (dt_tensor *)flat.tensor,
                     dt_value_tensors(1, &index.tensor), dt_value_ints(1, first_dim),
                     TENSOR(GRAD), dt_value_bool(true)) < 0)
        return -1;
    return dt_grad_set(
        g, 0, CALL_OP(reshape, TENSOR(flat), dt_value_ints(x->ndim, x->shape)));
}

int dt_take_backward(dt_grad *g)
{
    return dt_grad_put(g, dt_grad_input(g, 1));
}

int dt_index_backward(dt_grad *g)
{
    const dt_tensor *items[DT_MAX_NDIM];
    dt_arg whole = dt_grad_zeros(g, 0);
    dt_value indices = dt_grad_list(g, 1, items);
    if (g->scope->failed ||
        DT_CALL_INTO(index_put, (dt_tensor *)whole.tensor, indices, g->args[2],
                     TENSOR(GRAD), dt_value_bool(true)) < 0)
        return -1;
    return dt_grad_set(g, 0, whole);
}

/* --- writing: what was overwritten gets zeros --- */

static const dt_value zero = {.scalar = {.kind = DT_KIND_INTEGER}, .given = true};

/* scatter may write only a part of its source: the gradient of the rest is zero. */
static int set_source(dt_grad *g, int i, dt_arg part)
{
    const dt_result *like = dt_grad_like(g, i);
    const dt_tensor *p = part.tensor;
    dt_subscript items[DT_MAX_NDIM] = {0};
    DT_LOCAL(view);
    bool one = true;
    if (g->scope->failed)
        return -1;
    for (int d = 0; d < like->ndim; d++)
        one = one && like->shape[d] == 1;
    if (one || dt_shape_equal(p->ndim, p->shape, like->ndim, like->shape))
        return dt_grad_set(g, i, part);
    for (int d = 0; d < p->ndim; d++)
        items[d] = (dt_subscript){.kind = DT_SUBSCRIPT_SLICE,
                                  .step = 1,
                                  .has_stop = true,
                                  .stop = p->shape[d]};
    dt_arg whole = dt_grad_zeros(g, i);
    if (g->scope->failed || dt_view_index(&view, whole.tensor, items, p->ndim) < 0)
        return -1;
    return dt_grad_place(g, i, whole, &view, p);
}

static int scatter_backward(dt_grad *g, bool adds)
{
    dt_arg index = dt_grad_input(g, 2);
    SET_WANTED(0,
               adds ? GRAD
                    : CALL_OP(scatter, TENSOR(GRAD), g->args[1], TENSOR(index), zero));
    if (!dt_grad_wants(g, 3))
        return 0;
    return set_source(g, 3, CALL_OP(gather, TENSOR(GRAD), g->args[1], TENSOR(index)));
}

int dt_scatter_backward(dt_grad *g)
{
    const char *reduce = g->args[4].given ? g->args[4].text : NULL;
    if (reduce && *reduce == 'm')
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "backward: scatter with reduce='multiply' has no derivative; "
                       "call it under no_grad()");
    return scatter_backward(g, reduce != NULL);
}

int dt_scatter_add_backward(dt_grad *g)
{
    return scatter_backward(g, true);
}

int dt_index_add_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg index = dt_grad_input(g, 2);
    SET_WANTED(0, GRAD);
    SET_WANTED(3, MUL(CALL_OP(index_select, TENSOR(GRAD), g->args[1], TENSOR(index)),
                      dt_grad_number(g, 4)));
    return 0;
}

int dt_index_copy_backward(dt_grad *g)
{
    dt_arg index = dt_grad_input(g, 2);
    SET_WANTED(0, CALL_OP(index_fill, TENSOR(GRAD), g->args[1], TENSOR(index), zero));
    SET_WANTED(3, CALL_OP(index_select, TENSOR(GRAD), g->args[1], TENSOR(index)));
    return 0;
}

/* The value is written once where the index names a position twice. */
int dt_index_fill_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    const dt_tensor *grad = g->gradients[0];
    dt_arg index = dt_grad_input(g, 2);
    dt_tensor *nowhere = dt_scope_slot(scope);
    SET_WANTED(0, CALL_OP(index_fill, TENSOR(GRAD), g->args[1], TENSOR(index), zero));
    if (!nowhere || dt_full("backward", nowhere, DT_BOOL, grad->ndim, grad->shape,
                            dt_tensor_device(grad), dt_scalar_bool(false)) < 0)
        return -1;
    SET_WANTED(3, WHERE(CALL_OP(index_fill, dt_value_tensor(nowhere), g->args[1],
                                TENSOR(index), dt_value_number(1)),
                        GRAD, ZERO));
    return 0;
}

int dt_index_put_backward(dt_grad *g)
{
    const dt_tensor *items[DT_MAX_NDIM];
    dt_value indices = dt_grad_list(g, 1, items);
    bool adds = g->args[4].b;
    SET_WANTED(0, adds ? GRAD
                       : CALL_OP(index_put, TENSOR(GRAD), indices, g->args[2], zero));
    SET_WANTED(3, CALL_OP(index, TENSOR(GRAD), indices, g->args[2]));
    return 0;
}

int dt_masked_fill_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg mask = dt_grad_input(g, 1);
    SET_WANTED(0, WHERE(mask, ZERO, GRAD));
    SET_WANTED(2, WHERE(mask, GRAD, ZERO));
    return 0;
}

/* --- embeddings --- */

/* The gradient divided by how often each row was chosen. */
static dt_arg per_frequency(dt_grad *g, dt_arg indices)
{
    dt_scope *scope = g->scope;
    dt_value list = dt_value_tensors(1, &indices.tensor);
    dt_value dims = dt_value_ints(1, first_dim);
    dt_tensor *counts = scope->failed ? NULL : dt_scope_slot(scope);
    if (!counts ||
        dt_full(g->node->name, counts, (dt_dtype)GRAD.tensor->dtype, 1,
                dt_grad_like(g, 0)->shape, dt_tensor_device(GRAD.tensor),
                dt_scalar_float(0)) < 0 ||
        DT_CALL_INTO(index_put, counts, list, dims, dt_value_scalar(dt_scalar_float(1)),
                     dt_value_bool(true)) < 0) {
        scope->failed = true;
        return GRAD;
    }
    dt_arg shares = CALL_OP(index, dt_value_tensor(counts), list, dims);
    return DIV(GRAD, CALL_OP(unsqueeze, TENSOR(shares), dt_value_int(-1)));
}

int dt_embedding_backward(dt_grad *g)
{
    dt_arg indices = dt_grad_input(g, 1), grad = GRAD;
    if (g->args[3].b)
        grad = per_frequency(g, indices);
    return dt_grad_set(g, 0,
                       CALL_OP(embedding_dense_backward, TENSOR(grad), TENSOR(indices),
                               dt_value_int(dt_grad_like(g, 0)->shape[0]), g->args[2]));
}

int dt_embedding_dense_backward_backward(dt_grad *g)
{
    dt_scope *scope = g->scope;
    dt_arg indices = dt_grad_input(g, 1);
    dt_arg rows = CALL_OP(embedding, TENSOR(GRAD), TENSOR(indices));
    if (g->args[3].i >= 0) {
        dt_arg padded = EQ(indices, dt_arg_scalar(dt_scalar_int(g->args[3].i)));
        padded = CALL_OP(unsqueeze, TENSOR(padded), dt_value_int(-1));
        rows = WHERE(padded, ZERO, rows);
    }
    return dt_grad_set(g, 0, rows);
}
