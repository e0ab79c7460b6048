#include "tensor/ops/sort.h"

#include <inttypes.h>
#include <string.h>

#include "device/stream.h"
#include "tensor/call.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/create.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/scan.h"
#include "tensor/ops/index.h"
#include "tensor/view.h"

/* --- rows in order --- */

/* x with dim as its last dimension, row-major. */
static int as_rows(dt_tensor *out, const dt_tensor *x, int dim)
{
    dt_tensor turned;
    if (dt_view_transpose(&turned, x, dim, x->ndim ? x->ndim - 1 : 0))
        return -1;
    int status = dt_contiguous(out, &turned);
    dt_tensor_clear(&turned);
    return status;
}

/* t, whose last dimension is what dim was, back in order, row-major. Takes t over. */
static int from_rows(dt_tensor *out, dt_tensor *t, int dim)
{
    dt_tensor turned;
    int status = dt_view_transpose(&turned, t, dim, t->ndim ? t->ndim - 1 : 0);
    if (!status) {
        status = dt_contiguous(out, &turned);
        dt_tensor_clear(&turned);
    }
    dt_tensor_clear(t);
    return status;
}

int dt_sort(const char *what, dt_tensor *values, dt_tensor *indices, const dt_tensor *x,
            int64_t k, int64_t dim, bool descending)
{
    dt_tensor rows, ordered, places;
    int64_t shape[DT_MAX_NDIM];
    dt_device device = dt_tensor_device(x);
    rows.storage = ordered.storage = places.storage = indices->storage = NULL;
    if (values)
        values->storage = NULL;
    int at = dt_shape_wrap_dim(what, dim, x->ndim);
    if (at < 0)
        return -1;
    int64_t n = x->ndim ? x->shape[at] : 1;
    if (k < -1 || k > n)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: k is %" PRId64 ", and dimension %d has %" PRId64
                       " elements; give k from 0 to that",
                       what, k, at, n);
    if (as_rows(&rows, x, at))
        goto fail;
    for (int d = 0; d < rows.ndim; d++)
        shape[d] = rows.shape[d];
    if (k >= 0 && rows.ndim)
        shape[rows.ndim - 1] = k;
    k = k < 0 ? n : k;
    if (dt_tensor_empty(what, &places, DT_INT64, rows.ndim, shape, device) ||
        (values &&
         dt_tensor_empty(what, &ordered, (dt_dtype)x->dtype, rows.ndim, shape, device)))
        goto fail;
    if (places.numel && k) {
        dt_sorting call = {.dtype = (dt_dtype)x->dtype,
                           .descending = descending,
                           .rows = places.numel / k,
                           .n = n,
                           .k = k,
                           .x = dt_tensor_data(&rows),
                           .values = values ? dt_tensor_data(&ordered) : NULL,
                           .index = dt_tensor_data(&places)};
        if (dt_storage_use(rows.storage) || dt_storage_use(places.storage) ||
            (values && dt_storage_use(ordered.storage)) ||
            dt_backend_of(device)->sort(dt_stream_current(device), &call))
            goto fail;
    }
    dt_tensor_clear(&rows);
    if ((values && from_rows(values, &ordered, at)) || from_rows(indices, &places, at))
        goto fail;
    return 0;
fail:
    dt_tensor_clear(&rows);
    dt_tensor_clear(&ordered);
    dt_tensor_clear(&places);
    if (values)
        dt_tensor_clear(values);
    return -1;
}

/* --- where in order --- */

/* t, row-major, in the type of search. */
static int searchable(dt_tensor *out, const dt_tensor *t, dt_dtype dtype)
{
    dt_tensor converted;
    if (t->dtype == dtype)
        return dt_contiguous(out, t);
    if (dt_to(&converted, t, dtype, dt_tensor_device(t)))
        return -1;
    int status = dt_contiguous(out, &converted);
    dt_tensor_clear(&converted);
    return status;
}

static int check_search(const char *what, const dt_tensor *sequence,
                        const dt_tensor *values, const dt_tensor *sorter)
{
    char has[DT_SHAPE_TEXT], wants[DT_SHAPE_TEXT];
    bool same = sequence->ndim == values->ndim;
    for (int d = 0; same && d < sequence->ndim - 1; d++)
        same = sequence->shape[d] == values->shape[d];
    if (!sequence->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the sequence has no dimension; give one of at least 1",
                       what);
    if (sequence->ndim != 1 && !same)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the sequence has shape %s, the values %s; give a sequence of one "
            "dimension, or of the values' sizes in all dimensions but the last",
            what, dt_shape_text(sequence->ndim, sequence->shape, has, sizeof has),
            dt_shape_text(values->ndim, values->shape, wants, sizeof wants));
    if (sorter &&
        !dt_shape_equal(sorter->ndim, sorter->shape, sequence->ndim, sequence->shape))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: the sequence has shape %s, its sorter %s; give a sorter of the "
            "sequence's shape",
            what, dt_shape_text(sequence->ndim, sequence->shape, has, sizeof has),
            dt_shape_text(sorter->ndim, sorter->shape, wants, sizeof wants));
    if (sorter && sorter->dtype != DT_INT64)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the sorter is of type %s; give int64, as argsort() does",
                       what, dt_dtype_name((dt_dtype)sorter->dtype));
    if (dt_check_same_device(what, "the sequence", sequence, "the values", values))
        return -1;
    return sorter ? dt_check_same_device(what, "the sequence", sequence, "the sorter",
                                         sorter)
                  : 0;
}

int dt_search_in(const char *what, dt_tensor *out, const dt_tensor *sequence,
                 const dt_tensor *values, const dt_tensor *sorter, bool right)
{
    dt_tensor rows, wanted, order;
    dt_device device = dt_tensor_device(values);
    out->storage = rows.storage = wanted.storage = order.storage = NULL;
    if (check_search(what, sequence, values, sorter))
        return -1;
    dt_dtype meet =
        dt_dtype_promote((dt_dtype)sequence->dtype, (dt_dtype)values->dtype);
    meet = !dt_dtype_is_float(meet) ? DT_INT64
           : meet == DT_FLOAT64     ? DT_FLOAT64
                                    : DT_FLOAT32;
    if (searchable(&rows, sequence, meet) || searchable(&wanted, values, meet) ||
        (sorter && dt_contiguous(&order, sorter)) ||
        dt_tensor_empty(what, out, DT_INT64, values->ndim, values->shape, device))
        goto fail;
    if (out->numel) {
        int64_t n = sequence->shape[sequence->ndim - 1];
        bool one = sequence->ndim == 1;
        dt_search call = {.what = what,
                          .dtype = meet,
                          .right = right,
                          .n = n,
                          .m = one ? out->numel : values->shape[values->ndim - 1],
                          .sequence = dt_tensor_data(&rows),
                          .values = dt_tensor_data(&wanted),
                          .sorter = sorter ? dt_tensor_data(&order) : NULL,
                          .out = dt_tensor_data(out)};
        call.rows = out->numel / call.m;
        if (dt_storage_use(rows.storage) || dt_storage_use(wanted.storage) ||
            (sorter && dt_storage_use(order.storage)) || dt_storage_use(out->storage) ||
            dt_backend_of(device)->search(dt_stream_current(device), &call))
            goto fail;
    }
    dt_tensor_clear(&rows);
    dt_tensor_clear(&wanted);
    dt_tensor_clear(&order);
    return 0;
fail:
    dt_tensor_clear(&rows);
    dt_tensor_clear(&wanted);
    dt_tensor_clear(&order);
    dt_tensor_clear(out);
    return -1;
}

/* --- the rows of ops/functions/sort.def --- */

int dt_sort_forward(dt_call *c)
{
    return dt_sort(c->name, c->out[0], c->out[1], c->args[0].tensor, -1, c->args[1].i,
                   c->args[2].b);
}

int dt_argsort_forward(dt_call *c)
{
    return dt_sort(c->name, NULL, c->out[0], c->args[0].tensor, -1, c->args[1].i,
                   c->args[2].b);
}

int dt_msort_forward(dt_call *c)
{
    return dt_sort(c->name, c->out[0], c->out[1], c->args[0].tensor, -1, 0, false);
}

int dt_topk_forward(dt_call *c)
{
    int64_t k = c->args[1].i == -1 ? -2 : c->args[1].i; /* -1 would mean all */
    return dt_sort(c->name, c->out[0], c->out[1], c->args[0].tensor, k, c->args[2].i,
                   c->args[3].b);
}

/* Searches for `values`, whose number becomes a tensor of the sequence's dtype, or int64
 * or float64 if that cannot hold it. */
static int search(dt_call *c, const dt_tensor *sequence, const dt_value *values,
                  const dt_tensor *sorter, bool right, bool narrow)
{
    dt_tensor own = {.storage = NULL}, wide;
    dt_device device = dt_tensor_device(sequence);
    dt_dtype dtype = dt_dtype_is_float((dt_dtype)sequence->dtype)
                         ? (dt_dtype)sequence->dtype
                     : values->scalar.kind == DT_KIND_FLOAT ? DT_FLOAT64
                                                            : DT_INT64;
    if (!values->tensor &&
        dt_full(c->name, &own, dtype, 0, NULL, device, values->scalar) < 0)
        return -1;
    int status = dt_search_in(c->name, narrow ? &wide : c->out[0], sequence,
                              values->tensor ? values->tensor : &own, sorter, right);
    dt_tensor_clear(&own);
    if (status || !narrow)
        return status;
    status = dt_to(c->out[0], &wide, DT_INT32, device);
    dt_tensor_clear(&wide);
    return status;
}

int dt_searchsorted_forward(dt_call *c)
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

int dt_bucketize_forward(dt_call *c)
{
    const dt_tensor *boundaries = c->args[1].tensor;
    if (boundaries->ndim != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "bucketize(): boundaries has %d dimensions; give one dimension",
                       boundaries->ndim);
    return search(c, boundaries, &c->args[0], NULL, c->args[3].b, c->args[2].b);
}
