#include "tensor/iterate.h"

#include <inttypes.h>

/* --- overlap --- */

/* The byte range from the first element to the end of the last one. */
static void span(const dt_tensor *t, const char **start, const char **end)
{
    *start = dt_tensor_place(t);
    *end = *start + dt_shape_extent(t->ndim, t->shape, t->strides) *
                        (int64_t)dt_dtype_size((dt_dtype)t->dtype);
}

bool dt_iterate_overlaps(const dt_tensor *t, const dt_tensor *other)
{
    /* Different storages can share memory: two tensors from one NumPy array, say. */
    if (!t->numel || !other->numel ||
        !dt_device_equal(dt_tensor_device(t), dt_tensor_device(other)))
        return false;
    const char *a, *a_end, *b, *b_end;
    span(t, &a, &a_end);
    span(other, &b, &b_end);
    return a_end > b && b_end > a;
}

bool dt_iterate_partly_overlaps(const dt_tensor *t, const dt_tensor *other)
{
    if (!dt_iterate_overlaps(t, other))
        return false;
    const char *a = dt_tensor_place(t), *b = dt_tensor_place(other);
    if (a != b || t->dtype != other->dtype || t->ndim != other->ndim)
        return true;
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] != other->shape[d] ||
            (t->shape[d] != 1 && t->strides[d] != other->strides[d]))
            return true;
    return false;
}

/* --- the layout of a result --- */

/* t's stride in a dimension of the broadcast shape, in elements. */
static int64_t stride_at(const dt_tensor *t, int ndim, int dim)
{
    int own = dim - (ndim - t->ndim);
    return own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
}

/* Whether dimension a should be inside b: 1 yes, -1 no, 0 undecided. The first input
 * with an opinion decides. */
static int compare_dims(const dt_input *inputs, int ninputs, int ndim,
                        const int64_t *shape, int a, int b)
{
    for (int i = 0; i < ninputs; i++) {
        if (!inputs[i].tensor)
            continue;
        int64_t sa = stride_at(inputs[i].tensor, ndim, a);
        int64_t sb = stride_at(inputs[i].tensor, ndim, b);
        if (sa == 0 || sb == 0)
            continue;
        if (sa != sb)
            return sa < sb ? 1 : -1;
        if (shape[a] > shape[b])
            return -1;
    }
    return 0;
}

/* Orders dimensions by the inputs' memory, outermost first. Insertion sort, because
 * the comparison is not a total order: undecided pairs stay in place. */
static void order_dims(const dt_input *inputs, int ninputs, int ndim,
                       const int64_t *shape, int *order)
{
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    for (int i = ndim - 2; i >= 0; i--) {
        int moving = i;
        for (int j = i + 1; j < ndim; j++) {
            int verdict =
                compare_dims(inputs, ninputs, ndim, shape, order[moving], order[j]);
            if (verdict < 0)
                break;
            if (verdict > 0) {
                int swapped = order[moving];
                order[moving] = order[j];
                order[j] = swapped;
                moving = j;
            }
        }
    }
}

static bool all_row_major(const dt_input *inputs, int ninputs)
{
    for (int i = 0; i < ninputs; i++)
        if (inputs[i].tensor && !inputs[i].tensor->contiguous)
            return false;
    return true;
}

/* An input of the full shape, if all inputs have its strides and no gaps. */
static const dt_tensor *common_layout(const dt_input *inputs, int ninputs, int ndim,
                                      const int64_t *shape)
{
    const dt_tensor *first = NULL;
    for (int i = 0; i < ninputs; i++) {
        const dt_tensor *t = inputs[i].tensor;
        if (!t)
            continue;
        if (!dt_shape_equal(t->ndim, t->shape, ndim, shape))
            return NULL;
        if (!first) {
            if (!dt_tensor_is_non_overlapping_and_dense(t))
                return NULL;
            first = t;
        } else if (!dt_shape_equal(t->ndim, t->strides, first->ndim, first->strides)) {
            return NULL;
        }
    }
    return first;
}

static int make_result(const char *op_name, dt_tensor *out, dt_dtype dtype,
                       dt_device device, const dt_input *inputs, int ninputs, int ndim,
                       const int64_t *shape)
{
    if (ndim < 2 || all_row_major(inputs, ninputs))
        return dt_tensor_empty(op_name, out, dtype, ndim, shape, device);
    const dt_tensor *like = common_layout(inputs, ninputs, ndim, shape);
    if (like)
        return dt_tensor_empty_strided(op_name, out, dtype, ndim, shape, like->strides,
                                       device);
    int order[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM];
    order_dims(inputs, ninputs, ndim, shape, order);
    dt_shape_ordered_strides(ndim, shape, order, strides);
    return dt_tensor_empty_strided(op_name, out, dtype, ndim, shape, strides, device);
}

/* --- the plan --- */

static void set_operand(dt_operand *operand, const dt_input *input)
{
    operand->dtype = input->dtype;
    operand->scalar = !input->tensor;
    operand->data = input->tensor ? dt_tensor_place(input->tensor) : NULL;
    operand->storage = input->tensor ? input->tensor->storage : NULL;
    if (!input->tensor)
        operand->value = input->value;
}

/* All operands contiguous and of the result's shape, or scalars: one run. */
static bool plan_flat(dt_plan *plan, const dt_tensor *out, const dt_input *inputs,
                      int ninputs)
{
    if (!out->contiguous)
        return false;
    for (int i = 0; i < ninputs; i++) {
        const dt_tensor *t = inputs[i].tensor;
        if (t && (!t->contiguous || t->numel != out->numel))
            return false;
    }
    plan->ndim = 1;
    plan->shape[0] = out->numel;
    plan->operands[0].strides[0] = (int64_t)dt_dtype_size((dt_dtype)out->dtype);
    for (int i = 0; i < ninputs; i++)
        plan->operands[i + 1].strides[0] =
            inputs[i].tensor ? (int64_t)dt_dtype_size(inputs[i].dtype) : 0;
    plan->contiguous = true;
    return true;
}

/* Sorts dimensions by the result's strides, merges neighbours, drops sizes of 1. */
static void plan_strided(dt_plan *plan, const dt_tensor *out, const dt_input *inputs,
                         int ninputs)
{
    int order[DT_MAX_NDIM];
    dt_shape_order(out->ndim, out->strides, order);
    const dt_tensor *tensors[DT_MAX_OPERANDS];
    tensors[0] = out;
    for (int i = 0; i < ninputs; i++)
        tensors[i + 1] = inputs[i].tensor;
    plan->ndim = 0;
    for (int at = 0; at < out->ndim; at++) {
        int d = order[at];
        int64_t strides[DT_MAX_OPERANDS];
        if (out->shape[d] == 1)
            continue;
        bool merges = plan->ndim > 0;
        for (int i = 0; i < plan->noperands; i++) {
            int64_t size = (int64_t)dt_dtype_size(plan->operands[i].dtype);
            strides[i] = tensors[i] ? stride_at(tensors[i], out->ndim, d) * size : 0;
            merges = merges && plan->operands[i].strides[plan->ndim - 1] ==
                                   strides[i] * out->shape[d];
        }
        if (merges)
            plan->shape[plan->ndim - 1] *= out->shape[d];
        else
            plan->shape[plan->ndim++] = out->shape[d];
        for (int i = 0; i < plan->noperands; i++)
            plan->operands[i].strides[plan->ndim - 1] = strides[i];
    }
    if (!plan->ndim) { /* one element */
        plan->ndim = 1;
        plan->shape[0] = 1;
        for (int i = 0; i < plan->noperands; i++)
            plan->operands[i].strides[0] =
                plan->operands[i].scalar
                    ? 0
                    : (int64_t)dt_dtype_size(plan->operands[i].dtype);
    }
    plan->contiguous = plan->ndim == 1;
    for (int i = 0; i < plan->noperands; i++)
        plan->contiguous &= plan->operands[i].scalar ||
                            plan->operands[i].strides[0] ==
                                (int64_t)dt_dtype_size(plan->operands[i].dtype);
}

static int check_target(const char *op_name, const dt_tensor *out, int ndim,
                        const int64_t *shape)
{
    char from[DT_SHAPE_TEXT], to[DT_SHAPE_TEXT];
    if (!dt_shape_equal(ndim, shape, out->ndim, out->shape))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the result has shape %s, which does not fit the target of "
                       "shape %s; an in-place target is not broadcast",
                       op_name, dt_shape_text(ndim, shape, from, sizeof from),
                       dt_shape_text(out->ndim, out->shape, to, sizeof to));
    return dt_tensor_check_writable(op_name, out);
}

int dt_iterate_plan(dt_plan *plan, const char *op_name, dt_tensor *out, dt_dtype dtype,
                    dt_device device, const dt_input *inputs, int ninputs)
{
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0;
    bool first = true;
    for (int i = 0; i < ninputs; i++) {
        const dt_tensor *t = inputs[i].tensor;
        if (!t)
            continue;
        if (first) {
            ndim = t->ndim;
            for (int d = 0; d < ndim; d++)
                shape[d] = t->shape[d];
            first = false;
        } else if (!dt_shape_equal(ndim, shape, t->ndim, t->shape) &&
                   dt_shape_broadcast(op_name, ndim, shape, t->ndim, t->shape, &ndim,
                                      shape)) {
            return -1;
        }
    }
    if (out->storage) {
        int64_t joint[DT_MAX_NDIM];
        int joint_ndim = out->ndim;
        if (!first && dt_shape_broadcast(op_name, ndim, shape, out->ndim, out->shape,
                                         &joint_ndim, joint))
            return -1;
        if (check_target(op_name, out, joint_ndim, first ? out->shape : joint))
            return -1;
        dt_tensor_written(out);
    } else if (make_result(op_name, out, dtype, device, inputs, ninputs, ndim, shape)) {
        return -1;
    }
    if (!out->numel)
        return 1;
    plan->numel = out->numel;
    plan->noperands = ninputs + 1;
    plan->operands[0].data = dt_tensor_place(out);
    plan->operands[0].dtype = (dt_dtype)out->dtype;
    plan->operands[0].scalar = false;
    plan->operands[0].storage = out->storage;
    for (int i = 0; i < ninputs; i++)
        set_operand(&plan->operands[i + 1], &inputs[i]);
    if (!plan_flat(plan, out, inputs, ninputs))
        plan_strided(plan, out, inputs, ninputs);
    return 0;
}
