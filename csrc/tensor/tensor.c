#include "tensor/tensor.h"

#include <string.h>

void dt_tensor_update(dt_tensor *t)
{
    int64_t numel = 1;
    for (int d = 0; d < t->ndim; d++)
        numel *= t->shape[d];
    t->numel = numel;
    t->contiguous = dt_shape_is_contiguous(t->ndim, t->shape, t->strides);
}

void *dt_tensor_settled(const dt_tensor *t)
{
    if (t->numel)
        dt_fusion_settle(t->storage);
    return dt_tensor_place(t);
}

/* Checks the shape and sets everything but strides and storage. */
static int begin_tensor(const char *op_name, dt_tensor *out, dt_dtype dtype, int ndim,
                        const int64_t *shape)
{
    out->storage = NULL;
    if (ndim > DT_MAX_NDIM)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: %d dimensions were given; at most %d are possible, merge some",
            op_name, ndim, DT_MAX_NDIM);
    int64_t numel = dt_shape_numel(op_name, ndim, shape, dt_dtype_size(dtype));
    if (numel < 0)
        return -1;
    out->history = NULL;
    out->unversioned = false;
    out->offset = 0;
    out->numel = numel;
    out->dtype = (unsigned char)dtype;
    out->ndim = (unsigned char)ndim;
    for (int d = 0; d < ndim; d++)
        out->shape[d] = shape[d];
    return 0;
}

/* Allocates for the elements and for the gaps between them. */
static int allocate(const char *op_name, dt_tensor *out, dt_device device)
{
    dt_dtype dtype = (dt_dtype)out->dtype;
    int64_t count = out->contiguous
                        ? out->numel
                        : dt_shape_extent(out->ndim, out->shape, out->strides);
    out->storage = dt_storage_new(device, (size_t)count * dt_dtype_size(dtype));
    if (!out->storage)
        return dt_fail_prefix("%s: ", op_name);
    if (!dt_device_is_host(device))
        dt_storage_asked_for(out->storage, dtype, out->ndim, out->shape);
    return 0;
}

int dt_tensor_empty(const char *op_name, dt_tensor *out, dt_dtype dtype, int ndim,
                    const int64_t *shape, dt_device device)
{
    if (begin_tensor(op_name, out, dtype, ndim, shape))
        return -1;
    dt_shape_strides(ndim, shape, out->strides);
    out->contiguous = true;
    return allocate(op_name, out, device);
}

int dt_tensor_empty_strided(const char *op_name, dt_tensor *out, dt_dtype dtype,
                            int ndim, const int64_t *shape, const int64_t *strides,
                            dt_device device)
{
    if (begin_tensor(op_name, out, dtype, ndim, shape))
        return -1;
    for (int d = 0; d < ndim; d++)
        out->strides[d] = strides[d];
    out->contiguous = dt_shape_is_contiguous(ndim, shape, strides);
    return allocate(op_name, out, device);
}

/* Copies all but storage, history and offset. */
static inline void copy_layout(dt_tensor *out, const dt_tensor *t)
{
    out->unversioned = t->unversioned;
    out->numel = t->numel;
    out->dtype = t->dtype;
    out->ndim = t->ndim;
    out->contiguous = t->contiguous;
    /* A copy of constant size is a few moves: no call of memcpy for most tensors. */
    size_t few = 4 * sizeof *t->shape, size = (size_t)t->ndim * sizeof *t->shape;
    memcpy(out->shape, t->shape, few);
    memcpy(out->strides, t->strides, few);
    if (size > few) {
        memcpy(out->shape, t->shape, size);
        memcpy(out->strides, t->strides, size);
    }
}

int dt_tensor_empty_like(const char *op_name, dt_tensor *out, dt_dtype dtype,
                         const dt_tensor *t)
{
    copy_layout(out, t);
    out->storage = NULL;
    out->history = NULL;
    out->offset = 0;
    out->unversioned = false;
    out->dtype = (unsigned char)dtype;
    return allocate(op_name, out, dt_tensor_device(t));
}

void dt_tensor_alias(dt_tensor *out, const dt_tensor *t)
{
    copy_layout(out, t);
    out->storage = dt_storage_retain(t->storage);
    out->history = NULL;
    out->offset = t->offset;
}

void dt_tensor_clear(dt_tensor *t)
{
    dt_storage *storage = t->storage;
    if (!storage)
        return;
    t->storage = NULL;
    dt_history *history = t->history;
    dt_storage_release(storage);
    if (history)
        dt_history_release(history);
}

bool dt_tensor_is_same_view(const dt_tensor *a, const dt_tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype &&
           dt_shape_equal(a->ndim, a->shape, b->ndim, b->shape) &&
           dt_shape_equal(a->ndim, a->strides, b->ndim, b->strides);
}

bool dt_tensor_overlaps_itself(const dt_tensor *t)
{
    if (t->contiguous || t->numel <= 1)
        return false;
    /* In order of stride, each dimension must step over the extent of the smaller
     * ones. */
    int order[DT_MAX_NDIM];
    int64_t reach = 0;
    dt_shape_order(t->ndim, t->strides, order);
    for (int i = t->ndim - 1; i >= 0; i--) {
        int64_t stride = t->strides[order[i]], size = t->shape[order[i]];
        if (size != 1 && stride <= reach)
            return true;
        reach += stride * (size - 1);
    }
    return false;
}

int dt_tensor_check_writable(const char *op_name, const dt_tensor *t)
{
    char shape[DT_SHAPE_TEXT], strides[DT_SHAPE_TEXT];
    if (dt_tensor_overlaps_itself(t))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: elements of the target share memory (shape %s, strides "
                       "%s), as after expand; clone() it before writing",
                       op_name, dt_shape_text(t->ndim, t->shape, shape, sizeof shape),
                       dt_shape_text(t->ndim, t->strides, strides, sizeof strides));
    if (t->storage->read_only)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the target's memory is read-only; clone() it before writing", op_name);
    return 0;
}

bool dt_tensor_is_non_overlapping_and_dense(const dt_tensor *t)
{
    return t->contiguous ||
           (dt_shape_extent(t->ndim, t->shape, t->strides) == t->numel &&
            !dt_tensor_overlaps_itself(t));
}
