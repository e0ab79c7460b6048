#include "device/extents.h"

#include <string.h>

#include "device/attention.h"
#include "device/chain.h"
#include "device/collective.h"
#include "device/fourier.h"
#include "device/convolution.h"
#include "device/module.h"
#include "device/lapack.h"
#include "device/nn.h"
#include "device/nn_ops.h"
#include "device/pooling.h"
#include "device/resample.h"
#include "device/rnn.h"
#include "device/rnn_ops.h"

/* Who visits the operands. */
typedef struct listing {
    dt_extent_visitor visit;
    void *context;
    bool indexed_read; /* of an index call */
} listing;

enum { READ = 1, WRITE = 2 };

static void dense(const listing *to, const void *data, int64_t numel, size_t item,
                  int use)
{
    if (!data || numel <= 0)
        return;
    const dt_extent extent = {.data = data,
                              .item = (int64_t)item,
                              .ndim = 1,
                              .shape = {numel},
                              .strides = {(int64_t)item},
                              .reads = use & READ,
                              .writes = use & WRITE};
    to->visit(to->context, &extent);
}

static dt_extent extent_at(const void *data, size_t item, int use)
{
    return (dt_extent){.data = data,
                       .item = (int64_t)item,
                       .reads = use & READ,
                       .writes = use & WRITE};
}

/* Adds a dimension; `stride` in bytes. */
static void add(dt_extent *extent, int64_t size, int64_t stride)
{
    extent->shape[extent->ndim] = size;
    extent->strides[extent->ndim++] = stride;
}

static void add_all(dt_extent *extent, int ndim, const int64_t *shape,
                    const int64_t *strides)
{
    for (int d = 0; d < ndim; d++)
        add(extent, shape[d], strides[d]);
}

static void say(const listing *to, const dt_extent *extent)
{
    if (extent->data)
        to->visit(to->context, extent);
}

static void visit_plan(const dt_plan *p, const listing *to)
{
    for (int i = p->noperands; i--;) {
        const dt_operand *operand = &p->operands[i];
        if (operand->scalar)
            continue;
        dt_extent extent =
            extent_at(operand->data, dt_dtype_size(operand->dtype), i ? READ : WRITE);
        add_all(&extent, p->ndim, p->shape, operand->strides);
        say(to, &extent);
    }
}

static void visit_reduction(const dt_reduction *r, const listing *to)
{
    if (r->reduced_numel) {
        dt_extent input = extent_at(r->input, dt_dtype_size(r->input_dtype), READ);
        add_all(&input, r->kept_ndim, r->kept_shape, r->kept_strides);
        add_all(&input, r->reduced_ndim, r->reduced_shape, r->reduced_strides);
        say(to, &input);
    }
    dense(to, r->output, r->kept_numel, dt_dtype_size(r->output_dtype), WRITE);
    dense(to, r->index, r->kept_numel, sizeof *r->index, WRITE);
}

static void visit_gemm(const dt_gemm *g, const listing *to)
{
    const int64_t item = (int64_t)dt_dtype_size(g->dtype);
    dt_extent a = extent_at(g->a, (size_t)item, READ),
              b = extent_at(g->b, (size_t)item, READ);
    dt_extent c =
        extent_at(g->c, (size_t)item, g->beta == 0 || g->row ? WRITE : READ | WRITE);
    add(&a, g->batch, g->a_batch * item);
    add(&a, g->m, g->a_row * item);
    add(&a, g->k, g->a_col * item);
    add(&b, g->batch, g->b_batch * item);
    add(&b, g->k, g->b_row * item);
    add(&b, g->n, g->b_col * item);
    add(&c, g->batch, g->c_batch * item);
    add(&c, g->m, g->c_row * item);
    add(&c, g->n, item);
    if (g->k) {
        say(to, &a);
        say(to, &b);
    }
    dense(to, g->row, g->n, (size_t)item, READ);
    say(to, &c);
}

static void visit_sparse(const dt_sparse_call *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->dtype);
    dense(to, c->starts, c->rows + 1, sizeof *c->starts, READ);
    dense(to, c->row_of, c->count, sizeof *c->row_of, READ);
    dense(to, c->columns, c->count, sizeof *c->columns, READ);
    dense(to, c->values, c->count, item, c->row_of ? WRITE : READ);
    dense(to, c->y, c->rows * c->n, item, c->row_of ? READ : WRITE);
    dense(to, c->x, c->inner * c->n, item, READ);
}

static void visit_arange(const dt_arange_call *c, const listing *to)
{
    dense(to, c->out, c->numel, dt_dtype_size(c->dtype), WRITE);
}

static void visit_random(const dt_random_call *c, const listing *to)
{
    dense(to, c->out, c->numel, dt_dtype_size(c->dtype), WRITE);
    dense(to, c->x, c->numel, dt_dtype_size(c->dtype), READ);
    dense(to, c->mask, c->numel, sizeof *c->mask, WRITE);
}

static void visit_index(const dt_index_call *c, const listing *to)
{
    const bool reads = to->indexed_read;
    const size_t item = dt_dtype_size(c->dtype);
    for (int k = 0; k < c->nindices; k++) {
        dt_extent index = extent_at(c->indices[k].data, sizeof(int64_t), READ);
        add_all(&index, c->ndim, c->shape, c->indices[k].strides);
        say(to, &index);
    }
    /* Which elements of an indexed dimension are meant is not known before it runs. */
    dt_extent table = extent_at(c->table, item, reads ? READ : READ | WRITE);
    add_all(&table, c->ndim, c->shape, c->table_strides);
    for (int k = 0; k < c->nindices; k++)
        add(&table, c->indices[k].size, c->indices[k].stride);
    say(to, &table);
    dt_extent values = extent_at(c->values, item, reads ? WRITE : READ);
    add_all(&values, c->ndim, c->shape, c->value_strides);
    say(to, &values);
}

static void visit_optim(const dt_optim_call *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->stored);
    for (int64_t i = 0; i < c->count; i++) {
        const dt_optim_entry *entry = &c->entries[i];
        dense(to, entry->gradient, entry->numel, item, READ);
        dense(to, entry->parameter, entry->numel, item, READ | WRITE);
        for (int k = 0; k < DT_OPTIM_STATES; k++)
            dense(to, entry->states[k], entry->numel, item, READ | WRITE);
        dense(to, entry->own_there, DT_OPTIM_OWN, sizeof(double), READ);
    }
    dense(to, c->scale, 1, dt_dtype_size(c->dtype), READ);
    dense(to, c->found, 1, sizeof *c->found, WRITE);
    dense(to, c->rate, 1, c->rate_is_wide ? sizeof(double) : sizeof(float), READ);
}

static void visit_nonzero(const dt_nonzero_call *c, const listing *to)
{
    dt_tiles tiles = dt_tiles_of(c->numel);
    dense(to, c->holds, c->numel, sizeof *c->holds, READ);
    dense(to, c->workspace, tiles.tiles + tiles.groups + 1, sizeof *c->workspace,
          READ | WRITE);
    dt_extent out = extent_at(c->out, 0, WRITE); /* as many as are true */
    say(to, &out);
}

static void visit_scan(const dt_scan *s, const listing *to)
{
    const int64_t numel = s->outer * s->n * s->inner;
    dense(to, s->x, numel, dt_dtype_size(s->dtype), READ);
    dense(to, s->out, numel, dt_dtype_size(s->dtype), WRITE);
    dense(to, s->index, numel, sizeof *s->index, WRITE);
}

static void visit_sorting(const dt_sorting *s, const listing *to)
{
    dense(to, s->x, s->rows * s->n, dt_dtype_size(s->dtype), READ);
    dense(to, s->values, s->rows * s->k, dt_dtype_size(s->dtype), WRITE);
    dense(to, s->index, s->rows * s->k, sizeof *s->index, WRITE);
}

static void visit_search(const dt_search *s, const listing *to)
{
    dense(to, s->sequence, s->rows * s->n, dt_dtype_size(s->dtype), READ);
    dense(to, s->values, s->rows * s->m, dt_dtype_size(s->dtype), READ);
    dense(to, s->sorter, s->rows * s->n, sizeof *s->sorter, READ);
    dense(to, s->out, s->rows * s->m, sizeof *s->out, WRITE);
}

/* An operand of ops/nn.def: how many elements of which size. */
typedef struct nn_operand {
    enum { EACH, A_ROW, FOR_ALL, ONE } count;
    enum { COMPUTED, STORED, INT64, BOOL } type;
    int use;
} nn_operand;

static const nn_operand nn_operands[DT_NNN][DT_NN_OPERANDS] = {
#define OUT(name)         {EACH, STORED, WRITE},
#define INOUT(name)       {EACH, STORED, READ | WRITE},
#define OUT_PER_ROW(name) {A_ROW, COMPUTED, WRITE},
#define OUT_SHARED(name)  {FOR_ALL, COMPUTED, WRITE},
#define ROW(name)         {EACH, STORED, READ},
#define PER_ROW(name)     {A_ROW, COMPUTED, READ},
#define INDEX(name)       {A_ROW, INT64, READ},
#define SHARED(name)      {FOR_ALL, STORED, READ},
#define STATISTIC(name)   {FOR_ALL, COMPUTED, READ},
#define SINGLE(name)      {ONE, COMPUTED, READ},
#define MASK(name)        {EACH, BOOL, READ},
#define NN_OP(name, ...)  [DT_NN_##name] = {__VA_ARGS__},
#include "ops/nn.def"
};

static void visit_nn(const dt_nn_call *c, const listing *to)
{
    const int64_t rows = c->outer * c->inner;
    const int64_t counts[] = {
        [EACH] = rows * c->n, [A_ROW] = rows, [FOR_ALL] = c->n, 1};
    const size_t sizes[] = {dt_dtype_size(c->dtype), dt_dtype_size(c->stored),
                            sizeof(int64_t), sizeof(dt_bool)};
    for (int i = 0; i < DT_NN_OPERANDS; i++) {
        const nn_operand *operand = &nn_operands[c->op][i];
        if (operand->use)
            dense(to, c->operands[i], counts[operand->count], sizes[operand->type],
                  operand->use);
    }
}

static void matrices(const listing *to, const dt_attention_call *c,
                     const dt_attention_matrices *m, bool of_queries, int64_t width,
                     int use)
{
    const int64_t item = (int64_t)dt_dtype_size(c->dtype);
    dt_extent extent = extent_at(m->data, (size_t)item, use);
    add(&extent, c->batch, m->batch * item);
    add(&extent, of_queries ? c->heads : c->key_heads, m->head * item);
    add(&extent, of_queries ? c->length : c->key_length, m->row * item);
    add(&extent, width, item);
    say(to, &extent);
}

static void visit_attention(const dt_attention_call *c, const listing *to)
{
    const bool backward = c->grad.data;
    const int use = backward ? READ : WRITE;
    const size_t statistic = dt_dtype_size(dt_dtype_compute(c->dtype));
    matrices(to, c, &c->query, true, c->size, READ);
    matrices(to, c, &c->key, false, c->size, READ);
    matrices(to, c, &c->value, false, c->value_size, READ);
    if (c->mask) {
        size_t item = c->mask_is_bool ? sizeof(dt_bool) : statistic;
        const int64_t shape[] = {c->batch, c->heads, c->length, c->key_length};
        dt_extent mask = extent_at(c->mask, item, READ);
        for (int d = 0; d < 4; d++)
            add(&mask, shape[d], c->mask_strides[d] * (int64_t)item);
        say(to, &mask);
    }
    matrices(to, c, &c->out, true, c->value_size, use);
    dense(to, c->log_sum, c->batch * c->heads * c->length, statistic, use);
    dense(to, c->dropout.start, 2, sizeof(int64_t),
          c->dropout.generator ? WRITE : READ);
    if (!backward)
        return;
    matrices(to, c, &c->grad, true, c->value_size, READ);
    matrices(to, c, &c->query_grad, true, c->size, WRITE);
    matrices(to, c, &c->key_grad, false, c->size, WRITE);
    matrices(to, c, &c->value_grad, false, c->value_size, WRITE);
}

static void visit_dropout_mask(const dt_dropout_mask_call *c, const listing *to)
{
    dense(to, c->out, c->batch * c->length * c->key_length, sizeof *c->out, WRITE);
    dense(to, c->dropout.start, 2, sizeof(int64_t),
          c->dropout.generator ? WRITE : READ);
}

static const char *const rnn_names[DT_NRNN][DT_RNN_OPERANDS] = {
#define EACH(name, width)   #name,
#define STATE(name, width)  #name,
#define SHARED(name, width) #name,
#define RNN_OP(name, ...)   [DT_RNN_##name] = {__VA_ARGS__},
#include "ops/rnn.def"
};

/* A step forward may write all that rows have; one backward the gradients of its inputs,
 * whose names begin with d, but for that of y. */
static int rnn_use(dt_rnn_op op, int k)
{
    const char *name = rnn_names[op][k];
    if (dt_rnn_operands[op][k].shared)
        return READ;
    const bool backward = !strcmp(rnn_names[op][1], "dh");
    return !backward || (name[0] == 'd' && strcmp(name, "dy")) ? READ | WRITE : READ;
}

static void visit_rnn(const dt_rnn_call *c, const listing *to)
{
    for (int k = 0; k < DT_RNN_OPERANDS; k++) {
        const dt_rnn_operand *operand = &dt_rnn_operands[c->op][k];
        if (operand->width)
            dense(to, c->operands[k],
                  operand->width * c->n * (operand->shared ? 1 : c->rows),
                  dt_dtype_size(c->dtype), rnn_use(c->op, k));
    }
}

static void visit_norm(const dt_foreach_norm_call *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->stored);
    int64_t chunks = 0;
    for (int64_t i = 0; i < c->count; i++) {
        const dt_foreach_norm_entry *entry = &c->entries[i];
        dense(to, entry->data, entry->numel, item, READ);
        chunks = entry->first +
                 (entry->numel + DT_FOREACH_NORM_CHUNK - 1) / DT_FOREACH_NORM_CHUNK;
    }
    dense(to, c->partials, chunks, dt_dtype_size(c->dtype), WRITE);
}

static void visit_convolution(const dt_convolution *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->dtype);
    const int64_t in = c->groups * c->in, out = c->groups * c->out;
    const dt_convolution_part part = c->part;
    dense(to, c->x, c->batch * in * dt_window_volume(c->window.input), item,
          part == DT_CONVOLUTION_INPUT ? WRITE : READ);
    dense(to, c->w, out * c->in * dt_window_volume(c->window.kernel), item,
          part == DT_CONVOLUTION_WEIGHT ? WRITE : READ);
    dense(to, c->y, c->batch * out * dt_window_volume(c->window.output), item,
          part == DT_CONVOLUTION_OUTPUT ? WRITE : READ);
    dense(to, c->bias, part == DT_CONVOLUTION_INPUT ? in : out, item, READ);
}

static void visit_pooling(const dt_pooling_call *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->dtype);
    int64_t from = c->planes * dt_window_volume(c->window.input),
            into = c->planes * dt_window_volume(c->window.output);
    const bool backward = dt_pooling_is_backward(c->op);
    dense(to, c->x, backward ? into : from, item, READ);
    dense(to, c->y, backward ? from : into, item, WRITE);
    dense(to, c->index, into, sizeof *c->index, backward ? READ : WRITE);
}

static void visit_resample(const dt_resample_call *c, const listing *to)
{
    const size_t item = dt_dtype_size(c->dtype);
    const int64_t rows = c->outer * c->inner;
    dense(to, c->x, rows * c->above.inputs * c->along.inputs, item, READ);
    dense(to, c->y, rows * c->above.outputs * c->along.outputs, item, WRITE);
}

static void visit_lapack(const dt_lapack_call *c, const listing *to)
{
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    for (int i = dt_lapack_operands(c, operands); i--;)
        dense(to, c->operands[i], c->batch * operands[i].size,
              dt_dtype_size(operands[i].dtype),
              operands[i].written ? READ | WRITE : READ);
}

static void visit_launch(const dt_module_call *c, const listing *to)
{
    for (int i = 0; i < c->noperands; i++)
        say(to, &c->operands[i]);
}

static void visit_fourier(const dt_fourier_call *c, const listing *to)
{
    dense(to, c->x, dt_fourier_bytes(c, true), 1,
          c->kind == DT_FOURIER_TO_REAL ? READ | WRITE : READ);
    dense(to, c->y, dt_fourier_bytes(c, false), 1, WRITE);
}

static void visit_collective(const dt_collective_call *c, const listing *to)
{
    for (int i = 0; i < c->count; i++) {
        const dt_collective *item = &c->items[i];
        const size_t size = dt_dtype_size(item->dtype);
        dense(to, item->send, dt_collective_sent(item, c->ranks), size, READ);
        dense(to, item->receive, dt_collective_received(item, c->ranks), size, WRITE);
    }
}

void dt_extents(int work, const char *name, const void *call, dt_extent_visitor visit,
                void *context)
{
    const listing to = {visit, context, !strcmp(name, "index_read")};
    switch ((dt_work)work) {
    case DT_WORK_NONE:
        break;
    case DT_WORK_HOST_USE:
        say(&to, call);
        break;
    case DT_WORK_CHAIN:
        dt_chain_visit(call, visit, context);
        break;
#define WORK(member, parameters, arguments, extents, ...)                              \
    case DT_WORK_##member:                                                             \
        visit_##extents(call, &to);                                                    \
        break;
#include "device/works.def"
    }
}
