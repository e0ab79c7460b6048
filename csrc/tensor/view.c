#include "tensor/view.h"

#include <inttypes.h>

#include "tensor/ops/copy.h"
#include "tensor/view_dims.h"

/* Ends a view that only reorders the dimensions. */
static int finish_order(dt_tensor *out)
{
    out->contiguous = dt_shape_is_contiguous(out->ndim, out->shape, out->strides);
    return 0;
}

/* --- shapes --- */

/* Computes strides for a new shape over t's memory; false if that needs a copy.
 * Merges t's dimensions into runs of evenly spaced elements and splits each run into
 * new sizes. */
static bool strides_for(const dt_tensor *t, int ndim, const int64_t *shape,
                        int64_t *strides)
{
    if (t->numel == 0) {
        if (dt_shape_equal(t->ndim, t->shape, ndim, shape))
            for (int d = 0; d < ndim; d++)
                strides[d] = t->strides[d];
        else
            dt_shape_strides(ndim, shape, strides);
        return true;
    }
    int to = ndim - 1;
    int64_t base = t->ndim ? t->strides[t->ndim - 1] : 1, run = 1, made = 1;
    for (int from = t->ndim - 1; from >= 0; from--) {
        run *= t->shape[from];
        bool ends = from == 0 ||
                    (t->shape[from - 1] != 1 && t->strides[from - 1] != run * base);
        if (!ends)
            continue;
        while (to >= 0 && (made < run || shape[to] == 1)) {
            strides[to] = made * base;
            made *= shape[to--];
        }
        if (made != run)
            return false;
        if (from > 0) {
            base = t->strides[from - 1];
            run = made = 1;
        }
    }
    for (; to >= 0; to--) /* only sizes of 1 are left: t is 0-dim */
        strides[to] = made * base;
    return true;
}

/* Infers one size of -1; fails if the number of elements does not match. */
static int resolve(const char *op_name, const dt_tensor *t, int ndim,
                   const int64_t *wanted, int64_t *shape)
{
    char from[DT_SHAPE_TEXT], to[DT_SHAPE_TEXT];
    if (ndim > DT_MAX_NDIM)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: a shape of %d dimensions was given; at most %d are possible", op_name,
            ndim, DT_MAX_NDIM);
    int unknown = -1;
    int64_t known = 1;
    bool overflow = false;
    for (int d = 0; d < ndim; d++) {
        shape[d] = wanted[d];
        if (wanted[d] == -1) {
            if (unknown >= 0)
                return dt_fail(
                    DT_ERROR_RUNTIME,
                    "%s: %s has more than one size of -1; at most one can be inferred",
                    op_name, dt_shape_text(ndim, wanted, to, sizeof to));
            unknown = d;
        } else if (wanted[d] < 0) {
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: size %" PRId64 " in %s is negative; give sizes of 0 or more, or "
                "one -1 to have it inferred",
                op_name, wanted[d], dt_shape_text(ndim, wanted, to, sizeof to));
        } else {
            overflow |= __builtin_mul_overflow(known, wanted[d], &known);
        }
    }
    if (unknown >= 0 && known == 0)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the -1 in %s is ambiguous next to a size of 0; give the size", op_name,
            dt_shape_text(ndim, wanted, to, sizeof to));
    if (overflow || (unknown >= 0 ? t->numel % known != 0 : t->numel != known))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: shape %s does not fit the %" PRId64
            " element%s of a tensor of shape %s; give sizes with that product",
            op_name, dt_shape_text(ndim, wanted, to, sizeof to), t->numel,
            t->numel == 1 ? "" : "s",
            dt_shape_text(t->ndim, t->shape, from, sizeof from));
    if (unknown >= 0)
        shape[unknown] = t->numel / known;
    return 0;
}

static void set_shape(dt_tensor *t, int ndim, const int64_t *shape,
                      const int64_t *strides)
{
    t->ndim = (unsigned char)ndim;
    for (int d = 0; d < ndim; d++) {
        t->shape[d] = shape[d];
        t->strides[d] = strides[d];
    }
    dt_tensor_update(t);
}

int dt_view_shape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *wanted)
{
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    if (resolve("view", t, ndim, wanted, shape))
        return -1;
    if (!strides_for(t, ndim, shape, strides)) {
        char from[DT_SHAPE_TEXT], to[DT_SHAPE_TEXT], steps[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "view: a tensor of shape %s with strides %s cannot be viewed as "
                       "%s without a copy; use reshape, which copies if necessary",
                       dt_shape_text(t->ndim, t->shape, from, sizeof from),
                       dt_shape_text(t->ndim, t->strides, steps, sizeof steps),
                       dt_shape_text(ndim, shape, to, sizeof to));
    }
    dt_tensor_alias(out, t);
    set_shape(out, ndim, shape, strides);
    return 0;
}

int dt_view_reshape(dt_tensor *out, const dt_tensor *t, int ndim, const int64_t *wanted)
{
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    if (resolve("reshape", t, ndim, wanted, shape))
        return -1;
    if (strides_for(t, ndim, shape, strides)) {
        dt_tensor_alias(out, t);
    } else {
        if (dt_contiguous(out, t))
            return dt_fail_prefix("reshape: ");
        dt_shape_strides(ndim, shape, strides);
    }
    set_shape(out, ndim, shape, strides);
    return 0;
}

int dt_view_flatten(dt_tensor *out, const dt_tensor *t, int64_t start, int64_t end)
{
    int first = dt_shape_wrap_dim("flatten", start, t->ndim);
    int last = first < 0 ? -1 : dt_shape_wrap_dim("flatten", end, t->ndim);
    if (last < 0)
        return -1;
    if (first > last)
        return dt_fail(DT_ERROR_RUNTIME,
                       "flatten: start_dim %d is after end_dim %d; give them in order",
                       first, last);
    int64_t shape[DT_MAX_NDIM], size = 1;
    int ndim = 0;
    for (int d = 0; d < first; d++)
        shape[ndim++] = t->shape[d];
    for (int d = first; d <= last && d < t->ndim; d++)
        size *= t->shape[d];
    shape[ndim++] = size;
    for (int d = last + 1; d < t->ndim; d++)
        shape[ndim++] = t->shape[d];
    return dt_view_reshape(out, t, ndim, shape);
}

/* --- permutations --- */

int dt_view_permute(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims)
{
    bool seen[DT_MAX_NDIM] = {false};
    if (count != t->ndim)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "permute: %d dimension%s given for a tensor of %d; give each of them once",
            count, count == 1 ? " was" : "s were", t->ndim);
    dt_tensor_alias(out, t);
    for (int d = 0; d < count; d++) {
        int from = dt_shape_wrap_dim("permute", dims[d], t->ndim);
        if (from < 0)
            return dt_view_finish(out, -1);
        if (seen[from])
            return dt_view_finish(
                out,
                dt_fail(DT_ERROR_RUNTIME,
                        "permute: dimension %d is given twice; give each once", from));
        seen[from] = true;
        out->shape[d] = t->shape[from];
        out->strides[d] = t->strides[from];
    }
    return dt_view_finish(out, 0);
}

static void swap_dims(dt_tensor *t, int a, int b)
{
    int64_t size = t->shape[a], stride = t->strides[a];
    t->shape[a] = t->shape[b];
    t->strides[a] = t->strides[b];
    t->shape[b] = size;
    t->strides[b] = stride;
}

int dt_view_transpose(dt_tensor *out, const dt_tensor *t, int64_t dim0, int64_t dim1)
{
    int a = dt_shape_wrap_dim("transpose", dim0, t->ndim);
    int b = a < 0 ? -1 : dt_shape_wrap_dim("transpose", dim1, t->ndim);
    if (b < 0)
        return -1;
    dt_tensor_alias(out, t);
    if (t->ndim)
        swap_dims(out, a, b);
    return finish_order(out);
}

int dt_view_t(dt_tensor *out, const dt_tensor *t)
{
    if (t->ndim > 2) {
        char text[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "t: the tensor has shape %s; t takes at most 2 dimensions, use "
                       "transpose(dim0, dim1) or permute",
                       dt_shape_text(t->ndim, t->shape, text, sizeof text));
    }
    dt_tensor_alias(out, t);
    if (t->ndim < 2)
        return 0;
    swap_dims(out, 0, 1);
    return finish_order(out);
}

int dt_view_mT(dt_tensor *out, const dt_tensor *t)
{
    if (t->ndim < 2)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "mT: the tensor has %d dimension%s; mT takes a matrix or a batch of them",
            t->ndim, t->ndim == 1 ? "" : "s");
    return dt_view_transpose(out, t, -2, -1);
}

int dt_view_reverse(dt_tensor *out, const dt_tensor *t)
{
    dt_tensor_alias(out, t);
    for (int a = 0, b = t->ndim - 1; a < b; a++, b--)
        swap_dims(out, a, b);
    return dt_view_finish(out, 0);
}

/* --- sizes of 1 --- */

int dt_view_squeeze(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims)
{
    bool drop[DT_MAX_NDIM];
    if (count >= 0 && dt_shape_wrap_dims("squeeze", count, dims, t->ndim, drop))
        return -1;
    dt_tensor_alias(out, t);
    for (int d = t->ndim - 1; d >= 0; d--)
        if ((count < 0 || drop[d]) && t->shape[d] == 1)
            dt_view_drop_dim(out, d);
    return dt_view_finish(out, 0);
}

int dt_view_unsqueeze(dt_tensor *out, const dt_tensor *t, int64_t wanted)
{
    int dim = dt_shape_wrap_dim("unsqueeze", wanted, t->ndim + 1);
    if (dim < 0)
        return -1;
    dt_tensor_alias(out, t);
    int64_t stride = dim < t->ndim ? t->shape[dim] * t->strides[dim] : 1;
    /* A dimension of size 1 changes neither the number of elements nor their order. */
    if (dt_view_insert_dim("unsqueeze", out, dim, stride) == 0)
        return 0;
    dt_tensor_clear(out);
    return -1;
}

int dt_view_expand(const char *op_name, dt_tensor *out, const dt_tensor *t, int ndim,
                   const int64_t *shape)
{
    char from[DT_SHAPE_TEXT], to[DT_SHAPE_TEXT];
    if (ndim < t->ndim || ndim > DT_MAX_NDIM)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: %d size%s given for a tensor of %d dimension%s; give at least as "
            "many and at most %d",
            op_name, ndim, ndim == 1 ? " was" : "s were", t->ndim,
            t->ndim == 1 ? "" : "s", DT_MAX_NDIM);
    dt_tensor_alias(out, t);
    for (int d = ndim - 1, own = t->ndim - 1; d >= 0; d--, own--) {
        int64_t size = shape[d], stride = 0;
        if (own < 0 ? size < 0 : size < -1)
            return dt_view_finish(
                out,
                dt_fail(DT_ERROR_RUNTIME,
                        "%s: size %" PRId64 " of dimension %d in %s; give 0 or "
                        "more%s",
                        op_name, size, d, dt_shape_text(ndim, shape, to, sizeof to),
                        own < 0 ? " for a new dimension" : ", or -1 to keep it"));
        if (own >= 0) {
            if (size == -1)
                size = t->shape[own];
            if (t->shape[own] != 1 && size != t->shape[own])
                return dt_view_finish(
                    out,
                    dt_fail(
                        DT_ERROR_RUNTIME,
                        "%s: a tensor of shape %s does not expand to %s: dimension "
                        "%d has size %" PRId64 "; only sizes of 1 expand",
                        op_name, dt_shape_text(t->ndim, t->shape, from, sizeof from),
                        dt_shape_text(ndim, shape, to, sizeof to), d, t->shape[own]));
            stride = t->shape[own] == size ? t->strides[own] : 0;
        }
        out->shape[d] = size;
        out->strides[d] = stride;
    }
    out->ndim = (unsigned char)ndim;
    return dt_view_finish(out, dt_shape_numel(op_name, ndim, out->shape,
                                              dt_dtype_size((dt_dtype)t->dtype)) < 0
                                   ? -1
                                   : 0);
}

/* --- strides --- */

int dt_view_as_strided(dt_tensor *out, const dt_tensor *t, int ndim,
                       const int64_t *shape, const int64_t *strides, int64_t offset)
{
    int64_t numel = dt_shape_check_ndim("as_strided", ndim)
                        ? -1
                        : dt_shape_numel("as_strided", ndim, shape,
                                         dt_dtype_size((dt_dtype)t->dtype));
    if (numel < 0)
        return -1;
    int64_t last = offset;
    bool beyond = false;
    for (int d = 0; d < ndim; d++) {
        int64_t reach = 0;
        if (strides[d] < 0)
            return dt_fail(DT_ERROR_RUNTIME,
                           "as_strided: stride %" PRId64
                           " is negative; give strides of 0 or "
                           "more",
                           strides[d]);
        if (shape[d] > 1)
            beyond |= __builtin_mul_overflow(shape[d] - 1, strides[d], &reach) ||
                      __builtin_add_overflow(last, reach, &last);
    }
    int64_t room = (int64_t)(t->storage->bytes / dt_dtype_size((dt_dtype)t->dtype));
    if (offset < 0 || (numel && (beyond || last >= room))) {
        char sizes[DT_SHAPE_TEXT], steps[DT_SHAPE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME,
                       "as_strided: shape %s with strides %s from offset %" PRId64
                       " exceeds the storage of %" PRId64 " elements; use smaller ones",
                       dt_shape_text(ndim, shape, sizes, sizeof sizes),
                       dt_shape_text(ndim, strides, steps, sizeof steps), offset, room);
    }
    dt_tensor_alias(out, t);
    out->offset = offset;
    set_shape(out, ndim, shape, strides);
    return 0;
}
