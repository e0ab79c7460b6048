/* What differs: in order, or each from the one before. */
#include "device/stream.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/reduce.h"
#include "tensor/ops/scan.h"
#include "tensor/ops/index.h"
#include "tensor/call.h"
#include "tensor/ops/sort.h"
#include "tensor/view.h"

/* What a call makes on its way. */
typedef struct work {
    dt_tensor rows;    /* the elements, or the parts as rows, in the order of x */
    dt_tensor ordered; /* the same in order */
    dt_tensor places;  /* where they were; holds nothing: they are in order already */
    dt_tensor change;  /* bools: what differs from the one before */
    dt_tensor group;   /* which of those that differ each is */
    dt_tensor starts;  /* the first of each group */
    dt_tensor swap;
} work;

static dt_indexing rows_at(const char *what, const dt_tensor *index)
{
    dt_indexing choice = {.what = what,
                          .code = DT_ERROR_INDEX,
                          .form = DT_INDEXING_ADVANCED,
                          .count = 1,
                          .indices = {index}};
    return choice;
}

/* t becomes what work has in swap. */
static void take_swap(work *w, dt_tensor *t)
{
    dt_tensor_clear(t);
    *t = w->swap;
    w->swap.storage = NULL;
}

/* Rows in lexicographic order: by their last column first, each sort leaving equal rows
 * as they were. */
static int order_rows(const char *what, work *w)
{
    dt_tensor column, keys, order;
    int64_t n = w->rows.shape[0];
    column.storage = keys.storage = order.storage = NULL;
    if (dt_arange(&w->places, dt_scalar_int(0), dt_scalar_int(n), dt_scalar_int(1),
                  DT_INT64, dt_tensor_device(&w->rows)))
        return -1;
    for (int64_t c = w->rows.shape[1] - 1; c >= 0; c--) {
        dt_indexing at = rows_at(what, &w->places), again = rows_at(what, &order);
        int status = dt_view_select(&column, &w->rows, 1, c);
        if (!status)
            status = dt_index_read(&keys, &column, &at);
        if (!status)
            status = dt_sort(what, NULL, &order, &keys, -1, 0, false);
        if (!status)
            status = dt_index_read(&w->swap, &w->places, &again);
        dt_tensor_clear(&column);
        dt_tensor_clear(&keys);
        dt_tensor_clear(&order);
        if (status)
            return -1;
        take_swap(w, &w->places);
    }
    dt_indexing all = rows_at(what, &w->places);
    return dt_index_read(&w->ordered, &w->rows, &all);
}

/* Fills change: the first, and all that differ from the one before. */
static int mark_changes(const char *what, work *w)
{
    const dt_tensor *t = &w->ordered;
    dt_device device = dt_tensor_device(t);
    int64_t n = t->shape[0], last = 1;
    dt_tensor later, earlier, rest;
    later.storage = earlier.storage = rest.storage = NULL;
    if (dt_full(what, &w->change, DT_BOOL, 1, &n, device, dt_scalar_bool(true)))
        return -1;
    if (n < 2)
        return 0;
    int status = -1;
    if (dt_view_narrow(&later, t, 0, 1, n - 1) ||
        dt_view_narrow(&earlier, t, 0, 0, n - 1) ||
        dt_view_narrow(&rest, &w->change, 0, 1, n - 1))
        goto done;
    if (t->ndim == 1) {
        status = dt_elementwise_into(
            DT_OP_ne, &rest, DT_ARGS(dt_arg_tensor(&later), dt_arg_tensor(&earlier)));
    } else if (!dt_elementwise(
                   DT_OP_ne, &w->swap,
                   DT_ARGS(dt_arg_tensor(&later), dt_arg_tensor(&earlier)))) {
        dt_tensor any;
        status = dt_reduce(DT_REDUCE_any, &any, &w->swap, 1, &last, false, -1, 0);
        dt_tensor_clear(&w->swap);
        if (!status) {
            status = dt_copy_into(what, &rest, &any);
            dt_tensor_clear(&any);
        }
    }
done:
    dt_tensor_clear(&later);
    dt_tensor_clear(&earlier);
    dt_tensor_clear(&rest);
    return status;
}

/* Where each element of x is among those that differ. */
static int make_inverse(const char *what, dt_tensor *out, work *w, int ndim,
                        const int64_t *shape)
{
    if (w->places.storage) {
        dt_indexing at = rows_at(what, &w->places);
        if (dt_tensor_empty(what, &w->swap, DT_INT64, 1, w->group.shape,
                            dt_tensor_device(&w->group)) ||
            dt_index_write(DT_INDEX_WRITE, &w->swap, &at, &w->group))
            return -1;
        take_swap(w, &w->group);
    }
    return dt_view_shape(out, &w->group, ndim, shape);
}

/* How many follow from each start to the next. */
static int make_counts(const char *what, dt_tensor *out, work *w)
{
    dt_tensor later, most;
    int64_t m = w->starts.shape[0];
    later.storage = most.storage = NULL;
    dt_device device = dt_tensor_device(&w->starts);
    int status =
        dt_full(what, out, DT_INT64, 1, &m, device, dt_scalar_int(w->ordered.shape[0]));
    if (!status && m > 1) {
        status = dt_view_narrow(&later, &w->starts, 0, 1, m - 1);
        if (!status)
            status = dt_view_narrow(&most, out, 0, 0, m - 1);
        if (!status)
            status = dt_copy_into(what, &most, &later);
    }
    if (!status && m)
        status = dt_elementwise_into(
            DT_OP_sub, out, DT_ARGS(dt_arg_tensor(out), dt_arg_tensor(&w->starts)));
    dt_tensor_clear(&later);
    dt_tensor_clear(&most);
    if (status)
        dt_tensor_clear(out);
    return status;
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

/* The elements of x, or its parts along dim, as rows. */
static int make_rows(const char *what, work *w, const dt_tensor *x, bool has_dim,
                     int dim)
{
    dt_tensor turned;
    int64_t flat = x->numel, both[2];
    if (!has_dim)
        return dt_view_reshape(&w->rows, x, 1, &flat);
    if (move_dim(&turned, x, dim, 0))
        return -1;
    both[0] = x->ndim ? x->shape[dim] : 1;
    both[1] = both[0] ? x->numel / both[0] : 0;
    if (!x->numel) {
        bool fits = x->ndim && !x->shape[dim];
        for (int d = 0; fits && d < x->ndim; d++)
            fits = d == dim || x->shape[d];
        if (!fits) {
            dt_tensor_clear(&turned);
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: another dimension than %d has size 0, so its parts hold "
                "nothing to compare; give that dimension, or none",
                what, dim);
        }
    }
    int status = dt_view_reshape(&w->rows, &turned, 2, both);
    dt_tensor_clear(&turned);
    return status;
}

/* The rows at starts, in x's shape. */
static int make_parts(const char *what, dt_tensor *out, work *w, const dt_tensor *x,
                      bool has_dim, int dim)
{
    dt_indexing at = rows_at(what, &w->starts);
    if (!has_dim)
        return dt_index_read(out, &w->ordered, &at);
    dt_tensor chosen, shaped, turned;
    int64_t shape[DT_MAX_NDIM];
    if (dt_index_read(&chosen, &w->ordered, &at))
        return -1;
    for (int d = 0; d < x->ndim; d++)
        if (d != dim)
            shape[d < dim ? d + 1 : d] = x->shape[d];
    shape[0] = w->starts.shape[0];
    int status = dt_view_shape(&shaped, &chosen, x->ndim ? x->ndim : 1, shape);
    dt_tensor_clear(&chosen);
    if (status)
        return -1;
    status = move_dim(&turned, &shaped, 0, dim);
    dt_tensor_clear(&shaped);
    if (status)
        return -1;
    status = dt_contiguous(out, &turned);
    dt_tensor_clear(&turned);
    return status;
}

int dt_unique(const char *what, dt_tensor *out, dt_tensor *inverse, dt_tensor *counts,
              const dt_tensor *x, bool has_dim, int64_t dim, bool consecutive)
{
    work w = {.rows.storage = NULL};
    dt_tensor found;
    int status = -1, at = has_dim ? dt_shape_wrap_dim(what, dim, x->ndim) : 0;
    out->storage = found.storage = NULL;
    if (inverse)
        inverse->storage = NULL;
    if (counts)
        counts->storage = NULL;
    if (at < 0 || make_rows(what, &w, x, has_dim, at))
        goto done;
    if (consecutive)
        dt_tensor_alias(&w.ordered, &w.rows);
    else if (has_dim ? order_rows(what, &w)
                     : dt_sort(what, &w.ordered, &w.places, &w.rows, -1, 0, false))
        goto done;
    int64_t n = w.rows.shape[0], flat;
    if (mark_changes(what, &w) || dt_nonzero(&found, &w.change))
        goto done;
    flat = found.shape[0];
    if (dt_view_shape(&w.starts, &found, 1, &flat) ||
        make_parts(what, out, &w, x, has_dim, at))
        goto done;
    if (inverse &&
        (dt_cumulative(DT_SCAN_SUM, &w.group, NULL, &w.change, 0, -1, false) ||
         dt_elementwise_into(
             DT_OP_sub, &w.group,
             DT_ARGS(dt_arg_tensor(&w.group), dt_arg_scalar(dt_scalar_int(1)))) ||
         make_inverse(what, inverse, &w, has_dim ? 1 : x->ndim,
                      has_dim ? &n : x->shape)))
        goto done;
    if (counts && make_counts(what, counts, &w))
        goto done;
    status = 0;
done:
    dt_tensor_clear(&w.rows);
    dt_tensor_clear(&w.ordered);
    dt_tensor_clear(&w.places);
    dt_tensor_clear(&w.change);
    dt_tensor_clear(&w.group);
    dt_tensor_clear(&w.starts);
    dt_tensor_clear(&w.swap);
    dt_tensor_clear(&found);
    if (status) {
        dt_tensor_clear(out);
        if (inverse)
            dt_tensor_clear(inverse);
        if (counts)
            dt_tensor_clear(counts);
    }
    return status;
}

/* --- the rows of ops/functions/sort.def --- */

int dt_unique_forward(dt_call *c)
{
    if (c->args[4].given)
        c->node = "UniqueDimBackward0";
    return dt_unique(c->name, c->out[0], c->args[2].b ? c->out[1] : NULL,
                     c->args[3].b ? c->out[2] : NULL, c->args[0].tensor,
                     c->args[4].given, c->args[4].i, false);
}

int dt_unique_consecutive_forward(dt_call *c)
{
    return dt_unique(c->name, c->out[0], c->args[1].b ? c->out[1] : NULL,
                     c->args[2].b ? c->out[2] : NULL, c->args[0].tensor,
                     c->args[3].given, c->args[3].i, true);
}
