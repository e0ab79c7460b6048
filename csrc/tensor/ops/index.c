#include "tensor/ops/ops.h"

#include <inttypes.h>
#include <string.h>

#include "base/gil.h"
#include "base/interrupt.h"
#include "device/stream.h"
#include "device/transfer.h"
#include "ops/elementwise_ops.h"
#include "tensor/call.h"
#include "tensor/iterate.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/view.h"

bool dt_deterministic = false;

/* The prepared operands of a call: index tensors in int64, on the tensor's device. */
typedef struct prepared {
    int count;
    dt_tensor indices[DT_MAX_NDIM];
} prepared;

static void release(prepared *p)
{
    for (int k = 0; k < p->count; k++)
        dt_tensor_clear(&p->indices[k]);
}
/* Released at the end of the block. (An initializer would set all of it.) */
#define PREPARED(name)                                                                 \
    __attribute__((cleanup(release))) prepared name;                                   \
    (name).count = 0

static int prepare(prepared *p, const dt_tensor *x, const dt_indexing *indexing)
{
    dt_device device = dt_tensor_device(x);
    for (int k = 0; k < indexing->count; k++) {
        const dt_tensor *index = indexing->indices[k];
        dt_tensor *own = &p->indices[k];
        if (dt_dtype_kind((dt_dtype)index->dtype) != DT_KIND_INTEGER)
            return dt_fail(indexing->code == DT_ERROR_INDEX ? DT_ERROR_INDEX
                                                            : DT_ERROR_RUNTIME,
                           "%s: the index is of type %s; give integers, such as "
                           "index.long()",
                           indexing->op_name, dt_dtype_name((dt_dtype)index->dtype));
        if (!dt_device_is_host(dt_tensor_device(index)) &&
            dt_check_same_device(indexing->op_name, "input", x, "index", index))
            return -1;
        if (index->dtype == DT_INT64 &&
            dt_device_equal(device, dt_tensor_device(index)))
            dt_tensor_alias(own, index);
        else if (dt_to(own, index, DT_INT64, device))
            return dt_fail_prefix("%s: ", indexing->op_name);
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
    int64_t shape[DT_MAX_NDIM] = {0};
    int ndim = 0, first = s->ndim;
    for (int k = 0; k < p->count; k++) {
        const dt_tensor *index = &p->indices[k];
        if (dt_shape_broadcast(s->op_name, ndim, shape, index->ndim, index->shape,
                               &ndim, shape)) {
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
                          const dt_indexing *indexing, const prepared *p)
{
    bool indexed[DT_MAX_NDIM] = {false};
    int total = x->ndim - indexing->count, most = 0;
    for (int k = 0; k < indexing->count; k++) {
        indexed[indexing->dims[k]] = true;
        most = p->indices[k].ndim > most ? p->indices[k].ndim : most;
        s->indices[k].size = x->shape[indexing->dims[k]];
        s->indices[k].stride = x->strides[indexing->dims[k]];
        s->indices[k].dim = indexing->dims[k];
    }
    if (total + most > DT_MAX_NDIM)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the result would have %d dimensions; a tensor has at most "
                       "%d",
                       s->op_name, total + most, DT_MAX_NDIM);
    int first = indexing->dims[0], last = indexing->dims[indexing->count - 1];
    bool together = last - first + 1 == indexing->count;
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

static int space_along(dt_index_call *s, const dt_tensor *x,
                       const dt_indexing *indexing, const dt_tensor *index)
{
    static const int64_t one = 1;
    int dim = indexing->dims[0], xdim = x->ndim ? x->ndim : 1;
    int idim = index->ndim ? index->ndim : 1;
    const int64_t *xshape = x->ndim ? x->shape : &one;
    if (idim != xdim && index->numel)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the index has %d dimensions, the tensor %d; give them the "
                       "same number",
                       s->op_name, index->ndim, x->ndim);
    for (int d = 0; d < index->ndim; d++) {
        if (d != dim && index->shape[d] > xshape[d] && index->numel)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: dimension %d of the index has size %" PRId64
                           ", that of the tensor %" PRId64
                           "; only in dimension %d may the index be larger",
                           s->op_name, d, index->shape[d], xshape[d], dim);
        add_dim(s, index->shape[d], d == dim || d >= x->ndim ? 0 : x->strides[d]);
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
static int find_space(dt_index_call *s, const dt_tensor *x, const dt_indexing *indexing,
                      const prepared *p)
{
    s->op_name = indexing->op_name;
    s->code = indexing->code;
    s->dtype = (dt_dtype)x->dtype;
    s->wraps = indexing->wraps;
    s->ordered = dt_deterministic;
    s->ndim = 0;
    s->nindices = p->count;
    if (indexing->form == DT_INDEXING_ADVANCED ? space_of_index(s, x, indexing, p)
        : indexing->form == DT_INDEXING_GATHER
            ? space_along(s, x, indexing, &p->indices[0])
            : (space_flat(s, x, &p->indices[0]), 0))
        return -1;
    s->numel = dt_shape_numel(s->op_name, s->ndim, s->shape, 8);
    if (s->numel < 0)
        return -1;
    for (int k = 0; k < s->nindices && s->numel; k++)
        if (!s->indices[k].size)
            return dt_fail(s->code,
                           "%s: dimension %d has size 0, so no index is in range; give "
                           "an empty index",
                           s->op_name, s->indices[k].dim);
    return 0;
}

/* Drops dimensions of size 1, merges neighbours that all operands allow to, and turns
 * elements into bytes. */
static void finish_index(dt_index_call *s)
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

static int run_index(dt_index_op op, dt_index_call *s, const dt_tensor *table,
                     const dt_tensor *values, const prepared *p)
{
    dt_device device = dt_tensor_device(table);
    s->table = dt_tensor_data(table);
    s->values = dt_tensor_data(values);
    for (int k = 0; k < s->nindices; k++)
        s->indices[k].data = dt_tensor_data(&p->indices[k]);
    finish_index(s);
    if (dt_storage_use(table->storage) || dt_storage_use(values->storage))
        return -1;
    return dt_run_index(device, op, s);
}

/* --- reading --- */

int dt_index_read(dt_tensor *out, const dt_tensor *x, const dt_indexing *indexing)
{
    dt_index_call s;
    PREPARED(p);
    DT_LOCAL(row_major);
    if (prepare(&p, x, indexing))
        return -1;
    if (indexing->form == DT_INDEXING_TAKE) {
        if (dt_contiguous(&row_major, x))
            return -1;
        x = &row_major;
    }
    if (find_space(&s, x, indexing, &p) ||
        dt_tensor_empty(s.op_name, out, s.dtype, s.ndim, s.shape, dt_tensor_device(x)))
        return -1;
    for (int d = 0; d < s.ndim; d++)
        s.value_strides[d] = out->strides[d];
    return s.numel ? run_index(DT_INDEX_READ, &s, x, out, &p) : 0;
}

/* --- writing --- */

/* The strides of values over the space. */
static int place_values(dt_index_call *s, const dt_indexing *indexing,
                        const dt_tensor *values)
{
    DT_LOCAL(narrow);
    DT_LOCAL(wide);
    if (indexing->form == DT_INDEXING_GATHER && !s->numel)
        return 0;
    if (indexing->form == DT_INDEXING_GATHER && values->numel != 1) {
        if (values->ndim != s->ndim)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the index has %d dimensions, the source %d; give them "
                           "the same number",
                           s->op_name, s->ndim, values->ndim);
        for (int d = 0; d < s->ndim; d++) {
            if (s->shape[d] > values->shape[d])
                return dt_fail(DT_ERROR_RUNTIME,
                               "%s: dimension %d of the index has size %" PRId64
                               ", that of the source only %" PRId64
                               "; give a source at least as large",
                               s->op_name, d, s->shape[d], values->shape[d]);
            s->value_strides[d] = values->strides[d];
        }
        return 0;
    }
    int64_t dims[DT_MAX_NDIM];
    int extra = 0;
    while (values->ndim - extra > s->ndim && values->shape[extra] == 1) {
        dims[extra] = extra;
        extra++;
    }
    if (dt_view_squeeze(&narrow, values, extra, dims) ||
        dt_view_expand(s->op_name, &wide, &narrow, s->ndim, s->shape))
        return -1;
    for (int d = 0; d < s->ndim; d++)
        s->value_strides[d] = wide.strides[d];
    return 0;
}

int dt_index_write(dt_index_op op, dt_tensor *target, const dt_indexing *indexing,
                   const dt_tensor *values)
{
    dt_index_call s;
    PREPARED(p);
    DT_LOCAL(row_major);
    DT_LOCAL(copy);
    const dt_tensor *table = target;
    if (dt_tensor_check_writable(indexing->op_name, target))
        return -1;
    if (values->dtype != target->dtype)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the tensor is of type %s, the source of type %s; convert "
                       "one of them",
                       indexing->op_name, dt_dtype_name((dt_dtype)target->dtype),
                       dt_dtype_name((dt_dtype)values->dtype));
    if (dt_check_same_device(indexing->op_name, "self", target, "source", values) ||
        prepare(&p, target, indexing))
        return -1;
    if (indexing->form == DT_INDEXING_TAKE) {
        if (dt_contiguous(&row_major, target))
            return -1;
        table = &row_major;
    }
    /* Any layout of one storage: what is read must not be what was just written. */
    if (values->storage == target->storage) {
        if (dt_to(&copy, values, (dt_dtype)values->dtype, dt_tensor_device(values)))
            return -1;
        values = &copy;
    }
    for (int k = 0; k < p.count; k++) {
        DT_LOCAL(own);
        if (p.indices[k].storage != target->storage)
            continue;
        if (dt_to(&own, &p.indices[k], DT_INT64, dt_tensor_device(target)))
            return -1;
        dt_tensor_move(&p.indices[k], &own);
    }
    if (find_space(&s, table, indexing, &p) || place_values(&s, indexing, values) ||
        (s.numel && run_index(op, &s, table, values, &p)))
        return -1;
    if (row_major.storage && row_major.storage != target->storage)
        return dt_copy_into(indexing->op_name, target, &row_major);
    dt_tensor_written(target);
    return 0;
}

/* --- operations --- */

/* The indexing of a call (input, dim, index, ...), x[..., index, ...]. An index without
 * dimensions counts as a vector of one element, which `vector` holds. The index of an
 * input without dimensions has one element, and gives a result without dimensions. */
static int index_of_dim(dt_indexing *indexing, const dt_call *c, dt_tensor *vector)
{
    const dt_tensor *x = c->args[0].tensor;
    int dim = dt_shape_wrap_dim(c->name, c->args[1].i, x->ndim);
    if (dim < 0)
        return -1;
    *vector = *c->args[2].tensor; /* borrowed */
    if (!vector->ndim) {
        vector->ndim = 1;
        vector->shape[0] = vector->strides[0] = 1;
    }
    if (vector->ndim > 1)
        return dt_fail(DT_ERROR_INDEX,
                       "%s: the index has %d dimensions; give one of 1, such as "
                       "index.flatten()",
                       c->name, vector->ndim);
    vector->ndim = x->ndim ? 1 : 0;
    *indexing = dt_indexing_along(
        c->name, x->ndim ? DT_INDEXING_ADVANCED : DT_INDEXING_GATHER, dim, vector);
    indexing->code = DT_ERROR_INDEX;
    if (!x->ndim && vector->numel != 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the index has %" PRId64 " elements; a tensor without "
                       "dimensions takes one",
                       c->name, vector->numel);
    return 0;
}

/* The indexing of a call (input, dim, index, ...), gather's. */
static int index_along(dt_indexing *indexing, const dt_call *c)
{
    int dim = dt_shape_wrap_dim(c->name, c->args[1].i, c->args[0].tensor->ndim);
    *indexing = dt_indexing_along(c->name, DT_INDEXING_GATHER, dim, c->args[2].tensor);
    return dim < 0 ? -1 : 0;
}

/* The indexing of a call (input, indices, dims, ...). */
static dt_indexing index_of_dims(const dt_call *c)
{
    dt_indexing indexing = {.op_name = c->name,
                            .code = DT_ERROR_INDEX,
                            .form = DT_INDEXING_ADVANCED,
                            .wraps = true,
                            .count = c->args[1].count};
    for (int k = 0; k < indexing.count; k++) {
        indexing.indices[k] = c->args[1].tensors[k];
        indexing.dims[k] = (int)c->args[2].ints[k];
    }
    return indexing;
}

/* input[indexing] */
static int read_elements(dt_call *c, const dt_indexing *indexing)
{
    return dt_index_read(c->out[0], c->args[0].tensor, indexing);
}

static int index_select(dt_call *c)
{
    dt_indexing indexing;
    dt_tensor vector;
    return index_of_dim(&indexing, c, &vector) < 0 ? -1 : read_elements(c, &indexing);
}

static int gather(dt_call *c)
{
    dt_indexing indexing;
    return index_along(&indexing, c) < 0 ? -1 : read_elements(c, &indexing);
}

static int take(dt_call *c)
{
    dt_indexing indexing =
        dt_indexing_along(c->name, DT_INDEXING_TAKE, 0, c->args[1].tensor);
    return read_elements(c, &indexing);
}

static int read_index(dt_call *c)
{
    dt_indexing indexing = index_of_dims(c);
    return read_elements(c, &indexing);
}

/* input[indexing] op= value, in place or in a copy of the input. */
static int write(dt_call *c, dt_index_op op, const dt_indexing *indexing,
                 const dt_value *value)
{
    const dt_tensor *x = c->args[0].tensor, *values = value->tensor;
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_device device = dt_tensor_device(x);
    DT_LOCAL(own);
    if (!values) {
        if (dt_full(c->name, &own, dtype, 0, NULL, device, value->scalar))
            return -1;
        values = &own;
    }
    if (!c->in_place && dt_to(c->out[0], x, dtype, device))
        return -1;
    return dt_index_write(op, c->out[0], indexing, values);
}

static int scatter(dt_call *c)
{
    dt_indexing indexing;
    dt_index_op op = DT_INDEX_WRITE;
    const char *reduce = c->args[4].given ? c->args[4].text : NULL;
    if (reduce) {
        op = !strcmp(reduce, "add") ? DT_INDEX_ADD : DT_INDEX_MULTIPLY;
        if (op == DT_INDEX_MULTIPLY && strcmp(reduce, "multiply"))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s(): reduce is '%s'; give 'add' or 'multiply'", c->name,
                           reduce);
    }
    return index_along(&indexing, c) < 0 ? -1 : write(c, op, &indexing, &c->args[3]);
}

static int scatter_add(dt_call *c)
{
    dt_indexing indexing;
    if (index_along(&indexing, c) < 0)
        return -1;
    return write(c, DT_INDEX_ADD, &indexing, &c->args[3]);
}

/* A source has the sizes of x, but is as long as the index in the dimension indexed. */
static int check_source(const dt_indexing *indexing, const dt_tensor *index,
                        const dt_tensor *x, const dt_tensor *source)
{
    char have[DT_SHAPE_TEXT], want[DT_SHAPE_TEXT];
    int64_t shape[DT_MAX_NDIM];
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    if (x->ndim)
        shape[indexing->dims[0]] = index->numel;
    if (dt_shape_equal(x->ndim, shape, source->ndim, source->shape))
        return 0;
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the source has shape %s and the tensor %s; give a source of the tensor's "
        "sizes, but as long as the index in dimension %d",
        indexing->op_name,
        dt_shape_text(source->ndim, source->shape, have, sizeof have),
        dt_shape_text(x->ndim, x->shape, want, sizeof want), indexing->dims[0]);
}

/* index_add, index_copy and index_fill. */
static int index_write(dt_call *c, dt_index_op op, bool fills, const dt_value *value)
{
    dt_indexing indexing;
    dt_tensor vector;
    if (index_of_dim(&indexing, c, &vector) < 0 ||
        (!fills &&
         check_source(&indexing, &vector, c->args[0].tensor, value->tensor) < 0))
        return -1;
    return write(c, op, &indexing, value);
}

static int index_add(dt_call *c)
{
    DT_LOCAL(scaled);
    DT_LOCAL(number);
    dt_value source = c->args[3];
    dt_arg alpha;
    if (dt_call_number(c, 4, (dt_dtype)c->args[0].tensor->dtype, &number, &alpha))
        return -1;
    if (alpha.tensor || dt_scalar_as_double(alpha.scalar) != 1) {
        if (dt_elementwise(DT_OP_mul, &scaled,
                           DT_ARGS(dt_value_operand(&source), alpha)))
            return -1;
        source.tensor = &scaled;
    }
    return index_write(c, DT_INDEX_ADD, false, &source);
}

static int index_put(dt_call *c)
{
    dt_indexing indexing = index_of_dims(c);
    return write(c, c->args[4].b ? DT_INDEX_ADD : DT_INDEX_WRITE, &indexing,
                 &c->args[3]);
}

static int masked_fill(dt_call *c)
{
    const dt_tensor *x = c->args[0].tensor, *mask = c->args[1].tensor;
    const dt_tensor *value = c->args[2].tensor;
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_device device = dt_tensor_device(x);
    DT_LOCAL(own); /* value in the type of x */
    if (mask->dtype != DT_BOOL)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the mask is of type %s; give a tensor of bools, such as "
                       "x > 0",
                       c->name, dt_dtype_name((dt_dtype)mask->dtype));
    if (value && value->ndim)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the value has %d dimensions; give a number or a tensor "
                       "without dimensions, or use where()",
                       c->name, value->ndim);
    if (value && dt_check_imag(c->name, dtype, value))
        return -1;
    if (value ? dt_to(&own, value, dtype, device)
              : dt_full(c->name, &own, dtype, 0, NULL, device, c->args[2].scalar))
        return -1;
    const dt_arg args[] = {dt_arg_tensor(mask), dt_arg_tensor(&own), dt_arg_tensor(x)};
    return c->in_place ? dt_elementwise_into(DT_OP_where, c->out[0], args)
                       : dt_elementwise(DT_OP_where, c->out[0], args);
}

/* --- where something is true --- */

/* Makes a tensor [count, ndim]. The positions of a dimension are contiguous, since they
 * become an index tensor. */
static int empty_positions(dt_tensor *out, int64_t count, int ndim, dt_device device)
{
    int64_t shape[] = {count, ndim}, strides[] = {1, count ? count : 1};
    return dt_tensor_empty_strided("nonzero", out, DT_INT64, 2, shape, strides, device);
}

/* Computes on the device. Waits for it, to know the count. */
static int nonzero_there(dt_tensor *out, const dt_tensor *x)
{
    dt_device device = dt_tensor_device(x);
    const dt_backend *backend = dt_backend_of(device);
    dt_tiles tiles = dt_tiles_of(x->numel);
    int64_t words = tiles.tiles + tiles.groups + 1, count;
    DT_LOCAL(holds);
    DT_LOCAL(workspace);
    dt_nonzero_call call = {.numel = x->numel, .ndim = x->ndim};
    if (dt_contiguous_as(&holds, x, DT_BOOL, device) ||
        dt_tensor_empty("nonzero", &workspace, DT_INT64, 1, &words, device) ||
        dt_tensor_use(&holds))
        return -1;
    memcpy(call.shape, x->shape, (size_t)x->ndim * sizeof *x->shape);
    call.holds = dt_tensor_data(&holds);
    call.workspace = dt_tensor_data(&workspace);
    if (backend->nonzero_count(dt_stream_current(device), &call) ||
        dt_transfer(dt_device_make(DT_CPU, 0), &count, device,
                    call.workspace + words - 1, sizeof count, NULL) ||
        empty_positions(out, count, x->ndim, device))
        return -1;
    call.out = dt_tensor_data(out);
    return count && x->ndim ? backend->nonzero_write(dt_stream_current(device), &call)
                            : 0;
}

#define LONG_MASK 4096
/* Elements between two looks for an interrupt. */
#define CHUNK 65536

static int64_t count_true(const dt_bool *holds, int64_t numel)
{
    DT_WITHOUT_GIL(numel > LONG_MASK);
    int64_t count = 0;
    for (int64_t i = 0; i < numel; i++)
        count += holds[i].byte != 0;
    return count;
}

/* Another thread may have written `holds` since they were counted: writes `count`
 * positions, whatever it did. */
static int write_positions(int64_t *to, int64_t count, const dt_bool *holds,
                           const dt_tensor *x)
{
    DT_WITHOUT_GIL(x->numel > LONG_MASK);
    int64_t found = 0, at[DT_MAX_NDIM] = {0};
    for (int64_t i = 0; i < x->numel && found < count;) {
        int64_t stop = x->numel - i < CHUNK ? x->numel : i + CHUNK;
        for (; i < stop && found < count; i++) {
            if (__atomic_load_n(&holds[i].byte, __ATOMIC_RELAXED)) {
                for (int d = 0; d < x->ndim; d++)
                    to[d * count + found] = at[d];
                found++;
            }
            for (int d = x->ndim - 1; d >= 0; d--) {
                if (++at[d] < x->shape[d])
                    break;
                at[d] = 0;
            }
        }
        if (dt_interrupt_check_rarely())
            return -1;
    }
    for (; found < count; found++)
        for (int d = 0; d < x->ndim; d++)
            to[d * count + found] = 0;
    return 0;
}

int dt_nonzero(dt_tensor *out, const dt_tensor *x)
{
    dt_device device = dt_tensor_device(x);
    DT_LOCAL(host);
    if (!dt_device_is_host(device) && x->numel)
        return nonzero_there(out, x);
    if (dt_contiguous_as(&host, x, DT_BOOL, device))
        return -1;
    const dt_bool *holds = x->numel ? dt_tensor_data(&host) : NULL;
    int64_t count = count_true(holds, x->numel);
    if (empty_positions(out, count, x->ndim, device))
        return -1;
    return write_positions(dt_tensor_data(out), count, holds, x);
}

#include "tensor/ops/define.h"
#include "ops/functions/index.def"
