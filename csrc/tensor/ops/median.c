/* kthvalue, median and nanmedian: one element of each sorted row. */
#include <math.h>

#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/index.h"
#include "tensor/ops/reduce.h"
#include "tensor/ops/sort.h"
#include "tensor/view.h"

static dt_indexing along(const char *what, int dim, const dt_tensor *index)
{
    return (dt_indexing){.what = what,
                         .code = DT_ERROR_RUNTIME,
                         .form = DT_INDEXING_GATHER,
                         .count = 1,
                         .dims = {dim},
                         .indices = {index}};
}

static int64_t row_size(const dt_tensor *x, int dim)
{
    return x->ndim ? x->shape[dim] : 1;
}

/* The dimension, checked; -1 after dt_fail. */
static int check_row(const char *what, const dt_tensor *x, int64_t dim)
{
    int wrapped = dt_shape_wrap_dim(what, dim, x->ndim);
    if (wrapped < 0)
        return -1;
    if (x->dtype == DT_BOOL)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "%s: not defined for dtype bool; convert it first, for example "
                       "with .int()",
                       what);
    if (!row_size(x, wrapped))
        return dt_fail(DT_ERROR_INDEX,
                       "%s: dimension %d has size 0, so it has no element to return; "
                       "give a dimension that has elements",
                       what, wrapped);
    return wrapped;
}

/* Element i of each row, with size 1 for dim; a copy. */
static int take_element(dt_tensor *out, const dt_tensor *rows, int dim, int64_t i)
{
    dt_tensor part;
    if (!rows->ndim) {
        dt_tensor_alias(out, rows);
        return 0;
    }
    if (dt_view_narrow(&part, rows, dim, i, 1) < 0)
        return -1;
    int status = dt_to(out, &part, DT_INT64, dt_tensor_device(rows));
    dt_tensor_clear(&part);
    return status;
}

static int drop_dim(dt_tensor *t, int64_t dim)
{
    dt_tensor old = *t;
    int status = dt_view_squeeze(t, &old, 1, &dim);
    dt_tensor_clear(&old);
    return status;
}

/* The elements at indices, which have size 1 for dim. */
static int take_values(const char *what, dt_tensor *values, dt_tensor *indices,
                       const dt_tensor *x, int dim, bool keepdim)
{
    dt_indexing at = along(what, dim, indices);
    if (dt_index_read(values, x, &at) < 0)
        return -1;
    if (keepdim || !x->ndim)
        return 0;
    return drop_dim(values, dim) < 0 || drop_dim(indices, dim) < 0 ? -1 : 0;
}

int dt_kthvalue_forward(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor;
    int64_t k = c->args[1].i;
    int dim = check_row(c->name, x, c->args[2].i);
    dt_tensor all;
    if (dim < 0)
        return -1;
    if (k < 1 || k > row_size(x, dim))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "kthvalue: k is %lld, and dimension %d has %lld elements; give k "
            "from 1 to that",
            (long long)k, dim, (long long)row_size(x, dim));
    if (dt_sort(c->name, NULL, &all, x, k, dim, false) < 0)
        return -1;
    int status = take_element(c->out[1], &all, dim, k - 1);
    dt_tensor_clear(&all);
    return status < 0
               ? -1
               : take_values(c->name, c->out[0], c->out[1], x, dim, c->args[3].b);
}

/* --- medians --- */

static int update(dt_elementwise_op op, dt_tensor *t, int64_t number)
{
    return dt_elementwise_into(
        op, t, DT_ARGS(dt_arg_tensor(t), dt_arg_scalar(dt_scalar_int(number))));
}

/* The number of elements of each row that are not NaN, with size 1 for dim. */
static int count_numbers(dt_tensor *out, const dt_tensor *x, int64_t dim)
{
    dt_tensor number;
    if (dt_elementwise(DT_OP_eq, &number, DT_ARGS(dt_arg_tensor(x), dt_arg_tensor(x))) <
        0)
        return -1;
    int status = dt_reduce(DT_REDUCE_sum, out, &number, 1, &dim, true, -1, 0);
    dt_tensor_clear(&number);
    return status;
}

/* The median's index in a sorted row, whose NaNs are last. A NaN among the elements is
 * the median, the first one, unless NaNs are skipped. */
static int median_index(dt_tensor *out, const dt_tensor *x, int dim, bool skips)
{
    int64_t n = row_size(x, dim);
    if (count_numbers(out, x, dim) < 0)
        return -1;
    if (skips)
        return update(DT_OP_maximum, out, 1) < 0 || update(DT_OP_sub, out, 1) < 0 ||
                       update(DT_OP_floor_divide, out, 2) < 0
                   ? -1
                   : 0;
    /* n becomes (n - 1) / 2, and smaller counts stay. */
    dt_tensor whole, shift;
    if (dt_elementwise(DT_OP_eq, &whole,
                       DT_ARGS(dt_arg_tensor(out), dt_arg_scalar(dt_scalar_int(n)))) <
        0)
        return -1;
    int status = dt_elementwise(
        DT_OP_mul, &shift,
        DT_ARGS(dt_arg_tensor(&whole), dt_arg_scalar(dt_scalar_int((n - 1) / 2 - n))));
    dt_tensor_clear(&whole);
    if (status < 0)
        return -1;
    status = dt_elementwise_into(DT_OP_add, out,
                                 DT_ARGS(dt_arg_tensor(out), dt_arg_tensor(&shift)));
    dt_tensor_clear(&shift);
    return status;
}

static int median(dt_call *c, const dt_tensor *x, int64_t along_dim, bool keepdim,
                  bool skips)
{
    dt_tensor all, place = {.storage = NULL};
    int dim = check_row(c->name, x, along_dim), status;
    if (dim < 0)
        return -1;
    int64_t middle = (row_size(x, dim) - 1) / 2;
    bool floats = x->ndim && dt_dtype_is_float((dt_dtype)x->dtype);
    if (dt_sort(c->name, NULL, &all, x, floats ? -1 : middle + 1, dim, false) < 0)
        return -1;
    if (floats) {
        status = median_index(&place, x, dim, skips);
        dt_indexing at = along(c->name, dim, &place);
        if (!status)
            status = dt_index_read(c->out[1], &all, &at);
    } else {
        status = take_element(c->out[1], &all, dim, middle);
    }
    dt_tensor_clear(&place);
    dt_tensor_clear(&all);
    return status < 0 ? -1
                      : take_values(c->name, c->out[0], c->out[1], x, dim, keepdim);
}

/* Of all elements. Without elements: NaN, or the smallest integer. */
static int median_of_all(dt_call *c, bool skips)
{
    const dt_tensor *x = c->args[0].tensor;
    if (!x->numel) {
        int bits = 8 * (int)dt_dtype_size((dt_dtype)x->dtype);
        int64_t least = x->dtype == DT_UINT8 || x->dtype == DT_BOOL
                            ? 0
                            : (int64_t)(~(uint64_t)0 << (bits - 1));
        return dt_full(
            c->name, c->out[0], (dt_dtype)x->dtype, 0, NULL, dt_tensor_device(x),
            dt_dtype_is_float((dt_dtype)x->dtype) ? dt_scalar_float((double)NAN)
                                                  : dt_scalar_int(least));
    }
    dt_tensor flat;
    if (dt_view_reshape(&flat, x, 1, &x->numel) < 0)
        return -1;
    int status = median(c, &flat, 0, false, skips);
    dt_tensor_clear(&flat);
    return status;
}

int dt_median_forward(dt_call *c)
{
    return median_of_all(c, false);
}

int dt_nanmedian_forward(dt_call *c)
{
    return median_of_all(c, true);
}

int dt_median_along_forward(dt_call *c)
{
    return median(c, c->args[0].tensor, c->args[1].i, c->args[2].b, false);
}

int dt_nanmedian_along_forward(dt_call *c)
{
    return median(c, c->args[0].tensor, c->args[1].i, c->args[2].b, true);
}
