#include "tensor/ops/index.h"

#include <inttypes.h>
#include <string.h>

#include "device/stream.h"
#include "device/transfer.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/iterate.h"
#include "tensor/view.h"

/* What a call holds on to: index tensors in int64, on the tensor's device. */
typedef struct prepared {
    int count;
    dt_tensor indices[DT_MAX_NDIM];
} prepared;

static void release(prepared *p)
{
    for (int k = 0; k < p->count; k++)
        dt_tensor_clear(&p->indices[k]);
}

static int prepare(prepared *p, const dt_tensor *x, const dt_indexing *choice)
{
    dt_device device = dt_tensor_device(x);
    p->count = 0;
    for (int k = 0; k < choice->count; k++) {
        const dt_tensor *index = choice->indices[k];
        dt_tensor *own = &p->indices[k];
        if (dt_dtype_kind((dt_dtype)index->dtype) != DT_KIND_INTEGER)
            return dt_fail(choice->code == DT_ERROR_INDEX ? DT_ERROR_INDEX
                                                          : DT_ERROR_RUNTIME,
                           "%s: the index is of type %s; give integers, such as "
                           "index.long()",
                           choice->what, dt_dtype_name((dt_dtype)index->dtype));
        if (!dt_device_is_cpu(dt_tensor_device(index)) &&
            dt_check_same_device(choice->what, "input", x, "index", index))
            return -1;
        bool same = index->dtype == DT_INT64 &&
                    dt_device_equal(device, dt_tensor_device(index));
        if (same)
            dt_tensor_alias(own, index);
        else if (dt_to(own, index, DT_INT64, device))
            return dt_fail_prefix("%s: ", choice->what);
        p->count++;
        if (dt_storage_use(own->storage))
            return -1;
    }
    return 0;
}

/* --- the space of a selection --- */

static void add_dim(dt_index_call *s, int64_t size, int64_t table_stride)
{
    s->shape[s->ndim] = size;
    s->table_strides[s->ndim] = table_stride;
    for (int k = 0; k < s->nindices; k++)
        s->indices[k].strides[s->ndim] = 0;
    s->ndim++;
}

/* The dimensions that the index tensors have together, as the next ones. */
static int add_broadcast(dt_index_call *s, const prepared *p)
{
    int64_t shape[DT_MAX_NDIM];
    int ndim = 0, first = s->ndim;
    for (int k = 0; k < p->count; k++) {
        const dt_tensor *index = &p->indices[k];
        if (dt_shape_broadcast(s->what, ndim, shape, index->ndim, index->shape, &ndim,
                               shape)) {
            dt_error_slot()->code = DT_ERROR_INDEX;
            return -1;
        }
    }
    if (first + ndim > DT_MAX_NDIM)
        return -1;
    for (int d = 0; d < ndim; d++)
        add_dim(s, shape[d], 0);
    for (int k = 0; k < p->count; k++) {
        const dt_tensor *index = &p->indices[k];
        for (int d = 0; d < index->ndim; d++)
            if (index->shape[d] != 1)
                s->indices[k].strides[first + ndim - index->ndim + d] =
                    index->strides[d];
    }
    return 0;
}

static int space_of_index(dt_index_call *s, const dt_tensor *x,
                          const dt_indexing *choice, const prepared *p)
{
    bool indexed[DT_MAX_NDIM] = {false};
    int total = x->ndim - choice->count, most = 0;
    for (int k = 0; k < choice->count; k++) {
        indexed[choice->dims[k]] = true;
        most = p->indices[k].ndim > most ? p->indices[k].ndim : most;
        s->indices[k].size = x->shape[choice->dims[k]];
        s->indices[k].stride = x->strides[choice->dims[k]];
        s->indices[k].dim = choice->dims[k];
    }
    if (total + most > DT_MAX_NDIM)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the result would have %d dimensions; a tensor has at most "
                       "%d",
                       s->what, total + most, DT_MAX_NDIM);
    int first = choice->dims[0], last = choice->dims[choice->count - 1];
    bool together = last - first + 1 == choice->count;
    if (!together && add_broadcast(s, p))
        return -1;
    for (int d = 0; d < x->ndim; d++) {
        if (together && d == first && add_broadcast(s, p))
            return -1;
        if (!indexed[d])
            add_dim(s, x->shape[d], x->strides[d]);
    }
    return 0;
}

static int space_along(dt_index_call *s, const dt_tensor *x, const dt_indexing *choice,
                       const dt_tensor *index)
{
    static const int64_t one = 1;
    int dim = choice->dims[0], xdim = x->ndim ? x->ndim : 1;
    int idim = index->ndim ? index->ndim : 1;
    const int64_t *xshape = x->ndim ? x->shape : &one;
    if (idim != xdim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the index has %d dimensions, the tensor %d; give them the "
                       "same number",
                       s->what, index->ndim, x->ndim);
    for (int d = 0; d < index->ndim; d++) {
        if (d != dim && index->shape[d] > xshape[d] && index->numel)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d of the index has size %" PRId64
                           ", that of the tensor %" PRId64
                           "; only in dimension %d may the index be larger",
                           s->what, d, index->shape[d], xshape[d], dim);
        add_dim(s, index->shape[d], d == dim || !x->ndim ? 0 : x->strides[d]);
        s->indices[0].strides[d] = index->strides[d];
    }
    s->indices[0].size = xshape[dim];
    s->indices[0].stride = x->ndim ? x->strides[dim] : 1;
    s->indices[0].dim = dim;
    return 0;
}

/* x is row-major. */
static void space_flat(dt_index_call *s, const dt_tensor *x, const dt_tensor *index)
{
    for (int d = 0; d < index->ndim; d++) {
        add_dim(s, index->shape[d], 0);
        s->indices[0].strides[d] = index->strides[d];
    }
    s->indices[0].size = x->numel;
    s->indices[0].stride = 1;
    s->indices[0].dim = 0;
}

/* Fills shape and strides, in elements so far. */
static int find_space(dt_index_call *s, const dt_tensor *x, const dt_indexing *choice,
                      const prepared *p)
{
    s->what = choice->what;
    s->code = choice->code;
    s->dtype = (dt_dtype)x->dtype;
    s->wraps = choice->wraps;
    s->ndim = 0;
    s->nindices = p->count;
    if (choice->form == DT_INDEXING_INDEX   ? space_of_index(s, x, choice, p)
        : choice->form == DT_INDEXING_ALONG ? space_along(s, x, choice, &p->indices[0])
                                            : (space_flat(s, x, &p->indices[0]), 0))
        return -1;
    s->numel = dt_shape_numel(s->what, s->ndim, s->shape, 8);
    if (s->numel < 0)
        return -1;
    for (int k = 0; k < s->nindices && s->numel; k++)
        if (!s->indices[k].size)
            return dt_fail(s->code,
                           "%s: dimension %d has size 0, so no index is in range; give "
                           "an empty index",
                           s->what, s->indices[k].dim);
    return 0;
}

/* Drops dimensions of size 1, merges neighbours that all operands allow to, and turns
 * elements into bytes. */
static void finish(dt_index_call *s)
{
    int to = 0;
    int64_t item = (int64_t)dt_dtype_size(s->dtype);
#define MERGES(strides)   ((strides)[to - 1] == (strides)[d] * s->shape[d])
#define MOVE(strides, at) ((strides)[at] = (strides)[d])
    for (int d = 0; d < s->ndim; d++) {
        if (s->shape[d] == 1)
            continue;
        bool merges = to && MERGES(s->table_strides) && MERGES(s->value_strides);
        for (int k = 0; k < s->nindices && merges; k++)
            merges = MERGES(s->indices[k].strides);
        int at = merges ? to - 1 : to++;
        s->shape[at] = merges ? s->shape[at] * s->shape[d] : s->shape[d];
        MOVE(s->table_strides, at);
        MOVE(s->value_strides, at);
        for (int k = 0; k < s->nindices; k++)
            MOVE(s->indices[k].strides, at);
    }
#undef MERGES
#undef MOVE
    if (!to) {
        s->shape[0] = 1;
        s->table_strides[0] = s->value_strides[0] = 0;
        for (int k = 0; k < s->nindices; k++)
            s->indices[k].strides[0] = 0;
        to = 1;
    }
    s->ndim = to;
    for (int d = 0; d < to; d++) {
        s->table_strides[d] *= item;
        s->value_strides[d] *= item;
        for (int k = 0; k < s->nindices; k++)
            s->indices[k].strides[d] *= 8;
    }
    for (int k = 0; k < s->nindices; k++)
        s->indices[k].stride *= item;
}

static int run(dt_index_op op, dt_index_call *s, const dt_tensor *table,
               const dt_tensor *values, const prepared *p)
{
    dt_device device = dt_tensor_device(table);
    s->table = dt_tensor_data(table);
    s->values = dt_tensor_data(values);
    for (int k = 0; k < s->nindices; k++)
        s->indices[k].data = dt_tensor_data(&p->indices[k]);
    finish(s);
    if (dt_storage_use(table->storage) || dt_storage_use(values->storage))
        return -1;
    return dt_backend_of(device)->index(dt_queue_current(device), op, s);
}

/* --- reading --- */

int dt_index_read(dt_tensor *out, const dt_tensor *x, const dt_indexing *choice)
{
    dt_index_call s;
    prepared p = {.count = 0};
    dt_tensor row_major;
    int status = -1;
    out->storage = row_major.storage = NULL;
    if (prepare(&p, x, choice))
        goto done;
    if (choice->form == DT_INDEXING_FLAT) {
        if (dt_contiguous(&row_major, x))
            goto done;
        x = &row_major;
    }
    if (find_space(&s, x, choice, &p) ||
        dt_tensor_empty(s.what, out, s.dtype, s.ndim, s.shape, dt_tensor_device(x)))
        goto done;
    for (int d = 0; d < s.ndim; d++)
        s.value_strides[d] = out->strides[d];
    status = s.numel ? run(DT_INDEX_READ, &s, x, out, &p) : 0;
    if (status)
        dt_tensor_clear(out);
done:
    dt_tensor_clear(&row_major);
    release(&p);
    return status;
}

/* --- writing --- */

/* The strides of values over the space. */
static int place_values(dt_index_call *s, const dt_indexing *choice,
                        const dt_tensor *values)
{
    dt_tensor wide;
    if (choice->form == DT_INDEXING_ALONG && values->numel != 1) {
        if (values->ndim != s->ndim)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the index has %d dimensions, the source %d; give them "
                           "the same number",
                           s->what, s->ndim, values->ndim);
        for (int d = 0; d < s->ndim; d++) {
            if (s->shape[d] > values->shape[d])
                return dt_fail(DT_ERROR_RUNTIME,
                               "%s: dimension %d of the index has size %" PRId64
                               ", that of the source only %" PRId64
                               "; give a source at least as large",
                               s->what, d, s->shape[d], values->shape[d]);
            s->value_strides[d] = values->strides[d];
        }
        return 0;
    }
    dt_tensor narrow;
    int64_t dims[DT_MAX_NDIM];
    int extra = 0;
    while (values->ndim - extra > s->ndim && values->shape[extra] == 1) {
        dims[extra] = extra;
        extra++;
    }
    if (dt_view_squeeze(&narrow, values, extra, dims))
        return -1;
    int status = dt_view_expand(s->what, &wide, &narrow, s->ndim, s->shape);
    dt_tensor_clear(&narrow);
    if (status)
        return -1;
    for (int d = 0; d < s->ndim; d++)
        s->value_strides[d] = wide.strides[d];
    dt_tensor_clear(&wide);
    return 0;
}

int dt_index_write(dt_index_op op, dt_tensor *target, const dt_indexing *choice,
                   const dt_tensor *values)
{
    dt_index_call s;
    prepared p = {.count = 0};
    dt_tensor row_major, copy, *table = target;
    int status = -1;
    row_major.storage = copy.storage = NULL;
    if (target->storage->read_only)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensor's memory is read-only; write to a clone()",
                       choice->what);
    if (dt_tensor_overlaps_itself(target))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: several elements of the tensor share one place in memory; "
                       "write to a clone()",
                       choice->what);
    if (values->dtype != target->dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensor is of type %s, the source of type %s; convert "
                       "one of them",
                       choice->what, dt_dtype_name((dt_dtype)target->dtype),
                       dt_dtype_name((dt_dtype)values->dtype));
    if (dt_check_same_device(choice->what, "self", target, "source", values) ||
        prepare(&p, target, choice))
        goto done;
    if (choice->form == DT_INDEXING_FLAT) {
        if (dt_contiguous(&row_major, target))
            goto done;
        table = &row_major;
    }
    /* Any layout of one storage: what is read must not be what was just written. */
    if (values->storage == target->storage) {
        if (dt_to(&copy, values, (dt_dtype)values->dtype, dt_tensor_device(values)))
            goto done;
        values = &copy;
    }
    for (int k = 0; k < p.count; k++)
        if (p.indices[k].storage == target->storage) {
            dt_tensor own = p.indices[k];
            if (dt_to(&p.indices[k], &own, DT_INT64, dt_tensor_device(&own))) {
                p.indices[k] = own;
                goto done;
            }
            dt_tensor_clear(&own);
        }
    if (find_space(&s, table, choice, &p) || place_values(&s, choice, values))
        goto done;
    status = s.numel ? run(op, &s, table, values, &p) : 0;
    if (!status && row_major.storage && row_major.storage != target->storage)
        status = dt_copy_into(choice->what, target, &row_major);
    else if (!status)
        dt_tensor_written(target);
done:
    dt_tensor_clear(&row_major);
    dt_tensor_clear(&copy);
    release(&p);
    return status;
}

/* --- where something is true --- */

/* Of shape [count, ndim]. A dimension's positions lie together, since each is an index
 * of its own. */
static int empty_positions(dt_tensor *out, int64_t count, int ndim, dt_device device)
{
    int64_t shape[] = {count, ndim}, strides[] = {1, count ? count : 1};
    return dt_tensor_empty_strided("nonzero", out, DT_INT64, 2, shape, strides, device);
}

/* On the device, but for the count, which is waited for. */
static int nonzero_there(dt_tensor *out, const dt_tensor *x)
{
    dt_device device = dt_tensor_device(x);
    const dt_backend *backend = dt_backend_of(device);
    dt_tiles tiles = dt_tiles_of(x->numel);
    int64_t words = tiles.tiles + tiles.groups + 1, count;
    dt_tensor truth, holds, workspace;
    dt_nonzero_call call = {.numel = x->numel, .ndim = x->ndim};
    int status = -1;
    truth.storage = holds.storage = workspace.storage = NULL;
    if (x->dtype == DT_BOOL)
        dt_tensor_alias(&truth, x);
    else if (dt_to(&truth, x, DT_BOOL, device))
        return -1;
    if (dt_contiguous(&holds, &truth) ||
        dt_tensor_empty("nonzero", &workspace, DT_INT64, 1, &words, device) ||
        dt_storage_use(holds.storage))
        goto done;
    memcpy(call.shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
    call.holds = dt_tensor_data(&holds);
    call.workspace = dt_tensor_data(&workspace);
    if (backend->nonzero_count(dt_queue_current(device), &call) ||
        dt_transfer(dt_device_make(DT_CPU, 0), &count, device,
                    call.workspace + words - 1, sizeof count) ||
        empty_positions(out, count, x->ndim, device))
        goto done;
    call.out = dt_tensor_data(out);
    status =
        count && x->ndim ? backend->nonzero_write(dt_queue_current(device), &call) : 0;
    if (status)
        dt_tensor_clear(out);
done:
    dt_tensor_clear(&workspace);
    dt_tensor_clear(&holds);
    dt_tensor_clear(&truth);
    return status;
}

int dt_nonzero(dt_tensor *out, const dt_tensor *x)
{
    dt_tensor truth, host;
    dt_device cpu = dt_device_make(DT_CPU, 0), device = dt_tensor_device(x);
    int status = -1;
    out->storage = truth.storage = host.storage = NULL;
    if (!dt_device_is_cpu(device) && x->numel)
        return nonzero_there(out, x);
    if (x->dtype == DT_BOOL)
        dt_tensor_alias(&truth, x);
    else if (dt_to(&truth, x, DT_BOOL, cpu))
        return -1;
    if (dt_contiguous(&host, &truth))
        goto done;
    const bool *holds = x->numel ? dt_tensor_data(&host) : NULL;
    int64_t count = 0, at[DT_MAX_NDIM] = {0};
    for (int64_t i = 0; i < x->numel; i++)
        count += holds[i];
    if (empty_positions(out, count, x->ndim, device))
        goto done;
    int64_t *to = dt_tensor_data(out);
    for (int64_t i = 0; i < x->numel; i++) {
        for (int d = 0; holds[i] && d < x->ndim; d++)
            to[d * count] = at[d];
        to += holds[i];
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (++at[d] < x->shape[d])
                break;
            at[d] = 0;
        }
    }
    status = 0;
done:
    dt_tensor_clear(&truth);
    dt_tensor_clear(&host);
    return status;
}
