/* What differs: in order, or each from the one before. */
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

/* The rows of t at index. */
static int read_rows(const char *what, dt_tensor *out, const dt_tensor *t,
                     const dt_tensor *index)
{
    dt_indexing at = dt_indexing_along(what, DT_INDEXING_ADVANCED, 0, index);
    return dt_index_read(out, t, &at);
}

/* Rows in lexicographic order, and where they were: by their last column first, each sort
 * leaving equal rows as they were. */
static int order_rows(const char *what, dt_tensor *ordered, dt_tensor *places,
                      const dt_tensor *rows)
{
    if (dt_arange(places, dt_scalar_int(0), dt_scalar_int(rows->shape[0]),
                  dt_scalar_int(1), DT_INT64, dt_tensor_device(rows)))
        return -1;
    for (int64_t c = rows->shape[1] - 1; c >= 0; c--) {
        DT_LOCAL(column);
        DT_LOCAL(keys);
        DT_LOCAL(order);
        DT_LOCAL(next);
        if (dt_view_select(&column, rows, 1, c) ||
            read_rows(what, &keys, &column, places) ||
            dt_sort(what, NULL, &order, &keys, -1, 0, false) ||
            read_rows(what, &next, places, &order))
            return -1;
        dt_tensor_move(places, &next);
    }
    return read_rows(what, ordered, rows, places);
}

/* Bools: the first row, and all that differ from the one before. */
static int mark_changes(const char *what, dt_tensor *change, const dt_tensor *rows)
{
    int64_t n = rows->shape[0], last = 1;
    DT_LOCAL(later);
    DT_LOCAL(earlier);
    DT_LOCAL(rest);
    DT_LOCAL(differs);
    DT_LOCAL(any);
    if (dt_full(what, change, DT_BOOL, 1, &n, dt_tensor_device(rows),
                dt_scalar_bool(true)))
        return -1;
    if (n < 2)
        return 0;
    if (dt_view_narrow(&later, rows, 0, 1, n - 1) ||
        dt_view_narrow(&earlier, rows, 0, 0, n - 1) ||
        dt_view_narrow(&rest, change, 0, 1, n - 1) ||
        dt_elementwise(DT_OP_ne, &differs,
                       DT_ARGS(dt_arg_tensor(&later), dt_arg_tensor(&earlier))))
        return -1;
    if (rows->ndim == 1)
        return dt_copy_into(what, &rest, &differs);
    return dt_reduce(DT_REDUCE_any, &any, &differs, 1, &last, false, -1, 0)
               ? -1
               : dt_copy_into(what, &rest, &any);
}

/* Where each row is among those that differ. places is empty where the rows were not
 * moved. */
static int make_inverse(const char *what, dt_tensor *out, const dt_tensor *change,
                        const dt_tensor *places, int ndim, const int64_t *shape)
{
    dt_indexing at = dt_indexing_along(what, DT_INDEXING_ADVANCED, 0, places);
    DT_LOCAL(group);
    DT_LOCAL(inverse);
    if (dt_cumulative(DT_SCAN_SUM, &group, NULL, change, 0, -1, false) ||
        dt_elementwise_into(
            DT_OP_sub, &group,
            DT_ARGS(dt_arg_tensor(&group), dt_arg_scalar(dt_scalar_int(1)))))
        return -1;
    if (!places->storage)
        return dt_view_shape(out, &group, ndim, shape);
    return dt_tensor_empty(what, &inverse, DT_INT64, 1, group.shape,
                           dt_tensor_device(&group)) ||
                   dt_index_write(DT_INDEX_WRITE, &inverse, &at, &group) ||
                   dt_view_shape(out, &inverse, ndim, shape)
               ? -1
               : 0;
}

/* How many of n rows follow from each start to the next. */
static int make_counts(const char *what, dt_tensor *out, const dt_tensor *starts,
                       int64_t n)
{
    int64_t m = starts->shape[0];
    DT_LOCAL(later);
    DT_LOCAL(most);
    if (dt_full(what, out, DT_INT64, 1, &m, dt_tensor_device(starts), dt_scalar_int(n)))
        return -1;
    if (m > 1 &&
        (dt_view_narrow(&later, starts, 0, 1, m - 1) ||
         dt_view_narrow(&most, out, 0, 0, m - 1) || dt_copy_into(what, &most, &later)))
        return -1;
    return dt_elementwise_into(DT_OP_sub, out,
                               DT_ARGS(dt_arg_tensor(out), dt_arg_tensor(starts)));
}

/* t with dimension `from` at place `to`, the others in their order. */
static int move_dim(dt_tensor *out, const dt_tensor *t, int from, int to)
{
    int64_t dims[DT_MAX_NDIM];
    int next = 0;
    for (int d = 0; d < t->ndim; d++) {
        if (next == from)
            next++;
        dims[d] = d == to ? from : next++;
    }
    return dt_view_permute(out, t, t->ndim, dims);
}

/* The slices of x along dim as rows. */
static int slices_as_rows(const char *what, dt_tensor *out, const dt_tensor *x, int dim)
{
    int64_t n = x->ndim ? x->shape[dim] : 1, others = 1;
    DT_LOCAL(turned);
    for (int d = 0; d < x->ndim; d++)
        others *= d == dim ? 1 : x->shape[d];
    if (!others)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: another dimension than %d has size 0, so its parts hold "
                       "nothing to compare; give that dimension, or none",
                       what, dim);
    const int64_t shape[] = {n, n ? others : 0};
    return move_dim(&turned, x, dim, 0) ? -1 : dt_view_reshape(out, &turned, 2, shape);
}

/* Rows as slices like those of x along dim. */
static int rows_as_slices(dt_tensor *out, const dt_tensor *rows, const dt_tensor *x,
                          int dim)
{
    int64_t shape[DT_MAX_NDIM];
    DT_LOCAL(shaped);
    DT_LOCAL(turned);
    for (int d = 0; d < x->ndim; d++)
        if (d != dim)
            shape[d < dim ? d + 1 : d] = x->shape[d];
    shape[0] = rows->shape[0];
    return dt_view_shape(&shaped, rows, x->ndim ? x->ndim : 1, shape) ||
                   move_dim(&turned, &shaped, 0, dim) || dt_contiguous(out, &turned)
               ? -1
               : 0;
}

/* The distinct elements of x or, where dim is given, slices along it; sorted or, if
 * consecutive, those that differ from the one before. Synchronizes with a GPU: the
 * result's size depends on x. */
static int unique(dt_call *c, bool inverse, bool counts, const dt_value *dim,
                  bool consecutive)
{
    const char *what = c->name;
    const dt_tensor *x = c->args[0].tensor;
    bool along = dim->given;
    int at = along ? dt_shape_wrap_dim(what, dim->i, x->ndim) : 0;
    DT_LOCAL(rows);
    DT_LOCAL(ordered);
    DT_LOCAL(places);
    DT_LOCAL(change);
    DT_LOCAL(found);
    DT_LOCAL(starts);
    DT_LOCAL(distinct);
    if (at < 0 || (along ? slices_as_rows(what, &rows, x, at)
                         : dt_view_reshape(&rows, x, 1, &x->numel)))
        return -1;
    if (consecutive)
        dt_tensor_alias(&ordered, &rows);
    else if (along ? order_rows(what, &ordered, &places, &rows)
                   : dt_sort(what, &ordered, &places, &rows, -1, 0, false))
        return -1;
    int64_t n = rows.shape[0];
    if (mark_changes(what, &change, &ordered) || dt_nonzero(&found, &change) ||
        dt_view_shape(&starts, &found, 1, found.shape) ||
        read_rows(what, along ? &distinct : c->out[0], &ordered, &starts) ||
        (along && rows_as_slices(c->out[0], &distinct, x, at)))
        return -1;
    if (inverse && make_inverse(what, c->out[1], &change, &places, along ? 1 : x->ndim,
                                along ? &n : x->shape))
        return -1;
    return counts ? make_counts(what, c->out[2], &starts, n) : 0;
}

int dt_unique_forward(dt_call *c)
{
    if (c->args[4].given)
        c->node = "UniqueDimBackward0";
    return unique(c, c->args[2].b, c->args[3].b, &c->args[4], false);
}

int dt_unique_consecutive_forward(dt_call *c)
{
    return unique(c, c->args[1].b, c->args[2].b, &c->args[3], true);
}
