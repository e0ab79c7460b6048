/* Helpers for backward functions and composites. */
#include "autograd/grad.h"

#include "autograd/record.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/ops.h"

int dt_grad_set(dt_grad *g, int i, dt_arg value)
{
    dt_tensor **into = &g->into[dt_grad_edge(g, i)];
    const dt_tensor *like = g->gradients[0];
    for (int k = 1; !like && k < g->node->nresults; k++)
        like = g->gradients[k];
    *into = dt_scope_tensor(g->scope, value, like);
    return *into ? 0 : -1;
}

int dt_grad_flat(dt_grad *g, unsigned parameters, dt_flat flat)
{
    unsigned edges = 0;
    for (int i = 0; i < g->op->info->schema.count; i++)
        if (parameters >> i & 1)
            edges |= 1U << dt_grad_edge(g, i);
    for (int e = 0; e < g->node->nedges; e++)
        if (g->into[e] &&
            dt_record_flat(g->scope, &g->into[e], g->node, edges, flat) < 0)
            return -1;
    return 0;
}

static int place_of(const dt_grad *g, unsigned bit)
{
    return __builtin_popcount(g->op->saves & (bit - 1));
}

static dt_arg saved(dt_grad *g, int place)
{
    if (!g->node->used && !g->node->saved[place].tensor.storage)
        return dt_arg_scalar(dt_scalar_float(0));
    dt_tensor *t = g->scope->failed ? NULL : dt_node_saved(g->node, place, g->scope);
    if (!t)
        g->scope->failed = true;
    return t ? dt_arg_tensor(t) : dt_arg_scalar(dt_scalar_float(0));
}

dt_arg dt_grad_input(dt_grad *g, int i)
{
    return saved(g, place_of(g, DT_SAVES_INPUT(i)));
}

dt_arg dt_grad_output(dt_grad *g, int i)
{
    return saved(g, place_of(g, DT_SAVES_OUTPUT(i)));
}

dt_arg dt_grad_factor(dt_grad *g, int i)
{
    dt_arg x = dt_grad_input(g, i);
    return x.tensor && dt_dtype_is_complex((dt_dtype)x.tensor->dtype)
               ? dt_scope_elementwise(g->scope, DT_OP_conjugate, DT_ARGS(x))
               : x;
}

dt_arg dt_grad_number(dt_grad *g, int i)
{
    const dt_value *v = &g->args[i];
    if (v->scalar.kind != DT_KIND_COMPLEX)
        return dt_arg_scalar(v->scalar);
    dt_tensor *number = dt_scope_slot(g->scope);
    if (!number ||
        dt_complex_number("backward", number, DT_COMPLEX128, v->scalar.f, -v->imag)) {
        g->scope->failed = true;
        return dt_arg_tensor(NULL);
    }
    return dt_arg_tensor(number);
}

dt_value dt_grad_list(dt_grad *g, int i, const dt_tensor **items)
{
    for (int k = 0; k < g->args[i].count; k++)
        items[k] = saved(g, place_of(g, DT_SAVES_INPUT(i)) + k).tensor;
    return dt_value_tensors(g->args[i].count, items);
}

int dt_grad_not_implemented(dt_error_code code, const char *op_name)
{
    return dt_fail(
        code,
        "backward: the derivative of %s is not implemented; leave its result "
        "out of what is differentiated, by detach()",
        op_name);
}

dt_arg dt_grad_zeros(dt_grad *g, int i)
{
    const dt_result *like = dt_grad_like(g, i);
    dt_tensor *out = g->scope->failed ? NULL : dt_scope_slot(g->scope);
    if (!out || dt_full(g->node->name, out, (dt_dtype)g->gradients[0]->dtype,
                        like->ndim, like->shape, dt_tensor_device(g->gradients[0]),
                        dt_scalar_float(0)) < 0) {
        g->scope->failed = true;
        return dt_arg_scalar(dt_scalar_float(0));
    }
    return dt_arg_tensor(out);
}

int dt_grad_scatter(dt_grad *g, int i, dt_index_op op, int64_t dim, dt_arg index)
{
    const dt_result *like = dt_grad_like(g, i);
    dt_arg grad = GRAD, out = dt_grad_zeros(g, i);
    if (g->scope->failed)
        return -1;
    dim = dt_shape_wrap_dim(g->node->name, dim, like->ndim);
    if (grad.tensor->ndim < like->ndim) {
        grad = CALL_OP(unsqueeze, TENSOR(grad), dt_value_int(dim));
        index = CALL_OP(unsqueeze, TENSOR(index), dt_value_int(dim));
    }
    const dt_value args[] = {TENSOR(out), dt_value_int(dim), TENSOR(index),
                             TENSOR(grad)};
    if (g->scope->failed ||
        dt_call_into(op == DT_INDEX_ADD ? DT_RECORD(scatter_add) : DT_RECORD(scatter),
                     NULL, (dt_tensor *)out.tensor, 4, args) < 0)
        return -1;
    return dt_grad_set(g, i, out);
}

dt_arg dt_scope_call(dt_scope *scope, dt_op *op, int count, const dt_value *values)
{
    dt_tensor *out = scope->failed ? NULL : dt_scope_slot(scope);
    if (out && dt_call_values(op, out, count, values) == 0)
        return dt_arg_tensor(out);
    scope->failed = true;
    return dt_arg_scalar(dt_scalar_float(0));
}
