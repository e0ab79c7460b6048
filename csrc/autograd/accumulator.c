/* Sums of gradients, and the node that adds them to a leaf's: AccumulateGrad. */
#include <string.h>

#include "autograd/recorded.h"
#include "autograd/sparse_gradient.h"
#include "autograd/temporaries.h"
#include "autograd/variable.h"
#include "base/gil.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/copy.h"

/* Whether nobody else refers to the memory and t fills it. */
static bool is_own(const dt_tensor *t)
{
    return __atomic_load_n(&t->storage->references, __ATOMIC_RELAXED) == 1 &&
           (t->contiguous || !dt_tensor_overlaps_itself(t)) && !t->storage->borrowed &&
           t->storage->bytes == (size_t)t->numel * dt_dtype_size((dt_dtype)t->dtype);
}

int dt_variable_add(dt_tensor *sum, const dt_tensor *gradient)
{
    dt_tensor total;
    if (dt_recorded_elementwise(DT_OP_add, &total,
                                DT_ARGS(dt_arg_tensor(sum), dt_arg_tensor(gradient))) <
        0)
        return -1;
    dt_tensor_move(sum, &total);
    return 0;
}

static int add_gradient(dt_tensor *grad, dt_tensor *gradient, bool recorded)
{
    if (!grad->storage) {
        if (recorded || dt_gradient_is_sparse(gradient) || is_own(gradient)) {
            dt_variable_alias(grad, gradient);
            return 0;
        }
        return dt_to(grad, gradient, (dt_dtype)gradient->dtype,
                     dt_tensor_device(gradient));
    }
    if (dt_gradient_is_sparse(grad) || dt_gradient_is_sparse(gradient))
        return dt_sparse.add(grad, gradient, recorded);
    if (!recorded)
        return dt_elementwise_into(
            DT_OP_add, grad, DT_ARGS(dt_arg_tensor(grad), dt_arg_tensor(gradient)));
    return dt_variable_add(grad, gradient);
}

int dt_gradient_add(dt_tensor *grad, dt_tensor *gradient, bool recorded)
{
    bool yielded = dt_gil_yield(false);
    int status = add_gradient(grad, gradient, recorded);
    dt_gil_yield(yielded);
    return status;
}

/* --- AccumulateGrad --- */

typedef struct accumulator_data {
    dt_variable *leaf; /* first, for dt_accumulator_leaf */
    bool strided;      /* dense but not row-major */
    int64_t strides[]; /* the leaf's, if strided */
} accumulator_data;

/* Whether t is dense but not row-major. */
static bool is_strided(const dt_tensor *t)
{
    return !t->contiguous && dt_tensor_is_non_overlapping_and_dense(t);
}

static bool has_layout_of_leaf(const dt_tensor *gradient, const accumulator_data *data)
{
    if (!data->strided)
        return gradient->contiguous;
    for (int d = 0; d < gradient->ndim; d++)
        if (gradient->shape[d] > 1 && gradient->strides[d] != data->strides[d])
            return false;
    return true;
}

static int lay_as_leaf(dt_tensor *out, const dt_tensor *gradient,
                       const accumulator_data *data)
{
    if (!data->strided)
        return dt_contiguous(out, gradient);
    if (dt_tensor_empty_strided("backward", out, (dt_dtype)gradient->dtype,
                                gradient->ndim, gradient->shape, data->strides,
                                dt_tensor_device(gradient)))
        return -1;
    return dt_copy_into("backward", out, gradient);
}

/* Gives the gradient the strides of its leaf, so that an optimizer can walk both
 * together. */
static int accumulate_laid(const accumulator_data *data, dt_tensor *gradient)
{
    if (dt_grad_enabled || data->leaf->grad.storage ||
        dt_gradient_is_sparse(gradient) || has_layout_of_leaf(gradient, data))
        return dt_gradient_add(&data->leaf->grad, gradient, dt_grad_enabled);
    DT_LOCAL(laid);
    if (lay_as_leaf(&laid, gradient, data) < 0)
        return -1;
    return dt_gradient_add(&data->leaf->grad, &laid, dt_grad_enabled);
}

static int accumulator_apply(dt_node *node, dt_scope *scope,
                             dt_tensor *const *gradients, dt_tensor **into)
{
    const accumulator_data *data = node->data;
    (void)scope;
    (void)into;
    /* The leaf may require none any more. */
    if (!gradients[0] || !data->leaf->requires_grad)
        return 0;
    if (accumulate_laid(data, gradients[0]) < 0)
        return -1;
    return data->leaf->after ? dt_hooks_run(data->leaf->after, gradients[0], 1) : 0;
}

static void accumulator_free(dt_node *node)
{
    dt_variable *leaf = dt_accumulator_leaf(node);
    if (leaf->accumulator == node)
        leaf->accumulator = NULL;
    dt_history_release(&leaf->head);
}

const dt_node_type dt_accumulator = {accumulator_apply, accumulator_free, NULL};

dt_node *dt_accumulator_of(dt_variable *v, const dt_tensor *t)
{
    /* One without references waits to be freed. */
    if (v->accumulator && v->accumulator->references)
        return dt_node_retain(v->accumulator);
    bool strided = is_strided(t);
    size_t extra = strided ? (size_t)t->ndim * sizeof(int64_t) : 0;
    dt_node *node = dt_node_new(&dt_accumulator, "AccumulateGrad", 0, 0, 1,
                                sizeof(accumulator_data) + extra);
    if (!node)
        return NULL;
    accumulator_data *data = node->data;
    node->sequence = 0;
    dt_node_set_result(node, 0, t);
    dt_history_retain(&v->head);
    data->leaf = v;
    data->strided = strided;
    if (strided)
        memcpy(data->strides, t->strides, extra);
    v->accumulator = node;
    return node;
}
