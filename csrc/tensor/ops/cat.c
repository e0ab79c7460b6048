/* Tensors concatenated along a dimension: each is copied, and converted, once. */

#include <inttypes.h>
#include <stdio.h>

#include "tensor/call.h"

#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"

typedef struct parts {
    const char *name;                /* of the function, in messages */
    const dt_tensor *const *tensors; /* borrowed */
    int64_t count;                   /* 1 or more */
    bool stack;                      /* along a new dimension */
    /* The result's: */
    dt_dtype dtype;
    dt_device device;
    int dim, ndim;
    int64_t shape[DT_MAX_NDIM];
} parts;

/* cat leaves out tensors of shape [0], whatever shape the others have. */
static bool leaves_out(const parts *c, int64_t i)
{
    const dt_tensor *t = c->tensors[i];
    return !c->stack && t->ndim == 1 && t->shape[0] == 0;
}

/* --- the result's type, device and shape --- */

static int check_devices(const parts *c)
{
    char other[32];
    for (int64_t i = 1; i < c->count; i++) {
        if (dt_device_equal(dt_tensor_device(c->tensors[i]), c->device))
            continue;
        snprintf(other, sizeof other, "tensors[%" PRId64 "]", i);
        return dt_check_same_device(c->name, "tensors[0]", c->tensors[0], other,
                                    c->tensors[i]);
    }
    return 0;
}

static int measure_stack(parts *c, int64_t dim)
{
    const dt_tensor *first = c->tensors[0];
    for (int64_t i = 1; i < c->count; i++) {
        const dt_tensor *t = c->tensors[i];
        if (dt_shape_equal(t->ndim, t->shape, first->ndim, first->shape))
            continue;
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: tensor %" PRId64 " has shape %s, and tensor 0 has %s; give "
                       "tensors of one shape, or use cat along a dimension they have",
                       c->name, i, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                       dt_shape_text(first->ndim, first->shape, wants, sizeof wants));
    }
    if (first->ndim == DT_MAX_NDIM)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the result would have %d dimensions; at most %d are "
                       "possible, use cat along one of the tensors' own",
                       c->name, DT_MAX_NDIM + 1, DT_MAX_NDIM);
    c->ndim = first->ndim + 1;
    c->dim = dt_shape_wrap_dim(c->name, dim, c->ndim);
    if (c->dim < 0)
        return -1;
    for (int d = 0, from = 0; d < c->ndim; d++)
        c->shape[d] = d == c->dim ? c->count : first->shape[from++];
    return 0;
}

static int measure_cat(parts *c, int64_t dim)
{
    const dt_tensor *first = NULL;
    int64_t at = 0, total = 0;
    for (int64_t i = 0; i < c->count; i++) {
        if (!c->tensors[i]->ndim)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: tensor %" PRId64 " has no dimensions and cannot be "
                           "joined along one; use stack, or give it one with "
                           "reshape(1)",
                           c->name, i);
        if (!first && !leaves_out(c, i)) {
            first = c->tensors[i];
            at = i;
        }
    }
    if (!first) { /* nothing but empty ones: any dimension will do */
        c->ndim = 1;
        c->dim = 0;
        c->shape[0] = 0;
        return 0;
    }
    c->ndim = first->ndim;
    c->dim = dt_shape_wrap_dim(c->name, dim, first->ndim);
    if (c->dim < 0)
        return -1;
    for (int64_t i = at; i < c->count; i++) {
        const dt_tensor *t = c->tensors[i];
        char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
        if (leaves_out(c, i))
            continue;
        if (t->ndim != first->ndim)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: tensor %" PRId64 " of shape %s has %d dimension%s, and tensor "
                "%" PRId64 " of shape %s has %d; give tensors of as many dimensions, "
                "see unsqueeze",
                c->name, i, dt_shape_text(t->ndim, t->shape, has, sizeof has), t->ndim,
                t->ndim == 1 ? "" : "s", at,
                dt_shape_text(first->ndim, first->shape, wants, sizeof wants),
                first->ndim);
        for (int d = 0; d < t->ndim; d++)
            if (d != c->dim && t->shape[d] != first->shape[d])
                return dt_fail(
                    DT_ERROR_RUNTIME,
                    "%s: tensor %" PRId64 " of shape %s has size %" PRId64
                    " in dimension %d, and tensor %" PRId64 " of shape %s has %" PRId64
                    "; along dimension %d all other sizes have to agree",
                    c->name, i, dt_shape_text(t->ndim, t->shape, has, sizeof has),
                    t->shape[d], d, at,
                    dt_shape_text(first->ndim, first->shape, wants, sizeof wants),
                    first->shape[d], c->dim);
        if (__builtin_add_overflow(total, t->shape[c->dim], &total))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the sizes along dimension %d add up to more than 64 "
                           "bits hold; concatenate fewer tensors",
                           c->name, c->dim);
    }
    for (int d = 0; d < c->ndim; d++)
        c->shape[d] = d == c->dim ? total : first->shape[d];
    return 0;
}

static int measure(parts *c, int64_t dim)
{
    c->device = dt_tensor_device(c->tensors[0]);
    c->dtype = (dt_dtype)c->tensors[0]->dtype;
    for (int64_t i = 1; i < c->count; i++)
        c->dtype = dt_dtype_promote(c->dtype, (dt_dtype)c->tensors[i]->dtype);
    if (check_devices(c))
        return -1;
    return c->stack ? measure_stack(c, dim) : measure_cat(c, dim);
}

/* --- putting it together --- */

/* Copies each tensor into its part of target. */
static int place_all(dt_tensor *target, const parts *c)
{
    dt_tensor part = *target; /* borrowed */
    int64_t stride = target->strides[c->dim];
    if (c->stack) {
        part.ndim--;
        for (int d = c->dim; d < part.ndim; d++) {
            part.shape[d] = part.shape[d + 1];
            part.strides[d] = part.strides[d + 1];
        }
        dt_tensor_update(&part);
    }
    for (int64_t i = 0; i < c->count; i++) {
        const dt_tensor *source = c->tensors[i];
        int64_t length = 1;
        if (leaves_out(c, i))
            continue;
        if (!c->stack) {
            part.shape[c->dim] = length = source->shape[c->dim];
            dt_tensor_update(&part);
        }
        if (dt_copy_part(c->name, &part, source))
            return -1;
        part.offset += length * stride;
    }
    return 0;
}

static int make(dt_tensor *out, const parts *c)
{
    if (dt_tensor_empty(c->name, out, c->dtype, c->ndim, c->shape, c->device) ||
        place_all(out, c))
        return -1;
    out->storage->version = 0;
    return 0;
}

static int write_to(dt_tensor *target, const parts *c)
{
    if (!dt_device_equal(c->device, dt_tensor_device(target)))
        return dt_check_same_device(c->name, "tensors[0]", c->tensors[0], "out",
                                    target);
    if (dt_tensor_check_writable(c->name, target))
        return dt_fail_prefix("out= of ");
    for (int64_t i = 0; i < c->count; i++) {
        const dt_tensor *t = c->tensors[i];
        if (!dt_iterate_overlaps(target, t))
            continue;
        if (t->contiguous && target->contiguous)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: out shares memory with tensor %" PRId64
                           ", which would be overwritten while it is read; give "
                           "another out, or a clone() of the tensor",
                           c->name, i);
        /* They may be interleaved without overlap. */
        DT_LOCAL(whole);
        return make(&whole, c) ? -1 : dt_copy_into(c->name, target, &whole);
    }
    return place_all(target, c);
}

static int join(dt_call *call, bool stack)
{
    parts c = {.name = call->name,
               .tensors = call->args[0].tensors,
               .count = call->args[0].count,
               .stack = stack};
    if (!c.count)
        return dt_fail(stack ? DT_ERROR_RUNTIME : DT_ERROR_VALUE,
                       "%s: there are no tensors to concatenate; give at least one",
                       c.name);
    if (measure(&c, call->args[1].i) < 0)
        return -1;
    dt_tensor *target = call->target;
    if (target && dt_check_cast(c.name, c.dtype, (dt_dtype)target->dtype) < 0) {
        dt_error_slot()->code = DT_ERROR_TYPE; /* as PyTorch has it for cat alone */
        return -1;
    }
    if (!target || !dt_shape_equal(target->ndim, target->shape, c.ndim, c.shape))
        return make(call->out[0], &c);
    if (write_to(target, &c) < 0)
        return -1;
    dt_tensor_alias(call->out[0], target);
    return 0;
}

#include "tensor/ops/define.h"
#include "ops/functions/cat.def"
