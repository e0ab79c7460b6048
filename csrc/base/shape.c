#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

int64_t dt_shape_numel(const char *op_name, int ndim, const int64_t *shape, size_t item)
{
    int64_t numel = 1, nonzero = 1;
    char text[DT_SHAPE_TEXT];
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: size %" PRId64 " of dimension %d is negative in %s; give sizes "
                "of 0 or more",
                op_name, shape[d], d, dt_shape_text(ndim, shape, text, sizeof text));
        /* Zero sizes must not hide an overflow: the strides would overflow all the
         * same. */
        if (shape[d] && __builtin_mul_overflow(nonzero, shape[d], &nonzero))
            goto overflow;
        numel *= shape[d] ? 1 : 0;
    }
    int64_t bytes;
    if (__builtin_mul_overflow(nonzero, (int64_t)(item ? item : 1), &bytes))
        goto overflow;
    return numel ? nonzero : 0;
overflow:
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: a tensor of shape %s exceeds the address space; use a smaller shape",
        op_name, dt_shape_text(ndim, shape, text, sizeof text));
}

void dt_shape_strides(int ndim, const int64_t *shape, int64_t *strides)
{
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= shape[d] > 1 ? shape[d] : 1;
    }
}

void dt_shape_order(int ndim, const int64_t *strides, int *order)
{
    for (int d = 0; d < ndim; d++) {
        int at = d;
        for (; at && strides[order[at - 1]] < strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

void dt_shape_ordered_strides(int ndim, const int64_t *shape, const int *order,
                              int64_t *strides)
{
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= shape[order[i]] > 1 ? shape[order[i]] : 1;
    }
}

bool dt_shape_is_contiguous(int ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t step = 1;
    bool contiguous = true;
    for (int d = ndim - 1; d >= 0; d--) {
        if (shape[d] == 0)
            return true;
        if (shape[d] != 1) {
            contiguous &= strides[d] == step;
            step *= shape[d];
        }
    }
    return contiguous;
}

int64_t dt_shape_extent(int ndim, const int64_t *shape, const int64_t *strides)
{
    int64_t extent = 1;
    for (int d = 0; d < ndim; d++) {
        if (!shape[d])
            return 0;
        extent += (shape[d] - 1) * strides[d];
    }
    return extent;
}

int dt_shape_broadcast(const char *op_name, int andim, const int64_t *ashape, int bndim,
                       const int64_t *bshape, int *out_ndim, int64_t *out)
{
    int ndim = andim > bndim ? andim : bndim;
    for (int d = 1; d <= ndim; d++) {
        int64_t a = d <= andim ? ashape[andim - d] : 1;
        int64_t b = d <= bndim ? bshape[bndim - d] : 1;
        if (a != b && a != 1 && b != 1) {
            char atext[DT_SHAPE_TEXT], btext[DT_SHAPE_TEXT];
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: shapes %s and %s do not broadcast: size %" PRId64
                " does not match size %" PRId64 " in dimension %d; make them equal "
                "or one of them 1",
                op_name, dt_shape_text(andim, ashape, atext, sizeof atext),
                dt_shape_text(bndim, bshape, btext, sizeof btext), a, b, ndim - d);
        }
        out[ndim - d] = a == 1 ? b : a;
    }
    *out_ndim = ndim;
    return 0;
}

bool dt_shape_equal(int andim, const int64_t *ashape, int bndim, const int64_t *bshape)
{
    if (andim != bndim)
        return false;
    for (int d = 0; d < andim; d++)
        if (ashape[d] != bshape[d])
            return false;
    return true;
}

char *dt_shape_text(int ndim, const int64_t *shape, char *text, size_t size)
{
    size_t used = 0;
    for (int d = 0; d < ndim && used < size; d++) {
        int n =
            snprintf(text + used, size - used, "%s%" PRId64, d ? ", " : "[", shape[d]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size)
        snprintf(text + used, size - used, "%s", ndim ? "]" : "[]");
    return text;
}

int dt_shape_wrap_dim(const char *op_name, int64_t dim, int ndim)
{
    int range = ndim ? ndim : 1;
    if (dim < -range || dim >= range)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: dimension %" PRId64
                       " is out of range for a tensor of %d dimension%s; "
                       "use one from %d to %d",
                       op_name, dim, ndim, ndim == 1 ? "" : "s", -range, range - 1);
    return (int)(dim < 0 ? dim + range : dim);
}

int dt_shape_wrap_dims(const char *op_name, int count, const int64_t *dims, int ndim,
                       bool *named)
{
    memset(named, 0, DT_MAX_NDIM);
    for (int i = 0; i < count; i++) {
        int dim = dt_shape_wrap_dim(op_name, dims[i], ndim);
        if (dim < 0)
            return -1;
        if (named[dim])
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d is named twice; name each one once",
                           op_name, dim);
        named[dim] = true;
    }
    return 0;
}

int dt_shape_wrap_pair(const char *op_name, int64_t dim1, int64_t dim2, int ndim,
                       int *out1, int *out2)
{
    *out1 = dt_shape_wrap_dim(op_name, dim1, ndim);
    *out2 = *out1 < 0 ? -1 : dt_shape_wrap_dim(op_name, dim2, ndim);
    if (*out2 < 0)
        return -1;
    if (*out1 == *out2)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: both dimensions are number %d; name two different ones",
                       op_name, *out1);
    return 0;
}

int dt_shape_check_ndim(const char *op_name, int ndim)
{
    if (ndim <= DT_MAX_NDIM)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: the result would have %d dimensions; at most %d are possible",
                   op_name, ndim, DT_MAX_NDIM);
}
