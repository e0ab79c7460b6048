#include "tensor/ops/ops.h"

#include <inttypes.h>

#include "base/gil.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

static int flip(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims)
{
    bool flips[DT_MAX_NDIM];
    dt_tensor mirror = *t; /* borrowed; its steps lead back from the last element */
    if (dt_shape_wrap_dims("flip", count, dims, t->ndim, flips))
        return -1;
    for (int d = 0; d < t->ndim; d++) {
        if (!flips[d] || !t->numel || t->shape[d] == 1)
            continue;
        mirror.offset += (t->shape[d] - 1) * t->strides[d];
        mirror.strides[d] = -t->strides[d];
        mirror.contiguous = false;
    }
    dt_plan unused;
    dt_input like = {.tensor = t, .dtype = (dt_dtype)t->dtype};
    out->storage = NULL; /* to be made */
    if (dt_iterate_plan(&unused, "flip", out, (dt_dtype)t->dtype, dt_tensor_device(t),
                        &like, 1) < 0 ||
        dt_copy_part("flip", out, &mirror))
        return -1;
    out->storage->version = 0;
    return 0;
}

/* Rotates by a quarter turn in the plane of two dimensions, `turns` times (0 to 3). */
static int rotate(dt_tensor *out, const dt_tensor *x, int64_t turns,
                  const int64_t *dims)
{
    DT_LOCAL(flipped);
    if (turns == 0)
        return x->contiguous ? flip(out, x, 0, NULL) : dt_contiguous(out, x);
    if (turns == 2)
        return flip(out, x, 2, dims);
    return flip(&flipped, x, 1, &dims[turns == 1])
               ? -1
               : dt_view_transpose(out, &flipped, dims[0], dims[1]);
}

static int rot90(dt_call *c)
{
    static const int64_t first_two[] = {0, 1};
    const dt_tensor *x = c->args[0].tensor;
    const dt_value *dims = &c->args[2];
    const int64_t *plane = dims->given ? dims->ints : first_two;
    int a, b;
    if (dims->given && dims->count != 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90(): dims names %d dimension%s; give 2, from one towards "
                       "the other",
                       dims->count, dims->count == 1 ? "" : "s");
    if (x->ndim < 2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "rot90: a tensor of %d dimension%s cannot be rotated; give one "
                       "of at least 2",
                       x->ndim, x->ndim == 1 ? "" : "s");
    if (dt_shape_wrap_pair("rot90", plane[0], plane[1], x->ndim, &a, &b))
        return -1;
    return rotate(c->out[0], x, (c->args[1].i % 4 + 4) % 4, plane);
}

/* t shifted by less than its size along each dimension: the two parts of every
 * dimension make boxes, which are copied one by one. */
static int roll_boxes(dt_tensor *out, const dt_tensor *t, const int64_t *shifts)
{
    int rolled[DT_MAX_NDIM], count = 0;
    if (dt_tensor_empty("roll", out, (dt_dtype)t->dtype, t->ndim, t->shape,
                        dt_tensor_device(t)))
        return -1;
    for (int d = 0; d < t->ndim; d++)
        if (shifts[d])
            rolled[count++] = d;
    for (unsigned box = 0; box >> count == 0; box++) {
        dt_tensor to = *out, from = *t; /* borrowed */
        for (int i = 0; i < count; i++) {
            int d = rolled[i];
            bool wraps = box >> i & 1;
            int64_t kept = t->shape[d] - shifts[d];
            to.shape[d] = from.shape[d] = wraps ? shifts[d] : kept;
            to.offset += wraps ? 0 : shifts[d] * to.strides[d];
            from.offset += wraps ? kept * from.strides[d] : 0;
        }
        dt_tensor_update(&to);
        dt_tensor_update(&from);
        if (dt_copy_part("roll", &to, &from))
            return -1;
    }
    out->storage->version = 0;
    return 0;
}

static int64_t wrapped(int64_t shift, int64_t size)
{
    int64_t rest = size ? shift % size : 0;
    return rest < 0 ? rest + size : rest;
}

static int roll_flat(dt_tensor *out, const dt_tensor *t, int64_t shift)
{
    int64_t numel = t->numel, by = wrapped(shift, numel);
    DT_LOCAL(row);
    DT_LOCAL(rolled);
    return dt_view_reshape(&row, t, 1, &numel) || roll_boxes(&rolled, &row, &by)
               ? -1
               : dt_view_shape(out, &rolled, t->ndim, t->shape);
}

static int roll(dt_call *c)
{
    const dt_tensor *t = c->args[0].tensor;
    const dt_value *shifts = &c->args[1], *dims = &c->args[2];
    int64_t by[DT_MAX_NDIM] = {0};
    int ndims = dims->count < 0 ? 0 : dims->count;
    if (!shifts->count)
        return dt_fail(DT_ERROR_RUNTIME,
                       "roll: there are no shifts; give at least one");
    if (ndims ? shifts->count != ndims : shifts->count != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "roll: %d shift%s given for %d dimension%s; give one shift for "
                       "each dimension, or one shift and no dimension",
                       shifts->count, shifts->count == 1 ? " was" : "s were", ndims,
                       ndims == 1 ? "" : "s");
    if (!ndims)
        return roll_flat(c->out[0], t, shifts->ints[0]);
    for (int i = 0; i < ndims; i++) {
        int dim = dt_shape_wrap_dim("roll", dims->ints[i], t->ndim);
        if (dim < 0)
            return -1;
        if (!t->ndim)
            return dt_fail(DT_ERROR_INDEX,
                           "roll: the tensor has no dimensions; leave dims out");
        int64_t size = t->shape[dim];
        by[dim] = wrapped(by[dim] + wrapped(shifts->ints[i], size), size);
    }
    return roll_boxes(c->out[0], t, by);
}

#include "tensor/ops/define.h"
#include "ops/functions/movement.def"
