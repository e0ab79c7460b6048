#include "tensor/ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"
#include "tensor/call.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* --- rows in order --- */

/* t with dim and the last dimension exchanged, row-major. */
static int exchange(dt_tensor *out, const dt_tensor *t, int dim)
{
    DT_LOCAL(turned);
    return dt_view_transpose(&turned, t, dim, t->ndim ? t->ndim - 1 : 0)
               ? -1
               : dt_contiguous(out, &turned);
}

/* The first k elements along dim in order (k -1: all of them), and where they were. A
 * stable sort, a NaN greater than all others. values may be NULL. */
static int sort_rows(const char *op_name, dt_tensor *values, dt_tensor *indices,
                     const dt_tensor *x, int64_t k, int64_t dim, bool descending)
{
    DT_LOCAL(rows);
    DT_LOCAL(ordered);
    DT_LOCAL(places);
    int64_t shape[DT_MAX_NDIM];
    dt_device device = dt_tensor_device(x);
    int at =
        dt_check_real(op_name, values ? DT_ERROR_RUNTIME : DT_ERROR_NOT_IMPLEMENTED, x)
            ? -1
            : dt_shape_wrap_dim(op_name, dim, x->ndim);
    if (at < 0)
        return -1;
    int64_t n = x->ndim ? x->shape[at] : 1;
    if (k < -1 || k > n)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: k is %" PRId64 ", and dimension %d has %" PRId64
                       " elements; give k from 0 to that",
                       op_name, k, at, n);
    /* Bools go as numbers: of their bytes any but 0 is true. */
    dt_dtype dtype = x->dtype == DT_BOOL ? DT_UINT8 : (dt_dtype)x->dtype;
    if (exchange(&rows, x, at) || dt_retype(&rows, dtype))
        return -1;
    memcpy(shape, rows.shape, (size_t)rows.ndim * sizeof *shape);
    if (k >= 0 && rows.ndim)
        shape[rows.ndim - 1] = k;
    k = k < 0 || !rows.ndim ? n : k; /* a tensor of no dimensions keeps its element */
    if (dt_tensor_empty(op_name, &places, DT_INT64, rows.ndim, shape, device) ||
        (values && dt_tensor_empty(op_name, &ordered, (dt_dtype)x->dtype, rows.ndim,
                                   shape, device)))
        return -1;
    if (places.numel && k) {
        dt_sorting call = {.dtype = dtype,
                           .descending = descending,
                           .rows = places.numel / k,
                           .n = n,
                           .k = k,
                           .x = dt_tensor_data(&rows),
                           .values = values ? dt_tensor_data(&ordered) : NULL,
                           .index = dt_tensor_data(&places)};
        if (dt_tensor_use(&rows) || dt_tensor_use(&places) || dt_tensor_use(&ordered) ||
            dt_backend_of(device)->sort(dt_stream_current(device), &call))
            return -1;
    }
    dt_tensor_clear(&rows);
    return (values && exchange(values, &ordered, at)) || exchange(indices, &places, at)
               ? -1
               : 0;
}

static int sort(dt_call *c, int64_t dim, bool descending)
{
    return sort_rows(c->name, c->out[0], c->out[1], c->args[0].tensor, -1, dim,
                     descending);
}

static int topk(dt_call *c)
{
    int64_t k = c->args[1].i == -1 ? -2 : c->args[1].i; /* -1 would mean all */
    return sort_rows(c->name, c->out[0], c->out[1], c->args[0].tensor, k, c->args[2].i,
                     c->args[3].b);
}

/* --- one element of each sorted row --- */

static int64_t row_size(const dt_tensor *x, int dim)
{
    return x->ndim ? x->shape[dim] : 1;
}

/* The dimension, checked; -1 after dt_fail. */
static int check_row(const char *op_name, const dt_tensor *x, int64_t dim)
{
    int wrapped = dt_shape_wrap_dim(op_name, dim, x->ndim);
    if (wrapped < 0)
        return -1;
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for dtype bool; convert it first, for example "
                       "with .int()",
                       op_name);
    if (!row_size(x, wrapped))
        return dt_fail(DT_ERROR_INDEX,
                       "%s: dimension %d has size 0, so it has no element to return; "
                       "give a dimension that has elements",
                       op_name, wrapped);
    return wrapped;
}

/* Element i of each row, with size 1 for dim; a copy. */
static int take_element(dt_tensor *out, const dt_tensor *rows, int dim, int64_t i)
{
    DT_LOCAL(part);
    if (!rows->ndim) {
        dt_tensor_alias(out, rows);
        return 0;
    }
    return dt_view_narrow(&part, rows, dim, i, 1) < 0
               ? -1
               : dt_to(out, &part, DT_INT64, dt_tensor_device(rows));
}

static int drop_dim(dt_tensor *t, int64_t dim)
{
    DT_LOCAL(whole);
    dt_tensor_move(&whole, t);
    return dt_view_squeeze(t, &whole, 1, &dim);
}

/* Fills the results (values, indices) of a call whose indices have size 1 for dim. */
static int take_values(dt_call *c, const dt_tensor *x, int dim, bool keepdim)
{
    dt_indexing at = dt_indexing_along(c->name, DT_INDEXING_GATHER, dim, c->out[1]);
    if (dt_index_read(c->out[0], x, &at) < 0)
        return -1;
    if (keepdim || !x->ndim)
        return 0;
    return drop_dim(c->out[0], dim) < 0 || drop_dim(c->out[1], dim) < 0 ? -1 : 0;
}

static int kthvalue(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t k = c->args[1].i;
    int dim = check_row(c->name, x, c->args[2].i);
    DT_LOCAL(all);
    if (dim < 0)
        return -1;
    if (k < 1 || k > row_size(x, dim))
        return dt_fail(DT_ERROR_RUNTIME,
                       "kthvalue: k is %" PRId64 ", and dimension %d has %" PRId64
                       " elements; give k from 1 to that",
                       k, dim, row_size(x, dim));
    if (sort_rows(c->name, NULL, &all, x, k, dim, false) < 0 ||
        take_element(c->out[1], &all, dim, k - 1) < 0)
        return -1;
    return take_values(c, x, dim, c->args[3].b);
}

/* The median's index in a sorted row, whose NaNs are last. A NaN among the elements is
 * the median, the first one, unless NaNs are skipped. */
static int median_index(dt_tensor *out, const dt_tensor *x, int64_t dim, bool skips)
{
    const dt_arg index = dt_arg_tensor(out), one = dt_arg_scalar(dt_scalar_int(1)),
                 two = dt_arg_scalar(dt_scalar_int(2)), all = dt_arg_tensor(x);
    int64_t n = row_size(x, (int)dim);
    DT_LOCAL(number);
    DT_LOCAL(whole);
    if (dt_elementwise(DT_OP_eq, &number, DT_ARGS(all, all)) < 0 ||
        dt_reduce(DT_REDUCE_sum, out, &number, 1, &dim, true, -1, 0) < 0)
        return -1;
    if (skips)
        return dt_elementwise_into(DT_OP_maximum, out, DT_ARGS(index, one)) < 0 ||
                       dt_elementwise_into(DT_OP_sub, out, DT_ARGS(index, one)) < 0 ||
                       dt_elementwise_into(DT_OP_floor_divide, out,
                                           DT_ARGS(index, two)) < 0
                   ? -1
                   : 0;
    /* n becomes (n - 1) / 2, and smaller counts stay. */
    const dt_arg full = dt_arg_scalar(dt_scalar_int(n)),
                 middle = dt_arg_scalar(dt_scalar_int((n - 1) / 2));
    return dt_elementwise(DT_OP_eq, &whole, DT_ARGS(index, full)) < 0
               ? -1
               : dt_elementwise_into(DT_OP_where, out,
                                     DT_ARGS(dt_arg_tensor(&whole), middle, index));
}

static int median_along(dt_call *c, const dt_tensor *x, int64_t along_dim, bool keepdim,
                        bool skips)
{
    DT_LOCAL(all);
    DT_LOCAL(place);
    int dim = check_row(c->name, x, along_dim);
    if (dim < 0)
        return -1;
    int64_t middle = (row_size(x, dim) - 1) / 2;
    bool floats = x->ndim && dt_dtype_is_float((dt_dtype)x->dtype);
    dt_indexing at = dt_indexing_along(c->name, DT_INDEXING_GATHER, dim, &place);
    if (sort_rows(c->name, NULL, &all, x, floats ? -1 : middle + 1, dim, false) < 0)
        return -1;
    if (floats ? median_index(&place, x, dim, skips) < 0 ||
                     dt_index_read(c->out[1], &all, &at) < 0
               : take_element(c->out[1], &all, dim, middle) < 0)
        return -1;
    return take_values(c, x, dim, keepdim);
}

/* The median of all elements. Without elements: NaN, or the smallest integer. */
static int median(dt_call *c, bool skips)
{
    const dt_tensor *x = c->args[0].tensor;
    dt_dtype dtype = (dt_dtype)x->dtype;
    DT_LOCAL(flat);
    if (!x->numel) {
        int bits = 8 * (int)dt_dtype_size(dtype);
        int64_t least =
            dt_dtype_is_signed(dtype) ? (int64_t)(~(uint64_t)0 << (bits - 1)) : 0;
        return dt_full(c->name, c->out[0], dtype, 0, NULL, dt_tensor_device(x),
                       dt_dtype_is_float(dtype) ? dt_scalar_float((double)NAN)
                                                : dt_scalar_int(least));
    }
    return dt_view_reshape(&flat, x, 1, &x->numel) < 0
               ? -1
               : median_along(c, &flat, 0, false, skips);
}

/* --- where in order --- */

static int check_search(const char *op_name, const dt_tensor *sequence,
                        const dt_tensor *values, const dt_tensor *sorter)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    bool same = sequence->ndim == values->ndim;
    if (dt_check_real(op_name, DT_ERROR_NOT_IMPLEMENTED, sequence) ||
        dt_check_real(op_name, DT_ERROR_NOT_IMPLEMENTED, values))
        return -1;
    for (int d = 0; same && d < sequence->ndim - 1; d++)
        same = sequence->shape[d] == values->shape[d];
    if (!sequence->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the sequence has no dimension; give one of at least 1",
                       op_name);
    if (sequence->ndim != 1 && !same)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the sequence has shape %s, the values %s; give a sequence of one "
            "dimension, or of the values' sizes in all dimensions but the last",
            op_name, dt_shape_text(sequence->ndim, sequence->shape, has, sizeof has),
            dt_shape_text(values->ndim, values->shape, wants, sizeof wants));
    if (sorter &&
        !dt_shape_equal(sorter->ndim, sorter->shape, sequence->ndim, sequence->shape))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the sequence has shape %s, its sorter %s; give a sorter of the "
            "sequence's shape",
            op_name, dt_shape_text(sequence->ndim, sequence->shape, has, sizeof has),
            dt_shape_text(sorter->ndim, sorter->shape, wants, sizeof wants));
    if (sorter && sorter->dtype != DT_INT64)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the sorter is of type %s; give int64, as argsort() does",
                       op_name, dt_dtype_name((dt_dtype)sorter->dtype));
    if (dt_check_same_device(op_name, "the sequence", sequence, "the values", values))
        return -1;
    return sorter ? dt_check_same_device(op_name, "the sequence", sequence,
                                         "the sorter", sorter)
                  : 0;
}

/* The index at which to insert each of `values` into a sorted sequence of one
 * dimension, or into that of its row. A number becomes a tensor of the sequence's
 * dtype, or int64 or float64 if that cannot hold it. */
static int search(dt_call *c, const dt_tensor *sequence, const dt_value *value,
                  const dt_tensor *sorter, bool right, bool narrow)
{
    dt_device device = dt_tensor_device(sequence);
    const dt_tensor *values = value->tensor;
    dt_tensor *out = c->out[0];
    DT_LOCAL(own);
    DT_LOCAL(rows);
    DT_LOCAL(wanted);
    DT_LOCAL(order);
    if (!values) {
        dt_dtype dtype = dt_dtype_is_float((dt_dtype)sequence->dtype)
                             ? (dt_dtype)sequence->dtype
                         : value->scalar.kind == DT_KIND_FLOAT ? DT_FLOAT64
                                                               : DT_INT64;
        if (dt_full(c->name, &own, dtype, 0, NULL, device, value->scalar) < 0)
            return -1;
        values = &own;
    }
    if (check_search(c->name, sequence, values, sorter))
        return -1;
    dt_dtype meet =
        dt_dtype_promote((dt_dtype)sequence->dtype, (dt_dtype)values->dtype);
    meet = !dt_dtype_is_float(meet) ? DT_INT64
           : meet == DT_FLOAT64     ? DT_FLOAT64
                                    : DT_FLOAT32;
    if (dt_contiguous_as(&rows, sequence, meet, device) ||
        dt_contiguous_as(&wanted, values, meet, device) ||
        (sorter && dt_contiguous(&order, sorter)) ||
        dt_tensor_empty(c->name, out, DT_INT64, values->ndim, values->shape, device))
        return -1;
    if (out->numel) {
        bool one = sequence->ndim == 1;
        dt_search call = {.op_name = c->name,
                          .dtype = meet,
                          .right = right,
                          .n = sequence->shape[sequence->ndim - 1],
                          .m = one ? out->numel : values->shape[values->ndim - 1],
                          .sequence = dt_tensor_data(&rows),
                          .values = dt_tensor_data(&wanted),
                          .sorter = sorter ? dt_tensor_data(&order) : NULL,
                          .out = dt_tensor_data(out)};
        call.rows = out->numel / call.m;
        if (dt_tensor_use(&rows) || dt_tensor_use(&wanted) || dt_tensor_use(&order) ||
            dt_tensor_use(out) ||
            dt_backend_of(device)->search(dt_stream_current(device), &call))
            return -1;
    }
    return narrow ? dt_retype(out, DT_INT32) : 0;
}

static int searchsorted(dt_call *c)
{
    const char *side = c->args[4].text;
    bool right = c->args[3].b, on_right = side && !strcmp(side, "right");
    if (side && !on_right && strcmp(side, "left") != 0)
        return dt_fail(DT_ERROR_RUNTIME,
                       "searchsorted(): side is '%s'; give 'left' or 'right'", side);
    if (side && !on_right && right)
        return dt_fail(DT_ERROR_RUNTIME,
                       "searchsorted(): side='left' and right=True contradict each "
                       "other; give one of them");
    return search(c, c->args[0].tensor, &c->args[1], c->args[5].tensor,
                  right || on_right, c->args[2].b);
}

static int bucketize(dt_call *c)
{
    const dt_tensor *boundaries = c->args[1].tensor;
    if (boundaries->ndim != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "bucketize(): boundaries has %d dimensions; give one dimension",
                       boundaries->ndim);
    return search(c, boundaries, &c->args[0], NULL, c->args[3].b, c->args[2].b);
}

#include "tensor/ops/define.h"
#include "ops/functions/sort.def"
