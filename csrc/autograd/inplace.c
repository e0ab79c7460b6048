/* In-place writes to tensors with autograd metadata. */
#include "autograd/record.h"
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
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

/* --- a base whose view was written --- */

typedef struct slices_data {
    dt_tensor base, view; /* shapes and strides */
} slices_data;

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

/* Inside of the view the gradient passes through the write's node; elsewhere it is
 * unchanged. */
static int slices_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const slices_data *geometry = node->data;
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
static const dt_node_type slices_type = {slices_apply, NULL, NULL};

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
                                 sizeof(slices_data));
    if (!outer) {
        dt_node_release(node);
        return -1;
    }
    slices_data *geometry = outer->data;
    geometry->base = *base->geometry;
    dt_variable_set_geometry(&geometry->view, t);
    outer->inner = node;
    outer->packs = node->packs;
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
