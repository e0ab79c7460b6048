/* Elements in order: their gradients go back to where they were. */
#include "autograd/recorded.h"
#include "autograd/temporaries.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/reduce.h"
#include "tensor/ops/sort.h"

/* Of x, whose places along dim the node has saved. */
typedef struct order_data {
    int dim;
    bool dropped; /* the results lack dim */
    int ndim;
    int64_t shape[DT_MAX_NDIM];
} order_data;

static dt_indexing along(const char *what, int dim, const dt_tensor *index)
{
    dt_indexing choice = {.what = what,
                          .code = DT_ERROR_RUNTIME,
                          .form = DT_INDEXING_GATHER,
                          .count = 1,
                          .dims = {dim},
                          .indices = {index}};
    return choice;
}

static int order_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                       dt_tensor **into)
{
    const order_data *data = node->data;
    dt_tensor *g = gradients[0];
    if (!g || !dt_node_wants(node, 0))
        return 0;
    dt_tensor *index = dt_node_saved(node, 0, scope), *out = dt_scope_slot(scope);
    if (!index || !out)
        return -1;
    if (data->dropped) {
        dt_tensor *whole = dt_scope_slot(scope), *places = dt_scope_slot(scope);
        if (!whole || !places || dt_recorded_unsqueeze(whole, g, data->dim) < 0 ||
            dt_view_unsqueeze(places, index, data->dim) < 0)
            return -1;
        g = whole;
        index = places;
    }
    if (dt_full(node->name, out, (dt_dtype)g->dtype, data->ndim, data->shape,
                dt_tensor_device(g), dt_scalar_float(0)) < 0 ||
        DT_CALL_INTO(scatter, out, dt_value_int(data->dim), dt_value_tensor(index),
                     dt_value_tensor(g)) < 0)
        return -1;
    into[0] = out;
    return 0;
}
static const dt_node_type order_type = {order_apply, NULL};

/* Makes values, taken from x at indices along dim, a result of x. On failure both are
 * cleared. */
static int record(const char *name, dt_tensor *values, dt_tensor *indices,
                  const dt_tensor *x, int dim, bool dropped)
{
    if (!dt_recording(x))
        return 0;
    dt_node *node = dt_record_node(&order_type, name, 1, &x, 1, 1, sizeof(order_data));
    if (node) {
        order_data *data = node->data;
        data->dim = dim;
        data->dropped = dropped && x->ndim;
        data->ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            data->shape[d] = x->shape[d];
        dt_node_save(node, 0, indices, -1);
    }
    if (dt_record_steal(values, node) == 0)
        return 0;
    dt_tensor_clear(indices);
    return -1;
}

int dt_recorded_sort(const char *what, const char *name, dt_tensor *values,
                     dt_tensor *indices, const dt_tensor *x, int64_t k, int64_t dim,
                     bool descending)
{
    if (dt_sort(what, values, indices, x, k, dim, descending) < 0)
        return -1;
    return record(name, values, indices, x, dt_shape_wrap_dim(what, dim, x->ndim),
                  false);
}

/* --- one of each row --- */

static int drop_dim(dt_tensor *t, int dim)
{
    dt_tensor old = *t;
    int64_t dims[] = {dim};
    int status = dt_view_squeeze(t, &old, 1, dims);
    dt_tensor_clear(&old);
    return status;
}

/* The elements at indices, which still have dim as size 1. Takes indices over on
 * failure. */
static int pick(const char *what, const char *name, dt_tensor *values,
                dt_tensor *indices, const dt_tensor *x, int dim, bool keepdim)
{
    dt_indexing choice = along(what, dim, indices);
    values->storage = NULL;
    if (dt_index_read(values, x, &choice) < 0)
        goto fail;
    if (!keepdim && x->ndim &&
        (drop_dim(values, dim) < 0 || drop_dim(indices, dim) < 0))
        goto fail;
    return record(name, values, indices, x, dim, !keepdim);
fail:
    dt_tensor_clear(values);
    dt_tensor_clear(indices);
    return -1;
}

/* Element i of each row, dim as size 1; a copy, so that the rows can go. */
static int one_of(dt_tensor *out, const dt_tensor *rows, int dim, int64_t i)
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

static int check_row(const char *what, const dt_tensor *x, int dim)
{
    if (x->dtype == DT_BOOL)
        return dt_fail(
            DT_ERROR_NOT_IMPLEMENTED,
            "%s: not defined for bools; convert them first, e.g. with .int()", what);
    if (x->ndim && !x->shape[dim])
        return dt_fail(
            DT_ERROR_INDEX,
            "%s: dimension %d has size 0, so there is nothing to choose from; "
            "give a dimension that has elements",
            what, dim);
    return 0;
}

int dt_recorded_kth(dt_tensor *values, dt_tensor *indices, const dt_tensor *x,
                    int64_t k, int64_t dim, bool keepdim)
{
    const char *what = "kthvalue";
    dt_tensor all;
    values->storage = indices->storage = NULL;
    int at = dt_shape_wrap_dim(what, dim, x->ndim);
    if (at < 0 || check_row(what, x, at) < 0)
        return -1;
    int64_t n = x->ndim ? x->shape[at] : 1;
    if (k < 1 || k > n)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "kthvalue: k is %lld, and dimension %d has %lld elements; give k "
            "from 1 to that",
            (long long)k, at, (long long)n);
    if (dt_sort(what, NULL, &all, x, k, at, false) < 0)
        return -1;
    int status = one_of(indices, &all, at, k - 1);
    dt_tensor_clear(&all);
    return status < 0
               ? -1
               : pick(what, "KthvalueBackward0", values, indices, x, at, keepdim);
}

/* How many elements of each row are no NaN, dim as size 1. */
static int count_numbers(dt_tensor *out, const dt_tensor *x, int64_t dim)
{
    dt_tensor number;
    if (dt_binary(DT_BINARY_eq, &number, dt_arg_tensor(x), dt_arg_tensor(x)) < 0)
        return -1;
    int status = dt_reduce(DT_REDUCE_sum, out, &number, 1, &dim, true, -1, 0);
    dt_tensor_clear(&number);
    return status;
}

/* Where in a row in order, whose NaNs are last, the median is: among all, where one NaN
 * makes it a NaN, the first; or among the numbers. */
static int middle(dt_tensor *out, const dt_tensor *x, int dim, bool skips)
{
    dt_scope scope;
    dt_tensor count;
    int64_t n = x->ndim ? x->shape[dim] : 1;
    if (count_numbers(&count, x, dim) < 0)
        return -1;
    dt_scope_begin(&scope);
    dt_arg N = dt_arg_tensor(&count), two = dt_arg_scalar(dt_scalar_int(2));
    dt_arg one = dt_arg_scalar(dt_scalar_int(1)), result;
    if (skips) {
        dt_arg most = dt_scope_binary(&scope, DT_BINARY_maximum, N, one);
        result = dt_scope_binary(&scope, DT_BINARY_sub, most, one);
        result = dt_scope_binary(&scope, DT_BINARY_floor_divide, result, two);
    } else {
        dt_arg whole =
            dt_scope_binary(&scope, DT_BINARY_eq, N, dt_arg_scalar(dt_scalar_int(n)));
        result =
            dt_scope_where(&scope, whole, dt_arg_scalar(dt_scalar_int((n - 1) / 2)), N);
    }
    dt_tensor *found = dt_scope_tensor(&scope, result, &count);
    if (found)
        dt_tensor_alias(out, found);
    dt_scope_end(&scope);
    dt_tensor_clear(&count);
    return found ? 0 : -1;
}

int dt_recorded_median(const char *what, const char *name, dt_tensor *values,
                       dt_tensor *indices, const dt_tensor *x, int64_t dim,
                       bool keepdim, bool skips)
{
    dt_tensor all, place;
    values->storage = indices->storage = place.storage = NULL;
    int at = dt_shape_wrap_dim(what, dim, x->ndim);
    if (at < 0 || check_row(what, x, at) < 0)
        return -1;
    int64_t n = x->ndim ? x->shape[at] : 1;
    bool floats = dt_dtype_is_float((dt_dtype)x->dtype);
    if (dt_sort(what, NULL, &all, x, floats ? -1 : (n - 1) / 2 + 1, at, false) < 0)
        return -1;
    int status;
    if (x->ndim && floats) {
        status = middle(&place, x, at, skips);
        if (!status) {
            dt_indexing choice = along(what, at, &place);
            status = dt_index_read(indices, &all, &choice);
        }
    } else {
        status = one_of(indices, &all, at, (n - 1) / 2);
    }
    dt_tensor_clear(&place);
    dt_tensor_clear(&all);
    return status < 0 ? -1 : pick(what, name, values, indices, x, at, keepdim);
}

/* --- what differs --- */

static int none_apply(dt_node *node, dt_scope *scope, dt_tensor *const *gradients,
                      dt_tensor **into)
{
    (void)scope;
    (void)gradients;
    (void)into;
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "backward: %s has no derivative; call unique() on x.detach()",
                   node->name);
}
static const dt_node_type none_type = {none_apply, NULL};

int dt_recorded_unique(const char *what, dt_tensor *out, dt_tensor *inverse,
                       dt_tensor *counts, const dt_tensor *x, bool has_dim, int64_t dim,
                       bool consecutive)
{
    if (dt_unique(what, out, inverse, counts, x, has_dim, dim, consecutive) < 0)
        return -1;
    if (!dt_recording(x))
        return 0;
    const char *name = consecutive ? "UniqueConsecutiveBackward0"
                       : has_dim   ? "UniqueDimBackward0"
                                   : "Unique2Backward0";
    if (dt_record_steal(out, dt_record_node(&none_type, name, 1, &x, 0, 1, 0)) == 0)
        return 0;
    if (inverse)
        dt_tensor_clear(inverse);
    if (counts)
        dt_tensor_clear(counts);
    return -1;
}
