/* Views by strides: as_strided(), and views of a base that was written. */
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/ops.h"

typedef struct strided_data {
    dt_tensor base, view; /* shapes and strides */
} strided_data;

/* Adds a tensor to memory, or ones, where the elements of a view from an offset are. */
static int add_shared(dt_tensor *memory, const dt_tensor *view, int64_t offset,
                      dt_value added)
{
    static const int64_t first_dim = 0;
    DT_LOCAL(numbers);
    DT_LOCAL(index);
    return dt_arange(&numbers, dt_scalar_int(0), dt_scalar_int(memory->numel),
                     dt_scalar_int(1), DT_INT64, dt_tensor_device(memory)) < 0 ||
                   dt_view_as_strided(&index, &numbers, view->ndim, view->shape,
                                      view->strides, offset) < 0 ||
                   DT_CALL_INTO(index_put, memory,
                                dt_value_tensors(1, (const dt_tensor *[]){&index}),
                                dt_value_ints(1, &first_dim), added,
                                dt_value_bool(true)) < 0
               ? -1
               : 0;
}

/* Divides the gradient of elements that share memory, once for each of them. */
static int share(dt_scope *scope, dt_tensor **whole, const dt_tensor *base,
                 int64_t offset, int64_t room)
{
    const dt_tensor *g = *whole;
    DT_LOCAL(one);
    DT_LOCAL(counts);
    DT_LOCAL(count);
    dt_tensor *shared = dt_scope_slot(scope);
    if (!shared ||
        dt_full("backward", &one, (dt_dtype)g->dtype, 0, NULL, dt_tensor_device(g),
                dt_scalar_float(1)) < 0 ||
        dt_full("backward", &counts, (dt_dtype)g->dtype, 1, &room, dt_tensor_device(g),
                dt_scalar_float(0)) < 0 ||
        add_shared(&counts, base, offset, dt_value_tensor(&one)) < 0 ||
        dt_view_as_strided(&count, &counts, base->ndim, base->shape, base->strides,
                           offset) < 0 ||
        dt_recorded_elementwise(DT_OP_div, shared,
                                DT_ARGS(dt_arg_tensor(g), dt_arg_tensor(&count))) < 0)
        return -1;
    *whole = shared;
    return 0;
}

/* The base's gradient: that of the view in its place, zeros elsewhere. The view may begin
 * before its base and end after it. */
static int strided_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const strided_data *data = node->data;
    const dt_tensor *base = &data->base, *view = &data->view, *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    int64_t start = base->offset < view->offset ? base->offset : view->offset;
    int64_t before = base->offset - start, skipped = view->offset - start;
    int64_t room = before + dt_shape_extent(base->ndim, base->shape, base->strides);
    int64_t end = skipped + dt_shape_extent(view->ndim, view->shape, view->strides);
    room = end > room ? end : room;
    dt_tensor *memory = dt_scope_slot(scope), *whole = dt_scope_slot(scope);
    dt_tensor *part = dt_scope_slot(scope);
    if (!part ||
        dt_full("backward", memory, (dt_dtype)g->dtype, 1, &room, dt_tensor_device(g),
                dt_scalar_float(0)) < 0 ||
        dt_view_as_strided(part, memory, view->ndim, view->shape, view->strides,
                           skipped) < 0)
        return -1;
    if (dt_tensor_overlaps_itself(part)) {
        if (add_shared(memory, view, skipped, dt_value_tensor(g)) < 0)
            return -1;
    } else if ((dt_recording(g) && dt_variable_set_part(part, memory) < 0) ||
               dt_recorded_copy_into("backward", part, g) < 0) {
        return -1;
    }
    if (dt_recorded_strided(whole, memory, base->ndim, base->shape, base->strides,
                            before) < 0 ||
        (dt_tensor_overlaps_itself(whole) &&
         share(scope, &whole, base, before, room) < 0))
        return -1;
    into[0] = whole;
    return 0;
}
static const dt_node_type strided_type = {strided_apply, NULL, NULL};

int dt_record_as_strided(const dt_tensor *view, dt_variable *v)
{
    if (v->base->geometry->dtype != view->dtype)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "a view of another type, such as .real, was written to after it "
                       "was made, or its tensor was, which is not recorded; make the "
                       "tensor anew, e.g. with torch.complex()");
    dt_node *node =
        dt_node_new(&strided_type, "AsStridedBackward0", 1, 0, 1, sizeof(strided_data));
    if (!node)
        return -1;
    strided_data *data = node->data;
    data->base = *v->base->geometry;
    dt_variable_set_geometry(&data->view, view);
    dt_edge edge;
    if (dt_variable_base_edge(v, view->storage, &edge) < 0) {
        dt_node_release(node);
        return -1;
    }
    dt_node_lead(node, 0, edge);
    dt_node_set_result(node, 0, view);
    v->requires_grad = false; /* it becomes a non-leaf */
    dt_variable_become(v, node, 0);
    dt_node_release(node);
    return 0;
}

int dt_recorded_strided(dt_tensor *out, const dt_tensor *x, int ndim,
                        const int64_t *shape, const int64_t *strides, int64_t offset)
{
    if (dt_view_as_strided(out, x, ndim, shape, strides, offset) < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    dt_node *node = dt_record_node(&strided_type, "AsStridedBackward0", 1, &x, 0, 1,
                                   sizeof(strided_data));
    if (node) {
        strided_data *data = node->data;
        dt_variable_set_geometry(&data->base, x);
        dt_variable_set_geometry(&data->view, out);
    }
    return dt_record_view_steal(out, x, node);
}
