/* Views and reshapes. */
#include "autograd/grad.h"
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

/* --- shapes --- */

int dt_reshape_backward(dt_grad *g)
{
    const dt_result *x = dt_grad_like(g, 0);
    return dt_grad_set(
        g, 0, CALL_OP(reshape, TENSOR(GRAD), dt_value_ints(x->ndim, x->shape)));
}

static dt_value shape_of(const dt_value *other)
{
    return dt_value_ints(other->tensor->ndim, other->tensor->shape);
}

/* --- orders of dimensions --- */

int dt_permute_backward(dt_grad *g)
{
    int64_t back[DT_MAX_NDIM];
    const dt_value *dims = &g->args[1];
    for (int d = 0; d < dims->count; d++)
        back[dims->ints[d] < 0 ? dims->ints[d] + dims->count : dims->ints[d]] = d;
    return dt_grad_set(
        g, 0, CALL_OP(permute, TENSOR(GRAD), dt_value_ints(dims->count, back)));
}

int dt_movedim_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *from = &c->args[1], *to = &c->args[2];
    int64_t order[DT_MAX_NDIM];
    bool moved[DT_MAX_NDIM] = {false}, filled[DT_MAX_NDIM] = {false};
    if (from->count != to->count)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s(): source has %d dimensions and destination %d; give as many", c->name,
            from->count, to->count);
    for (int i = 0; i < from->count; i++) {
        int a = dt_shape_wrap_dim(c->name, from->ints[i], x->ndim);
        int b = a < 0 ? -1 : dt_shape_wrap_dim(c->name, to->ints[i], x->ndim);
        if (b < 0)
            return -1;
        if (x->ndim && (moved[a] || filled[b]))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s(): a dimension is named twice; name each once", c->name);
        moved[a] = filled[b] = true;
        order[b] = a;
    }
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (filled[d])
            continue;
        while (moved[next])
            next++;
        order[d] = next++;
    }
    return DT_CALL(permute, c->out[0], c->args[0], dt_value_ints(x->ndim, order));
}

/* --- parts of complex numbers --- */

int dt_view_as_real_backward(dt_grad *g)
{
    const dt_tensor *gradient = GRAD.tensor;
    dt_tensor *pairs = dt_scope_slot(g->scope);
    if (!pairs || dt_recorded_to_format(pairs, gradient, (dt_dtype)gradient->dtype,
                                        dt_tensor_device(gradient),
                                        DT_FORMAT_CONTIGUOUS, false) < 0)
        return -1;
    return dt_grad_set(g, 0, CALL_OP(view_as_complex, TENSOR(dt_arg_tensor(pairs))));
}

int dt_view_as_complex_backward(dt_grad *g)
{
    return dt_grad_set(g, 0, CALL_OP(view_as_real, TENSOR(GRAD)));
}

/* --- parts --- */

int dt_grad_place(dt_grad *g, int i, dt_arg whole, dt_tensor *part,
                  const dt_tensor *value)
{
    if (dt_recording(value) && dt_variable_set_part(part, whole.tensor) < 0)
        return -1;
    if (dt_recorded_copy_into(g->node->name, part, value) < 0)
        return -1;
    return dt_grad_set(g, i, whole);
}

/* For every view of a part of its input: zeros, and the gradient where the same
 * view of them is. */
int dt_part_backward(dt_grad *g)
{
    dt_value args[DT_MAX_PARAMETERS];
    DT_LOCAL(part);
    dt_arg whole = dt_grad_zeros(g, 0);
    if (g->scope->failed)
        return -1;
    for (int i = 0; i < g->op->info->schema.count; i++)
        args[i] = g->args[i];
    args[0] = dt_value_tensor(whole.tensor);
    dt_call call = {.name = g->node->name, .args = args, .out = {&part}};
    if (g->op->forward(&call) < 0)
        return -1;
    return dt_grad_place(g, 0, whole, &part, g->gradients[0]);
}

int dt_as_strided_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *size = &c->args[1], *stride = &c->args[2];
    if (size->count != stride->count)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): size has %d dimensions and stride %d; give as many",
                       c->name, size->count, stride->count);
    c->node = "AsStridedBackward1"; /* of as_strided_ */
    return dt_recorded_strided(c->out[0], x, size->count, size->ints, stride->ints,
                               c->args[3].given ? c->args[3].i : x->offset);
}

/* Adds the elements at a position of all windows, or one whole window, of the gradient
 * to where they were read. */
static int add_windows(dt_grad *g, const dt_tensor *whole, int64_t position,
                       bool one_window)
{
    const dt_tensor *grad = g->gradients[0];
    DT_LOCAL(windows);
    DT_LOCAL(part);
    DT_LOCAL(values);
    int64_t dim = g->args[1].i < 0 ? g->args[1].i + whole->ndim : g->args[1].i;
    int64_t along = one_window ? dim : -1;
    if (dt_view_unfold(&windows, whole, dim, g->args[2].i, g->args[3].i) < 0 ||
        dt_view_select(&part, &windows, along, position) < 0 ||
        (dt_recording(grad) && dt_variable_set_part(&part, whole) < 0) ||
        DT_CALL(select, &values, dt_value_tensor(grad), dt_value_int(along),
                dt_value_int(position)) < 0)
        return -1;
    return dt_recorded_elementwise_into(
        DT_OP_add, &part, DT_ARGS(dt_arg_tensor(&part), dt_arg_tensor(&values)));
}

/* Windows overlap: an element that several of them read gets the sum of their
 * gradients. Two windows never have the same element at the same position, and one
 * window never has it twice. */
int dt_unfold_backward(dt_grad *g)
{
    const dt_tensor *grad = g->gradients[0];
    const dt_result *x = dt_grad_like(g, 0);
    if (!x->ndim) /* one window of one element */
        return dt_reshape_backward(g);
    dt_arg whole = dt_grad_zeros(g, 0);
    if (g->scope->failed)
        return -1;
    int64_t dim = g->args[1].i < 0 ? g->args[1].i + x->ndim : g->args[1].i;
    int64_t count = grad->shape[dim], size = g->args[2].i;
    for (int64_t i = 0; grad->numel && i < (count < size ? count : size); i++)
        if (add_windows(g, whole.tensor, i, count < size) < 0)
            return -1;
    return dt_grad_set(g, 0, whole);
}

/* --- subscripts --- */

typedef struct subscript_data {
    int ndim, count;
    int64_t shape[DT_MAX_NDIM]; /* of the input */
    dt_subscript items[];
} subscript_data;

static int subscript_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                           dt_tensor **into)
{
    const subscript_data *data = node->data;
    dt_tensor *grad = gradients[0];
    if (!grad || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *whole = dt_scope_slot(scope), *part = dt_scope_slot(scope);
    if (!part ||
        dt_full(node->name, whole, (dt_dtype)grad->dtype, data->ndim, data->shape,
                dt_tensor_device(grad), dt_scalar_float(0)) < 0 ||
        dt_view_index(part, whole, data->items, data->count) < 0 ||
        (dt_recording(grad) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_copy_into(node->name, part, grad) < 0)
        return -1;
    into[0] = whole;
    return 0;
}
static const dt_node_type subscript_type = {subscript_apply, NULL, NULL};

int dt_recorded_index(dt_tensor *out, const dt_tensor *x, const dt_subscript *items,
                      int count)
{
    if (dt_view_index(out, x, items, count) < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    /* The name is that of PyTorch's last step: it applies the items one by one. */
    const char *name = "AliasBackward0";
    for (int i = 0; i < count; i++)
        if (items[i].kind == DT_SUBSCRIPT_INTEGER)
            name = "SelectBackward0";
        else if (items[i].kind == DT_SUBSCRIPT_NEW_AXIS)
            name = "UnsqueezeBackward0";
        else if (items[i].kind == DT_SUBSCRIPT_SLICE)
            name = "SliceBackward0";
    dt_node *node =
        dt_record_node(&subscript_type, name, 1, &x, 0, 1,
                       sizeof(subscript_data) + (size_t)count * sizeof(dt_subscript));
    if (node) {
        subscript_data *data = node->data;
        data->ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->shape[d] = x->shape[d];
        data->count = count;
        for (int i = 0; i < count; i++)
            data->items[i] = items[i];
    }
    return dt_record_view_steal(out, x, node);
}

#define DT_COMPOSITES
#include "tensor/ops/define.h"
#include "ops/functions/view.def"
