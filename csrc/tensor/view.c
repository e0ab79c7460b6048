#include "tensor/view.h"

#include <inttypes.h>

#include "tensor/ops/copy.h"

/* Views start as an alias and then change shape and strides; on failure, clears the
 * alias. */
static int finish_view(dt_tensor *out, int status)
{
    if (status < 0) {
        dt_tensor_clear(out);
        return -1;
    }
    dt_tensor_update(out);
    return 0;
}

/* The same for views that only reorder the dimensions. */
static int finish_order(dt_tensor *out)
{
    out->contiguous = dt_shape_is_contiguous(out->ndim, out->shape, out->strides);
    return 0;
}

static void drop_dim(dt_tensor *t, int dim)
{
    t->ndim--;
    for (int d = dim; d < t->ndim; d++) {
        t->shape[d] = t->shape[d + 1];
        t->strides[d] = t->strides[d + 1];
    }
}

static int insert_dim(const char *op_name, dt_tensor *t, int dim, int64_t stride)
{
    if (dt_shape_check_ndim(op_name, t->ndim + 1))
        return -1;
    for (int d = t->ndim; d > dim; d--) {
        t->shape[d] = t->shape[d - 1];
        t->strides[d] = t->strides[d - 1];
    }
    t->ndim++;
    t->shape[dim] = 1;
    t->strides[dim] = stride;
    return 0;
}

/* --- subscripts --- */

static int take_integer(const char *op_name, dt_tensor *t, int dim, int64_t index,
                        int shown_dim)
{
    int64_t size = t->shape[dim];
    if (index < -size || index >= size)
        return dt_fail(
            DT_ERROR_INDEX,
            size ? "%s: index %" PRId64 " is out of range for dimension %d of size "
                   "%" PRId64 "; use one from %" PRId64 " to %" PRId64
                 : "%s: index %" PRId64
                   " is out of range: dimension %d has size %" PRId64
                   " and no elements%.0" PRId64 "%.0" PRId64,
            op_name, index, shown_dim, size, size ? -size : 0, size ? size - 1 : 0);
    t->offset += (index < 0 ? index + size : index) * t->strides[dim];
    drop_dim(t, dim);
    return 0;
}

static int64_t clamp(int64_t value, int64_t size)
{
    if (value < 0)
        value += size;
    return value < 0 ? 0 : value > size ? size : value;
}

static int take_slice(dt_tensor *t, int dim, const dt_subscript *item)
{
    if (item->step <= 0)
        return dt_fail(DT_ERROR_VALUE,
                       "index: a slice's step is %" PRId64
                       "; use a positive step, and flip() to reverse",
                       item->step);
    int64_t size = t->shape[dim];
    int64_t start = item->has_start ? clamp(item->start, size) : 0;
    int64_t stop = item->has_stop ? clamp(item->stop, size) : size;
    int64_t length = stop > start ? (stop - start - 1) / item->step + 1 : 0;
    t->offset += start * t->strides[dim];
    t->shape[dim] = length;
    int64_t stride;
    /* A step that overflows selects at most one element, so its stride is unused. */
    t->strides[dim] = __builtin_mul_overflow(t->strides[dim], item->step, &stride)
                          ? t->strides[dim]
                          : stride;
    return 0;
}

int dt_view_index(dt_tensor *out, const dt_tensor *t, const dt_subscript *items,
                  int count)
{
    if (count == 1 && items->kind == DT_SUBSCRIPT_INTEGER && t->ndim) {
        dt_tensor_alias(out, t);
        return finish_view(out, take_integer("index", out, 0, items->start, 0));
    }
    int consumed = 0;
    for (int i = 0; i < count; i++) {
        consumed += items[i].kind == DT_SUBSCRIPT_INTEGER ||
                    items[i].kind == DT_SUBSCRIPT_SLICE;
    }
    if (consumed > t->ndim)
        return dt_fail(DT_ERROR_INDEX,
                       "index: %d indices were given for a tensor of %d dimension%s; "
                       "give at most one per dimension",
                       consumed, t->ndim, t->ndim == 1 ? "" : "s");
    dt_tensor_alias(out, t);
    int dim = 0, source = 0, status = 0;
    bool skipped = false;
    for (int i = 0; i < count && !status; i++) {
        switch (items[i].kind) {
        case DT_SUBSCRIPT_INTEGER:
            status = take_integer("index", out, dim, items[i].start, source++);
            break;
        case DT_SUBSCRIPT_SLICE:
            status = take_slice(out, dim++, &items[i]);
            source++;
            break;
        case DT_SUBSCRIPT_NEW_AXIS:
            status =
                insert_dim("index", out, dim,
                           dim < out->ndim ? out->shape[dim] * out->strides[dim] : 1);
            if (!status)
                out->shape[dim] = items[i].stop;
            dim++;
            break;
        case DT_SUBSCRIPT_ELLIPSIS: /* a second ellipsis selects no dimension */
            dim += skipped ? 0 : t->ndim - consumed;
            source += skipped ? 0 : t->ndim - consumed;
            skipped = true;
            break;
        }
    }
    return finish_view(out, status);
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
            return finish_view(out, -1);
        if (seen[from])
            return finish_view(
                out,
                dt_fail(DT_ERROR_RUNTIME,
                        "permute: dimension %d is given twice; give each once", from));
        seen[from] = true;
        out->shape[d] = t->shape[from];
        out->strides[d] = t->strides[from];
    }
    return finish_view(out, 0);
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
    return finish_view(out, 0);
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
            drop_dim(out, d);
    return finish_view(out, 0);
}

int dt_view_unsqueeze(dt_tensor *out, const dt_tensor *t, int64_t wanted)
{
    int dim = dt_shape_wrap_dim("unsqueeze", wanted, t->ndim + 1);
    if (dim < 0)
        return -1;
    dt_tensor_alias(out, t);
    int64_t stride = dim < t->ndim ? t->shape[dim] * t->strides[dim] : 1;
    /* A dimension of size 1 changes neither the number of elements nor their order. */
    if (insert_dim("unsqueeze", out, dim, stride) == 0)
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
            return finish_view(
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
                return finish_view(
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
    return finish_view(out, dt_shape_numel(op_name, ndim, out->shape,
                                           dt_dtype_size((dt_dtype)t->dtype)) < 0
                                ? -1
                                : 0);
}

/* --- slices --- */

int dt_view_narrow(dt_tensor *out, const dt_tensor *t, int64_t wanted, int64_t start,
                   int64_t length)
{
    if (!t->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "narrow: a 0-dim tensor cannot be narrowed; unsqueeze it first");
    int dim = dt_shape_wrap_dim("narrow", wanted, t->ndim);
    if (dim < 0)
        return -1;
    int64_t size = t->shape[dim];
    if (length < 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "narrow: length %" PRId64 " is negative; give 0 or more",
                       length);
    if (start < -size || start > size)
        return dt_fail(DT_ERROR_INDEX,
                       "narrow: start %" PRId64
                       " is out of range for dimension %d of size "
                       "%" PRId64 "; use one from %" PRId64 " to %" PRId64,
                       start, dim, size, -size, size);
    int64_t from = start < 0 ? start + size : start;
    if (length > size - from)
        return dt_fail(DT_ERROR_RUNTIME,
                       "narrow: start %" PRId64 " and length %" PRId64
                       " exceed dimension %d of size %" PRId64
                       "; shorten it to %" PRId64 " or less",
                       start, length, dim, size, size - from);
    dt_tensor_alias(out, t);
    out->offset += from * t->strides[dim];
    out->shape[dim] = length;
    return finish_view(out, 0);
}

int dt_view_select(dt_tensor *out, const dt_tensor *t, int64_t wanted, int64_t index)
{
    if (!t->ndim)
        return dt_fail(DT_ERROR_INDEX, "select: a 0-dim tensor has no dimension to "
                                       "select from; use item() for its value");
    int dim = dt_shape_wrap_dim("select", wanted, t->ndim);
    if (dim < 0)
        return -1;
    dt_tensor_alias(out, t);
    return finish_view(out, take_integer("select", out, dim, index, dim));
}

int dt_view_diagonal(dt_tensor *out, const dt_tensor *t, int64_t offset, int64_t dim1,
                     int64_t dim2)
{
    int a, b;
    if (dt_shape_wrap_pair("diagonal", dim1, dim2, t->ndim, &a, &b))
        return -1;
    int64_t rows = t->shape[a], columns = t->shape[b], size;
    if (offset >= 0)
        size = columns - offset < rows ? columns - offset : rows;
    else
        size = rows + offset < columns ? rows + offset : columns;
    int64_t stride = t->strides[a] + t->strides[b];
    dt_tensor_alias(out, t);
    if (size > 0)
        out->offset += offset >= 0 ? offset * t->strides[b] : -offset * t->strides[a];
    drop_dim(out, a > b ? a : b);
    drop_dim(out, a > b ? b : a);
    out->shape[out->ndim] = size > 0 ? size : 0;
    out->strides[out->ndim++] = stride;
    return finish_view(out, 0);
}

int dt_view_unfold(dt_tensor *out, const dt_tensor *t, int64_t wanted, int64_t size,
                   int64_t step)
{
    int dim = dt_shape_wrap_dim("unfold", wanted, t->ndim);
    if (dim < 0)
        return -1;
    int64_t room = t->ndim ? t->shape[dim] : 1;
    int64_t within = t->ndim ? t->strides[dim] : 1, between;
    if (size < 0 || size > room)
        return dt_fail(DT_ERROR_RUNTIME,
                       "unfold: windows of size %" PRId64
                       " exceed dimension %d of size %" PRId64
                       "; give a size from 0 to that",
                       size, dim, room);
    if (step <= 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "unfold: the step is %" PRId64 "; give 1 or more", step);
    if (dt_shape_check_ndim("unfold", t->ndim + 1))
        return -1;
    dt_tensor_alias(out, t);
    if (t->ndim) {
        out->shape[dim] = (room - size) / step + 1;
        /* A step that overflows leaves one window, so its stride is unused. */
        out->strides[dim] =
            __builtin_mul_overflow(within, step, &between) ? within : between;
    }
    out->shape[out->ndim] = size;
    out->strides[out->ndim++] = within;
    return finish_view(out, 0);
}

int dt_view_unflatten(dt_tensor *out, const dt_tensor *t, int64_t wanted, int count,
                      const int64_t *sizes)
{
    char from[DT_SHAPE_TEXT], to[DT_SHAPE_TEXT];
    int64_t shape[DT_MAX_NDIM], known = 1;
    int ndim = 0, unknown = -1;
    int dim = dt_shape_wrap_dim("unflatten", wanted, t->ndim);
    if (dim < 0)
        return -1;
    if (!t->ndim || !count)
        return dt_fail(
            DT_ERROR_RUNTIME,
            !count
                ? "unflatten: no sizes were given; give at least one"
                : "unflatten: a 0-dim tensor has no dimension to split; use reshape");
    if (dt_shape_check_ndim("unflatten", count + t->ndim - 1))
        return -1;
    for (int d = 0; d < dim; d++)
        shape[ndim++] = t->shape[d];
    bool sound = true;
    for (int i = 0; i < count; i++) {
        if (sizes[i] == -1 && unknown < 0)
            unknown = ndim;
        else
            sound = sound && sizes[i] >= 0 &&
                    !__builtin_mul_overflow(known, sizes[i], &known);
        shape[ndim++] = sizes[i];
    }
    int64_t whole = t->shape[dim];
    if (sound && unknown >= 0) {
        sound = known && whole % known == 0;
        known = sound ? whole : 0;
    }
    if (!sound || known != whole)
        return dt_fail(DT_ERROR_RUNTIME,
                       "unflatten: dimension %d of a tensor of shape %s does not split "
                       "into %s; give sizes with the product %" PRId64
                       ", one of which may be -1",
                       dim, dt_shape_text(t->ndim, t->shape, from, sizeof from),
                       dt_shape_text(count, sizes, to, sizeof to), whole);
    if (unknown >= 0) {
        int64_t others = 1;
        for (int i = 0; i < count; i++)
            others *= sizes[i] == -1 ? 1 : sizes[i];
        shape[unknown] = whole / others;
    }
    for (int d = dim + 1; d < t->ndim; d++)
        shape[ndim++] = t->shape[d];
    return dt_view_shape(out, t, ndim, shape);
}

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
