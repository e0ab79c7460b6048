/* In-place writes to tensors with autograd metadata. */
#include <stdlib.h>

#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

int dt_in_place_check(const char *op_name, const dt_tensor *t)
{
    const dt_variable *v = dt_variable_of(t);
    if (!v || !dt_grad_enabled)
        return 0;
    if (v->base && !v->base->made.node && dt_requires_grad(t))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: a view of a leaf Variable that requires grad is being used "
                       "in an in-place operation, which would lose its gradient; write "
                       "under no_grad(), or to a clone() of the leaf",
                       op_name);
    if (v->requires_grad && !v->made.node)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: a leaf Variable that requires grad is being used in an "
                       "in-place operation, which would lose its gradient; write under "
                       "no_grad(), or to a clone()",
                       op_name);
    return 0;
}

/* --- a view of a base that was written --- */

typedef struct strided_data {
    dt_tensor base, view; /* shapes and strides */
} strided_data;

/* Zeros for the memory of a geometry, viewed through it. */
static int zeros_like_geometry(dt_tensor *out, const dt_tensor *geometry,
                               dt_dtype dtype, dt_device device)
{
    DT_LOCAL(whole);
    int64_t extent =
        dt_shape_extent(geometry->ndim, geometry->shape, geometry->strides);
    return dt_full("backward", &whole, dtype, 1, &extent, device, dt_scalar_float(0)) <
                   0
               ? -1
               : dt_view_as_strided(out, &whole, geometry->ndim, geometry->shape,
                                    geometry->strides, 0);
}

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
static const dt_node_type strided_type = {strided_apply, NULL};

int dt_record_as_strided(const dt_tensor *view, dt_variable *v)
{
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

/* --- a base whose view was written --- */

/* Inside of the view the gradient passes through the write's node; elsewhere it is
 * unchanged. */
static int slices_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const strided_data *geometry = node->data;
    dt_node *inner = node->inner; /* of the write to the view; its edges are unused */
    dt_tensor *g = gradients[0];
    if (!g)
        return 0;
    int64_t offset = geometry->view.offset - geometry->base.offset;
    dt_tensor *whole = dt_scope_slot(scope), *part = dt_scope_slot(scope);
    dt_tensor *part_in = dt_scope_slot(scope), *part_out = dt_scope_slot(scope);
    if (!part_out ||
        zeros_like_geometry(whole, &geometry->base, (dt_dtype)g->dtype,
                            dt_tensor_device(g)) < 0 ||
        dt_recorded_copy_into("backward", whole, g) < 0 ||
        dt_recorded_strided(part_in, whole, geometry->view.ndim, geometry->view.shape,
                            geometry->view.strides, offset) < 0 ||
        dt_recorded_to(part, part_in, (dt_dtype)g->dtype, dt_tensor_device(g)) < 0)
        return -1;
    dt_tensor *const one[] = {part};
    if (inner->type->apply(inner, scope, one, into) < 0)
        return -1;
    if (!dt_node_wants(node, 0))
        return 0;
    dt_tensor *inside = into[0];
    if (dt_view_as_strided(part_out, whole, geometry->view.ndim, geometry->view.shape,
                           geometry->view.strides, offset) < 0 ||
        (dt_grad_enabled && dt_variable_set_part(part_out, whole) < 0))
        return -1;
    int status = inside ? dt_recorded_copy_into("backward", part_out, inside)
                        : DT_CALL_INTO(zero, part_out);
    into[0] = whole;
    return status;
}
static const dt_node_type slices_type = {slices_apply, NULL};

int dt_in_place_steal(dt_tensor *t, dt_node *node)
{
    if (!node)
        return -1;
    dt_node_set_result(node, 0, t);
    dt_variable *v = dt_variable_of(t);
    if (!v || !v->base) {
        int status = dt_variable_set_made(t, node, 0);
        dt_node_release(node);
        return status;
    }
    dt_variable *base = v->base;
    dt_node *outer = dt_node_new(&slices_type, "CopySlices", node->nedges, 0, 1,
                                 sizeof(strided_data));
    if (!outer) {
        dt_node_release(node);
        return -1;
    }
    strided_data *geometry = outer->data;
    geometry->base = *base->geometry;
    dt_variable_set_geometry(&geometry->view, t);
    outer->inner = node;
    for (int i = 0; i < node->nedges; i++) {
        dt_edge edge = i ? node->edges[i] : base->made;
        dt_node_retain(edge.node);
        dt_node_lead(outer, i, edge);
    }
    dt_tensor whole = *base->geometry;
    whole.storage = t->storage; /* borrowed, for its device */
    dt_node_set_result(outer, 0, &whole);
    dt_variable_become(base, outer, 0);
    dt_node_release(outer);
    v->version = t->storage->version;
    /* t itself is now a view of the base too. */
    return dt_record_as_strided(t, v);
}

/* --- changing the shape in place --- */

int dt_recorded_become_steal(const char *op_name, const char *name, dt_tensor *t,
                             dt_tensor *view)
{
    int status = dt_in_place_check(op_name, t);
    const dt_variable *of = dt_variable_of(view);
    if (!status && of && of->made.node) {
        of->made.node->name = name;
        status = dt_variable_reshape(t, of->made.node, of->made.index);
    }
    if (!status) {
        t->offset = view->offset;
        t->numel = view->numel;
        t->ndim = view->ndim;
        t->contiguous = view->contiguous;
        for (int d = 0; d < view->ndim; d++) {
            t->shape[d] = view->shape[d];
            t->strides[d] = view->strides[d];
        }
        dt_variable *v = dt_variable_of(t);
        if (v && v->geometry)
            dt_variable_set_geometry(v->geometry, t);
        /* A write, though no element changes: views come from the new shape then. */
        dt_tensor_written(t);
        if (of && of->made.node && v)
            v->version = t->storage->version;
    }
    dt_tensor_clear(view);
    return status;
}
