/* Views and reshapes. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"

/* --- the same elements in another shape --- */

typedef struct shape_data {
    int ndim; /* of the input */
    int64_t shape[DT_MAX_NDIM];
} shape_data;

static int reshape_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const shape_data *data = node->data;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    into[0] = dt_scope_slot(scope);
    return into[0] ? dt_recorded_reshape(into[0], gradients[0], data->ndim, data->shape)
                   : -1;
}
static const dt_node_type reshape_type = {reshape_apply, NULL};

/* A gradient of a broadcast result: the engine sums it. */
static int expand_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    (void)scope;
    if (dt_node_wants(node, 0))
        into[0] = gradients[0];
    return 0;
}
static const dt_node_type expand_type = {expand_apply, NULL};

static dt_node *shape_node(const char *name, const dt_node_type *type,
                           const dt_tensor *x)
{
    dt_node *node = dt_record_node(type, name, 1, &x, 0, 1, sizeof(shape_data));
    if (node) {
        shape_data *data = node->data;
        data->ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->shape[d] = x->shape[d];
    }
    return node;
}

/* out, made from x with status, shows or holds the elements of x in another shape. */
static int reshaped(const char *name, const dt_node_type *type, dt_tensor *out,
                    const dt_tensor *x, int status)
{
    if (status < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    dt_node *node = shape_node(name, type, x);
    return out->storage == x->storage ? dt_record_view_steal(out, x, node)
                                      : dt_record_steal(out, node);
}

int dt_recorded_shape(dt_tensor *out, const dt_tensor *x, int ndim,
                      const int64_t *shape)
{
    return reshaped("ViewBackward0", &reshape_type, out, x,
                    dt_view_shape(out, x, ndim, shape));
}

int dt_recorded_reshape(dt_tensor *out, const dt_tensor *x, int ndim,
                        const int64_t *shape)
{
    if (dt_view_reshape(out, x, ndim, shape) < 0)
        return -1;
    return reshaped(out->storage == x->storage ? "ViewBackward0"
                                               : "UnsafeViewBackward0",
                    &reshape_type, out, x, 0);
}

int dt_recorded_shape_of_result(const char *name, dt_tensor *out, const dt_tensor *x,
                                int ndim, const int64_t *shape)
{
    if (dt_view_shape(out, x, ndim, shape) < 0)
        return -1;
    return dt_recording(x) ? dt_record_steal(out, shape_node(name, &reshape_type, x))
                           : 0;
}

int dt_recorded_squeeze(dt_tensor *out, const dt_tensor *x, int count,
                        const int64_t *dims)
{
    return reshaped(count < 0    ? "SqueezeBackward0"
                    : count == 1 ? "SqueezeBackward1"
                                 : "SqueezeBackward2",
                    &reshape_type, out, x, dt_view_squeeze(out, x, count, dims));
}

int dt_recorded_unsqueeze(dt_tensor *out, const dt_tensor *x, int64_t dim)
{
    return reshaped("UnsqueezeBackward0", &reshape_type, out, x,
                    dt_view_unsqueeze(out, x, dim));
}

int dt_recorded_flatten(dt_tensor *out, const dt_tensor *x, int64_t start, int64_t end)
{
    if (dt_view_flatten(out, x, start, end) < 0)
        return -1;
    return reshaped(out->storage == x->storage ? "ViewBackward0"
                                               : "UnsafeViewBackward0",
                    &reshape_type, out, x, 0);
}

int dt_recorded_expand(const char *what, dt_tensor *out, const dt_tensor *x, int ndim,
                       const int64_t *shape)
{
    return reshaped("ExpandBackward0", &expand_type, out, x,
                    dt_view_expand(what, out, x, ndim, shape));
}

/* --- another order of dimensions --- */

typedef struct order_data {
    int ndim;
    int64_t back[DT_MAX_NDIM]; /* the order that undoes it */
} order_data;

static int permute_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                         dt_tensor **into)
{
    const order_data *data = node->data;
    if (!gradients[0] || !dt_node_wants(node, 0))
        return 0;
    into[0] = dt_scope_slot(scope);
    return into[0] ? dt_recorded_permute(into[0], gradients[0], data->ndim, data->back)
                   : -1;
}
static const dt_node_type permute_type = {permute_apply, NULL};

/* out, made from x with status: its dimension d is dimension order[d] of x. */
static int permuted(const char *name, dt_tensor *out, const dt_tensor *x,
                    const int64_t *order, int status)
{
    if (status < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    dt_node *node =
        dt_record_node(&permute_type, name, 1, &x, 0, 1, sizeof(order_data));
    if (node) {
        order_data *data = node->data;
        data->ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->back[order[d] < 0 ? order[d] + x->ndim : order[d]] = d;
    }
    return dt_record_view_steal(out, x, node);
}

int dt_recorded_permute(dt_tensor *out, const dt_tensor *x, int count,
                        const int64_t *dims)
{
    return permuted("PermuteBackward0", out, x, dims,
                    dt_view_permute(out, x, count, dims));
}

/* Fills order with 0, 1, ... and exchanges two. */
static void exchange(int64_t *order, int ndim, int64_t a, int64_t b)
{
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    if (ndim) {
        a = a < 0 ? a + ndim : a;
        b = b < 0 ? b + ndim : b;
        order[a] = b;
        order[b] = a;
    }
}

static int transposed(const char *name, dt_tensor *out, const dt_tensor *x, int64_t a,
                      int64_t b, int status)
{
    int64_t order[DT_MAX_NDIM];
    if (status < 0)
        return -1;
    exchange(order, x->ndim, a, b);
    return permuted(name, out, x, order, 0);
}

int dt_recorded_transpose(dt_tensor *out, const dt_tensor *x, int64_t dim0,
                          int64_t dim1)
{
    return transposed("TransposeBackward0", out, x, dim0, dim1,
                      dt_view_transpose(out, x, dim0, dim1));
}

int dt_recorded_t(dt_tensor *out, const dt_tensor *x)
{
    return transposed("TBackward0", out, x, 0, x->ndim > 1 ? 1 : 0, dt_view_t(out, x));
}

int dt_recorded_mT(dt_tensor *out, const dt_tensor *x)
{
    return transposed("TransposeBackward0", out, x, -1, x->ndim > 1 ? -2 : -1,
                      dt_view_mT(out, x));
}

int dt_recorded_reverse(dt_tensor *out, const dt_tensor *x)
{
    int64_t order[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++)
        order[d] = x->ndim - 1 - d;
    return permuted("PermuteBackward0", out, x, order, dt_view_reverse(out, x));
}

/* --- parts --- */

typedef struct part_data {
    shape_data from;
    int count;
    dt_subscript items[]; /* as dt_view_index takes them */
} part_data;

/* The gradient in its place, and zeros around it. */
static int part_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    const part_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *whole = dt_scope_slot(scope), *part = dt_scope_slot(scope);
    if (!part || dt_full(node->name, whole, (dt_dtype)g->dtype, data->from.ndim,
                         data->from.shape, dt_tensor_device(g), dt_scalar_float(0)) < 0)
        return -1;
    if (dt_view_index(part, whole, data->items, data->count) < 0 ||
        (dt_recording(g) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_copy_into(node->name, part, g) < 0)
        return -1;
    into[0] = whole;
    return 0;
}
static const dt_node_type part_type = {part_apply, NULL};

static int part_of(const char *name, dt_tensor *out, const dt_tensor *x,
                   const dt_subscript *items, int count)
{
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    dt_node *node =
        dt_record_node(&part_type, name, 1, &x, 0, 1,
                       sizeof(part_data) + (size_t)count * sizeof(dt_subscript));
    if (node) {
        part_data *data = node->data;
        data->from.ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->from.shape[d] = x->shape[d];
        data->count = count;
        for (int i = 0; i < count; i++)
            data->items[i] = items[i];
    }
    return dt_record_view_steal(out, x, node);
}

/* --- diagonals and windows --- */

typedef struct where_data {
    shape_data from;
    int64_t a, b, c; /* offset, dim1, dim2; or dim, size, step */
} where_data;

static int where_of(const dt_node_type *type, const char *name, dt_tensor *out,
                    const dt_tensor *x, int64_t a, int64_t b, int64_t c)
{
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    dt_node *node = dt_record_node(type, name, 1, &x, 0, 1, sizeof(where_data));
    if (node) {
        where_data *data = node->data;
        data->from.ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->from.shape[d] = x->shape[d];
        data->a = a;
        data->b = b;
        data->c = c;
    }
    return dt_record_view_steal(out, x, node);
}

static dt_tensor *zeros_from(dt_scope *scope, const dt_node *node,
                             const shape_data *from, const dt_tensor *like)
{
    dt_tensor *whole = dt_scope_slot(scope);
    return whole &&
                   dt_full(node->name, whole, (dt_dtype)like->dtype, from->ndim,
                           from->shape, dt_tensor_device(like), dt_scalar_float(0)) == 0
               ? whole
               : NULL;
}

static int diagonal_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                          dt_tensor **into)
{
    const where_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *whole = zeros_from(scope, node, &data->from, g);
    dt_tensor *part = whole ? dt_scope_slot(scope) : NULL;
    if (!part || dt_view_diagonal(part, whole, data->a, data->b, data->c) < 0 ||
        (dt_recording(g) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_copy_into(node->name, part, g) < 0)
        return -1;
    into[0] = whole;
    return 0;
}
static const dt_node_type diagonal_type = {diagonal_apply, NULL};

int dt_recorded_diagonal(dt_tensor *out, const dt_tensor *x, int64_t offset,
                         int64_t dim1, int64_t dim2)
{
    if (dt_view_diagonal(out, x, offset, dim1, dim2) < 0)
        return -1;
    return where_of(&diagonal_type, "DiagonalBackward0", out, x, offset, dim1, dim2);
}

/* Adds the elements number `place` of all windows, or window number `place`, of the
 * gradient to where they were read. */
static int add_windows(dt_node *node, dt_scope *scope, dt_tensor *whole,
                       const dt_tensor *g, int64_t place, bool window)
{
    const where_data *data = node->data;
    dt_tensor *windows = dt_scope_slot(scope), *part = dt_scope_slot(scope);
    dt_tensor *values = dt_scope_slot(scope), *row = dt_scope_slot(scope);
    int64_t dim = data->a < 0 ? data->a + data->from.ndim : data->a;
    if (!row || dt_view_unfold(windows, whole, dim, data->b, data->c) < 0 ||
        dt_view_select(part, windows, window ? dim : -1, place) < 0 ||
        (dt_recording(g) && dt_variable_set_part(part, whole) < 0) ||
        dt_recorded_select("SelectBackward0", values, g, window ? dim : -1, place) < 0)
        return -1;
    return dt_recorded_binary_into(DT_BINARY_add, part, dt_arg_tensor(part),
                                   dt_arg_tensor(values));
}

/* Windows overlap: what several of them read gets the sum of their gradients. No two
 * windows have the same place for the same element, and no window two. */
static int unfold_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                        dt_tensor **into)
{
    const where_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *whole = zeros_from(scope, node, &data->from, g);
    if (!whole)
        return -1;
    into[0] = whole;
    if (!g->numel)
        return 0;
    int64_t dim = data->a < 0 ? data->a + data->from.ndim : data->a;
    int64_t count = data->from.ndim ? g->shape[dim] : 1, size = data->b;
    bool by_window = data->from.ndim && count < size;
    if (!data->from.ndim) { /* one window of one element */
        into[0] = dt_scope_slot(scope);
        return into[0] ? dt_recorded_reshape(into[0], g, 0, NULL) : -1;
    }
    for (int64_t i = 0; i < (by_window ? count : size); i++) {
        dt_scope own;
        dt_scope_begin(&own);
        int status = add_windows(node, &own, whole, g, i, by_window);
        dt_scope_end(&own);
        if (status < 0)
            return -1;
    }
    return 0;
}
static const dt_node_type unfold_type = {unfold_apply, NULL};

int dt_recorded_unfold(dt_tensor *out, const dt_tensor *x, int64_t dim, int64_t size,
                       int64_t step)
{
    if (dt_view_unfold(out, x, dim, size, step) < 0)
        return -1;
    return where_of(&unfold_type, "UnfoldBackward0", out, x, dim, size, step);
}

int dt_recorded_unflatten(dt_tensor *out, const dt_tensor *x, int64_t dim, int count,
                          const int64_t *sizes)
{
    return reshaped("ViewBackward0", &reshape_type, out, x,
                    dt_view_unflatten(out, x, dim, count, sizes));
}

/* --- parts by subscripts --- */

int dt_recorded_index(dt_tensor *out, const dt_tensor *x, const dt_subscript *items,
                      int count)
{
    if (dt_view_index(out, x, items, count) < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    /* The name is that of PyTorch's last step: it takes the items one after another. */
    const char *name = "AliasBackward0";
    for (int i = 0; i < count; i++)
        if (items[i].kind == DT_SUBSCRIPT_INTEGER)
            name = "SelectBackward0";
        else if (items[i].kind == DT_SUBSCRIPT_NEW_AXIS)
            name = "UnsqueezeBackward0";
        else if (items[i].kind == DT_SUBSCRIPT_SLICE)
            name = "SliceBackward0";
    return part_of(name, out, x, items, count);
}

/* Everything along the dimensions before dim; then `last`. */
static int part_along(const char *name, dt_tensor *out, const dt_tensor *x, int64_t dim,
                      dt_subscript last)
{
    dt_subscript items[DT_MAX_NDIM];
    int count = (int)(dim < 0 ? dim + x->ndim : dim);
    for (int d = 0; d < count; d++)
        items[d] = (dt_subscript){.kind = DT_SUBSCRIPT_SLICE, .step = 1};
    items[count] = last;
    return part_of(name, out, x, items, count + 1);
}

int dt_recorded_narrow(const char *name, dt_tensor *out, const dt_tensor *x,
                       int64_t dim, int64_t start, int64_t length)
{
    if (dt_view_narrow(out, x, dim, start, length) < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    int64_t size = x->shape[dim < 0 ? dim + x->ndim : dim];
    if (start < 0)
        start += size;
    dt_subscript slice = {.kind = DT_SUBSCRIPT_SLICE,
                          .start = start,
                          .stop = start + length,
                          .step = 1,
                          .has_start = true,
                          .has_stop = true};
    return part_along(name, out, x, dim, slice);
}

int dt_recorded_select(const char *name, dt_tensor *out, const dt_tensor *x,
                       int64_t dim, int64_t index)
{
    if (dt_view_select(out, x, dim, index) < 0)
        return -1;
    if (!dt_recording(x))
        return dt_variable_follow(out, x);
    return part_along(name, out, x, dim,
                      (dt_subscript){.kind = DT_SUBSCRIPT_INTEGER, .start = index});
}
