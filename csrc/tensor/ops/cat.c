#include "tensor/ops/cat.h"

#include <inttypes.h>
#include <stdio.h>

#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"

/* --- what the result is like --- */

static int check_devices(const dt_cat *join)
{
    char first[32], other[32];
    for (int64_t i = 1; i < join->count; i++) {
        if (dt_device_equal(dt_tensor_device(join->tensors[i]), join->device))
            continue;
        snprintf(first, sizeof first, "tensors[0]");
        snprintf(other, sizeof other, "tensors[%" PRId64 "]", i);
        return dt_check_same_device(join->what, first, join->tensors[0], other,
                                    join->tensors[i]);
    }
    return 0;
}

static int measure_stack(dt_cat *join, int64_t dim)
{
    const dt_tensor *first = join->tensors[0];
    for (int64_t i = 1; i < join->count; i++) {
        const dt_tensor *t = join->tensors[i];
        if (dt_shape_equal(t->ndim, t->shape, first->ndim, first->shape))
            continue;
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: tensor %" PRId64 " has shape %s, and tensor 0 has %s; give "
                       "tensors of one shape, or use cat along a dimension they have",
                       join->what, i, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                       dt_shape_text(first->ndim, first->shape, wants, sizeof wants));
    }
    if (first->ndim == DT_MAX_NDIM)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the result would have %d dimensions; at most %d are "
                       "possible, use cat along one of the tensors' own",
                       join->what, DT_MAX_NDIM + 1, DT_MAX_NDIM);
    join->ndim = first->ndim + 1;
    join->dim = dt_shape_wrap_dim(join->what, dim, join->ndim);
    if (join->dim < 0)
        return -1;
    for (int d = 0, from = 0; d < join->ndim; d++)
        join->shape[d] = d == join->dim ? join->count : first->shape[from++];
    return 0;
}

static int measure_cat(dt_cat *join, int64_t dim)
{
    const dt_tensor *first = NULL;
    int64_t at = 0, total = 0;
    for (int64_t i = 0; i < join->count; i++) {
        if (!join->tensors[i]->ndim)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: tensor %" PRId64 " has no dimensions and cannot be "
                           "joined along one; use stack, or give it one with "
                           "reshape(1)",
                           join->what, i);
        if (!first && !dt_cat_skips(join, i)) {
            first = join->tensors[i];
            at = i;
        }
    }
    if (!first) { /* nothing but empty ones: any dimension will do */
        join->ndim = 1;
        join->dim = 0;
        join->shape[0] = 0;
        return 0;
    }
    join->ndim = first->ndim;
    join->dim = dt_shape_wrap_dim(join->what, dim, first->ndim);
    if (join->dim < 0)
        return -1;
    for (int64_t i = at; i < join->count; i++) {
        const dt_tensor *t = join->tensors[i];
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        if (dt_cat_skips(join, i))
            continue;
        if (t->ndim != first->ndim)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: tensor %" PRId64 " of shape %s has %d dimension%s, and tensor "
                "%" PRId64 " of shape %s has %d; give tensors of as many dimensions, "
                "see unsqueeze",
                join->what, i, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                t->ndim, t->ndim == 1 ? "" : "s", at,
                dt_shape_text(first->ndim, first->shape, wants, sizeof wants),
                first->ndim);
        for (int d = 0; d < t->ndim; d++)
            if (d != join->dim && t->shape[d] != first->shape[d])
                return dt_fail(
                    DT_ERROR_RUNTIME,
                    "%s: tensor %" PRId64 " of shape %s has size %" PRId64
                    " in dimension %d, and tensor %" PRId64 " of shape %s has %" PRId64
                    "; along dimension %d all other sizes have to agree",
                    join->what, i, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                    t->shape[d], d, at,
                    dt_shape_text(first->ndim, first->shape, wants, sizeof wants),
                    first->shape[d], join->dim);
        if (__builtin_add_overflow(total, t->shape[join->dim], &total))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the sizes along dimension %d add up to more than 64 "
                           "bits hold; join fewer tensors",
                           join->what, join->dim);
    }
    for (int d = 0; d < join->ndim; d++)
        join->shape[d] = d == join->dim ? total : first->shape[d];
    return 0;
}

int dt_cat_measure(dt_cat *join, int64_t dim)
{
    join->device = dt_tensor_device(join->tensors[0]);
    join->dtype = (dt_dtype)join->tensors[0]->dtype;
    for (int64_t i = 1; i < join->count; i++)
        join->dtype = dt_dtype_promote(join->dtype, (dt_dtype)join->tensors[i]->dtype);
    if (check_devices(join))
        return -1;
    return join->stack ? measure_stack(join, dim) : measure_cat(join, dim);
}

/* --- putting it together --- */

/* Copies each tensor into its part of target. */
static int place_all(dt_tensor *target, const dt_cat *join)
{
    dt_tensor part = *target; /* lent */
    int64_t stride = target->strides[join->dim];
    if (join->stack) {
        part.ndim--;
        for (int d = join->dim; d < part.ndim; d++) {
            part.shape[d] = part.shape[d + 1];
            part.strides[d] = part.strides[d + 1];
        }
        dt_tensor_update(&part);
    }
    for (int64_t i = 0; i < join->count; i++) {
        const dt_tensor *source = join->tensors[i];
        int64_t length = 1;
        if (dt_cat_skips(join, i))
            continue;
        if (!join->stack) {
            part.shape[join->dim] = length = source->shape[join->dim];
            dt_tensor_update(&part);
        }
        if (dt_copy_part(join->what, &part, source))
            return -1;
        part.offset += length * stride;
    }
    return 0;
}

int dt_cat_new(dt_tensor *out, const dt_cat *join)
{
    if (dt_tensor_empty(join->what, out, join->dtype, join->ndim, join->shape,
                        join->device))
        return -1;
    if (place_all(out, join)) {
        dt_tensor_clear(out);
        return -1;
    }
    out->storage->version = 0;
    return 0;
}

int dt_cat_into(dt_tensor *target, const dt_cat *join)
{
    dt_dtype dtype = (dt_dtype)target->dtype;
    if (dt_check_cast(join->what, join->dtype, dtype)) {
        dt_error_slot()->code = DT_ERROR_TYPE;
        return -1;
    }
    if (!dt_device_equal(join->device, dt_tensor_device(target)))
        return dt_check_same_device(join->what, "tensors[0]", join->tensors[0], "out",
                                    target);
    if (dt_tensor_overlaps_itself(target))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: several elements of out share one place in memory, as after "
            "expand; clone() it first",
            join->what);
    for (int64_t i = 0; i < join->count; i++) {
        const dt_tensor *t = join->tensors[i];
        if (!dt_iterate_overlaps(target, t))
            continue;
        if (t->contiguous && target->contiguous)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: out shares memory with tensor %" PRId64
                           ", which would be overwritten while it is read; give "
                           "another out, or a clone() of the tensor",
                           join->what, i);
        /* They may lie in each other's gaps, or may not. */
        dt_tensor whole;
        if (dt_cat_new(&whole, join))
            return -1;
        int status = dt_copy_into(join->what, target, &whole);
        dt_tensor_clear(&whole);
        return status;
    }
    return place_all(target, join);
}
