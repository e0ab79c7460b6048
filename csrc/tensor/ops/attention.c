#include "tensor/ops/attention.h"

#include <string.h>

#include "device/attention.h"
#include "device/stream.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define NAME "scaled_dot_product_attention"
enum { QUERY, KEY, VALUE, OUT, GRAD, TENSORS };

/* A call that is being put together, and the tensors that live for it. */
typedef struct plan {
    dt_attention_call call;
    dt_device device;
    int ndim; /* of the broadcast dimensions before rows and columns */
    int64_t batch[DT_MAX_NDIM];
    dt_tensor held[TENSORS + 1];
    int count;
} plan;

static void end(plan *p)
{
    while (p->count)
        dt_tensor_clear(&p->held[--p->count]);
}

static dt_tensor *hold(plan *p)
{
    dt_tensor *t = &p->held[p->count++];
    t->storage = NULL;
    return t;
}

/* The sizes before the last two, with as many heads as the query has. */
static int join(plan *p, const dt_tensor *t, int64_t groups)
{
    int64_t shape[DT_MAX_NDIM], joined[DT_MAX_NDIM];
    int ndim;
    memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
    if (t->ndim > 2)
        shape[t->ndim - 3] *= groups;
    if (dt_shape_broadcast(NAME, p->ndim, p->batch, t->ndim - 2, shape, &ndim, joined))
        return -1;
    p->ndim = ndim;
    memcpy(p->batch, joined, (size_t)ndim * sizeof *joined);
    return 0;
}

static int refuse(const dt_attention *a)
{
    char query[DT_SHAPE_TEXT], key[DT_SHAPE_TEXT], value[DT_SHAPE_TEXT];
    return dt_fail(
        DT_ERROR_RUNTIME,
        NAME ": query, key and value have shapes %s, %s and %s; give (..., L, E), "
             "(..., S, E) and (..., S, Ev) of one floating type",
        dt_shape_text(a->query->ndim, a->query->shape, query, sizeof query),
        dt_shape_text(a->key->ndim, a->key->shape, key, sizeof key),
        dt_shape_text(a->value->ndim, a->value->shape, value, sizeof value));
}

/* The type of the call for inputs of `dtype`: float32 for halves that kernels do not take. */
static int choose_dtype(plan *p, dt_dtype dtype)
{
    dt_attention_call *c = &p->call;
    dt_device_properties gpu;
    c->dtype = dt_dtype_compute(dtype);
    if (dtype == c->dtype || !dt_backend_of(p->device)->halves)
        return 0;
    if (dt_backend_of(p->device)->device_properties(p->device.index, &gpu))
        return -1;
    if (dt_attention_on_tensor_cores(c, 10 * gpu.major + gpu.minor))
        c->dtype = dtype;
    return 0;
}

static int prepare(plan *p, const dt_attention *a)
{
    const dt_tensor *q = a->query, *k = a->key, *v = a->value;
    dt_attention_call *c = &p->call;
    memset(c, 0, sizeof *c);
    p->count = 0;
    p->ndim = 0;
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2 || q->dtype != k->dtype ||
        q->dtype != v->dtype || !dt_dtype_is_float((dt_dtype)q->dtype) ||
        a->groups < 1 || (a->groups > 1 && q->ndim < 3) ||
        q->shape[q->ndim - 1] != k->shape[k->ndim - 1] ||
        k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
        return refuse(a);
    if (join(p, q, 1) || join(p, k, a->groups) || join(p, v, a->groups))
        return -1;
    p->device = dt_tensor_device(q);
    c->causal = a->causal;
    c->scale = a->scale;
    c->batch = c->heads = 1;
    for (int d = 0; d < p->ndim; d++)
        *(d == p->ndim - 1 ? &c->heads : &c->batch) *= p->batch[d];
    c->key_heads = c->heads / a->groups;
    c->length = q->shape[q->ndim - 2];
    c->key_length = k->shape[k->ndim - 2];
    c->size = q->shape[q->ndim - 1];
    c->value_size = v->shape[v->ndim - 1];
    return choose_dtype(p, (dt_dtype)q->dtype);
}

/* Broadcasts t, whose heads are in groups, and gives it the dimensions of the call. */
static int four(const plan *p, dt_tensor *out, const dt_tensor *t, int64_t groups,
                int64_t rows, int64_t columns)
{
    int64_t shape[DT_MAX_NDIM];
    DT_LOCAL(wide);
    memcpy(shape, p->batch, (size_t)p->ndim * sizeof *shape);
    if (p->ndim)
        shape[p->ndim - 1] /= groups;
    shape[p->ndim] = rows;
    shape[p->ndim + 1] = columns;
    const int64_t sizes[] = {p->call.batch, p->call.heads / groups, rows, columns};
    return dt_view_expand(NAME, &wide, t, p->ndim + 2, shape)
               ? -1
               : dt_view_reshape(out, &wide, 4, sizes);
}

/* t as the kernels read it: converted, or copied where the elements of a row are not
 * next to each other. */
static int take(plan *p, dt_attention_matrices *m, const dt_tensor *t, int64_t groups)
{
    int64_t rows = t->shape[t->ndim - 2], columns = t->shape[t->ndim - 1];
    DT_LOCAL(wide);
    dt_tensor *held = hold(p);
    if (four(p, &wide, t, groups, rows, columns))
        return -1;
    bool dense = (columns == 1 || wide.strides[3] == 1) &&
                 (rows == 1 || wide.strides[2] >= columns);
    if (dense && wide.dtype == p->call.dtype)
        dt_tensor_move(held, &wide);
    else if (dt_contiguous_as(held, &wide, p->call.dtype, p->device))
        return -1;
    m->data = dt_tensor_data(held);
    m->row = rows == 1 || !columns ? columns + !columns : held->strides[2];
    if (held->numel) {
        m->batch = held->strides[0];
        m->head = held->strides[1];
    }
    return dt_storage_use(held->storage);
}

static int take_mask(plan *p, const dt_tensor *mask)
{
    dt_attention_call *c = &p->call;
    if (!mask)
        return 0;
    dt_tensor *held = hold(p);
    c->mask_is_bool = mask->dtype == DT_BOOL;
    if (four(p, held, mask, 1, c->length, c->key_length) ||
        (!c->mask_is_bool && dt_retype(held, dt_dtype_compute(c->dtype))) ||
        dt_storage_use(held->storage))
        return -1;
    c->mask = dt_tensor_data(held);
    memcpy(c->mask_strides, held->strides, sizeof c->mask_strides);
    return 0;
}

/* start: the result that keeps what the mask is drawn from; nothing without dropout. */
static int take_dropout(dt_attention_dropout *d, dt_tensor *start, dt_device device,
                        double dropout, const dt_tensor *given)
{
    const int64_t numbers = 2;
    if (!(dropout >= 0 && dropout <= 1))
        return dt_fail(DT_ERROR_RUNTIME,
                       NAME ": the probability of dropout is %g; give 0 to 1", dropout);
    if (!dropout)
        return 0;
    if (!dt_backend_of(device)->dropout_mask)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED, NAME
                       ": the CPU's kernels have no dropout; call nn.functional." NAME
                       ", which drops shares of the whole matrix there");
    d->kept = 1 - dropout;
    if (!given) {
        d->generator = dt_default_generator(device);
        if (dt_tensor_empty(NAME, start, DT_INT64, 1, &numbers, device))
            return -1;
    } else if (given->dtype == DT_INT64 && given->numel == numbers &&
               given->contiguous) {
        dt_tensor_alias(start, given);
    } else {
        return dt_fail(DT_ERROR_RUNTIME,
                       NAME ": a mask is drawn from two numbers of int64 that a call "
                            "with dropout has kept; give those, or None");
    }
    d->start = dt_tensor_data(start);
    return dt_storage_use(start->storage);
}

/* A new tensor of the call's type in the shape (batch, heads, rows, columns); in memory
 * the heads of a row are next to each other, as linear layers take and give them. */
static int make(plan *p, dt_attention_matrices *m, dt_tensor *out, int64_t rows,
                int64_t columns, int64_t heads)
{
    const int64_t shape[] = {p->call.batch, rows, heads, columns};
    DT_LOCAL(made);
    if (dt_tensor_empty(NAME, &made, p->call.dtype, 4, shape, p->device) ||
        dt_view_transpose(out, &made, 1, 2))
        return -1;
    m->data = dt_tensor_data(out);
    m->batch = out->strides[0];
    m->head = out->strides[1];
    m->row = out->strides[2];
    return dt_storage_use(out->storage);
}

/* Gives a result the broadcast shape and the type of the inputs. */
static int deliver(const plan *p, dt_tensor *out, dt_tensor *made, int64_t groups,
                   dt_dtype dtype)
{
    int64_t shape[DT_MAX_NDIM];
    if (dt_retype(made, dtype))
        return -1;
    memcpy(shape, p->batch, (size_t)p->ndim * sizeof *shape);
    if (p->ndim)
        shape[p->ndim - 1] /= groups;
    shape[p->ndim] = made->shape[2];
    shape[p->ndim + 1] = made->shape[3];
    return dt_view_reshape(out, made, p->ndim + 2, shape);
}

static bool is_empty(const dt_attention_call *c)
{
    return !c->batch || !c->heads || !c->length || !c->key_length || !c->value_size;
}

static int forward(plan *p, dt_tensor *out, dt_tensor *log_sum, dt_tensor *start,
                   const dt_attention *a)
{
    dt_attention_call *c = &p->call;
    DT_LOCAL(made);
    if (prepare(p, a) || take(p, &c->query, a->query, 1) ||
        take(p, &c->key, a->key, a->groups) ||
        take(p, &c->value, a->value, a->groups) || take_mask(p, a->mask) ||
        take_dropout(&c->dropout, start, p->device, a->dropout, a->start) ||
        make(p, &c->out, &made, c->length, c->value_size, c->heads))
        return -1;
    const int64_t shape[] = {c->batch, c->heads, c->length};
    if (dt_tensor_empty(NAME, log_sum, dt_dtype_compute(c->dtype), 3, shape,
                        p->device) ||
        dt_storage_use(log_sum->storage))
        return -1;
    c->log_sum = dt_tensor_data(log_sum);
    int status =
        is_empty(c)
            ? dt_fill_into(NAME, &made, dt_scalar_float(0))
            : dt_backend_of(p->device)->attention(dt_stream_current(p->device), c);
    return status ? -1 : deliver(p, out, &made, 1, (dt_dtype)a->query->dtype);
}

int dt_attention_forward(dt_call *call)
{
    plan p;
    const dt_attention a = {.query = call->args[0].tensor,
                            .key = call->args[1].tensor,
                            .value = call->args[2].tensor,
                            .mask = call->args[3].tensor,
                            .causal = call->args[4].b,
                            .scale = call->args[5].f,
                            .groups = call->args[6].i,
                            .dropout = call->args[7].f,
                            .start = call->args[8].tensor};
    int status = forward(&p, call->out[0], call->out[1], call->out[2], &a);
    end(&p);
    return status;
}

static int gradients(plan *p, dt_tensor *const *into, const dt_tensor *g,
                     const dt_attention *a, const dt_tensor *out,
                     const dt_tensor *log_sum)
{
    dt_attention_call *c = &p->call;
    dt_dtype dtype = (dt_dtype)a->query->dtype;
    dt_tensor made[3] = {{0}};
    DT_LOCAL(start);
    int status = 0;
    if (prepare(p, a) || take(p, &c->query, a->query, 1) ||
        take(p, &c->key, a->key, a->groups) ||
        take(p, &c->value, a->value, a->groups) || take_mask(p, a->mask) ||
        take_dropout(&c->dropout, &start, p->device, a->dropout, a->start) ||
        take(p, &c->out, out, 1) || take(p, &c->grad, g, 1) ||
        dt_storage_use(log_sum->storage))
        return -1;
    c->log_sum = dt_tensor_data(log_sum);
    dt_attention_matrices *const to[] = {&c->query_grad, &c->key_grad, &c->value_grad};
    const int64_t rows[] = {c->length, c->key_length, c->key_length};
    const int64_t columns[] = {c->size, c->size, c->value_size};
    const int64_t heads[] = {c->heads, c->key_heads, c->key_heads};
    for (int i = 0; i < 3 && !status; i++)
        if (into[i])
            status = make(p, to[i], &made[i], rows[i], columns[i], heads[i]);
    if (!status && !is_empty(c))
        status = dt_backend_of(p->device)->attention_backward(
            dt_stream_current(p->device), c);
    for (int i = 0; i < 3 && !status; i++)
        if (into[i])
            status =
                (is_empty(c) && dt_fill_into(NAME, &made[i], dt_scalar_float(0))) ||
                deliver(p, into[i], &made[i], i ? a->groups : 1, dtype);
    for (int i = 0; i < 3; i++)
        dt_tensor_clear(&made[i]);
    return status ? -1 : 0;
}

int dt_attention_gradients(dt_tensor *const *into, const dt_tensor *g,
                           const dt_attention *given, const dt_tensor *out,
                           const dt_tensor *log_sum)
{
    plan p;
    int status = gradients(&p, into, g, given, out, log_sum);
    end(&p);
    return status;
}

int dt_attention_mask(dt_tensor *out, dt_device device, int ndim, const int64_t *shape,
                      double dropout, const dt_tensor *start)
{
    dt_dropout_mask_call c = {.length = shape[ndim - 2], .key_length = shape[ndim - 1]};
    DT_LOCAL(kept);
    if (take_dropout(&c.dropout, &kept, device, dropout, start) ||
        dt_tensor_empty(NAME, out, DT_BOOL, ndim, shape, device) ||
        dt_storage_use(out->storage))
        return -1;
    if (!dropout)
        return dt_fill_into(NAME, out, dt_scalar_int(1));
    if (!out->numel)
        return 0;
    c.out = dt_tensor_data(out);
    c.batch = out->numel / (c.length * c.key_length);
    return dt_backend_of(device)->dropout_mask(dt_stream_current(device), &c);
}
