/* Views of some of the elements: subscripts, slices, diagonals, windows. */
#include "tensor/view.h"

#include <inttypes.h>

#include "tensor/view_dims.h"

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
    dt_view_drop_dim(t, dim);
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
        return dt_view_finish(out, take_integer("index", out, 0, items->start, 0));
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
            status = dt_view_insert_dim(
                "index", out, dim,
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
    return dt_view_finish(out, status);
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
    return dt_view_finish(out, 0);
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
    return dt_view_finish(out, take_integer("select", out, dim, index, dim));
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
    dt_view_drop_dim(out, a > b ? a : b);
    dt_view_drop_dim(out, a > b ? b : a);
    out->shape[out->ndim] = size > 0 ? size : 0;
    out->strides[out->ndim++] = stride;
    return dt_view_finish(out, 0);
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
    return dt_view_finish(out, 0);
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
