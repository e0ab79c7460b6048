/* Attention by tiles: products of packed matrices, and what is between them a row at a
 * time. */
#include "device/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "cpu/kernels/matmul.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Keys of a tile, which are packed once for its rows; rows of a block, whose scores stay
 * in the second cache; and most rows of a tile. */
#define KEYS  256
#define BLOCK 48
#define ROWS  512
#define TILES 16 /* that many tiles give every thread something to do */

#define LONG 5e5 /* multiplications from which on the GIL is released */

typedef struct job {
    const dt_attention_call *call;
    const dt_attention_kernel *kernel;
    const dt_gemm_floats *gemm;
    int64_t size; /* bytes of an element */
    int64_t rows; /* of a tile */
    int64_t row_tiles, key_tiles;
    bool whole; /* of the backward pass: a piece of work is all of a head */
    int failed;
} job;

/* Rows first_row to first_row + rows - 1 of a head, and as many keys. */
typedef struct tile {
    int64_t batch, head, first_row, rows, first_key, keys;
} tile;

/* The threads do not choose, so that results do not depend on their number. */
static int64_t rows_of_a_tile(const dt_attention_call *call)
{
    int64_t rows = ROWS, heads = call->batch * call->heads;
    while (rows > BLOCK && heads * ((call->length + rows - 1) / rows) < TILES)
        rows /= 2;
    return rows;
}

static job begin_attention(const dt_attention_call *call)
{
    bool narrow = call->dtype == DT_FLOAT32;
    int64_t rows = rows_of_a_tile(call);
    return (job){.call = call,
                 .kernel = narrow ? &dt_cpu_kernels.attention->float32
                                  : &dt_cpu_kernels.attention->float64,
                 .gemm = dt_gemm_floats_of(call->dtype),
                 .size = narrow ? 4 : 8,
                 .rows = rows,
                 .row_tiles = (call->length + rows - 1) / rows,
                 .key_tiles = (call->key_length + KEYS - 1) / KEYS};
}

static int finish_attention(const job *j, int status)
{
    if (status)
        return -1;
    return j->failed ? dt_fail(DT_ERROR_HOST_MEMORY,
                               "scaled_dot_product_attention: no memory is left for "
                               "tiles; delete some tensors first")
                     : 0;
}

static char *at(const job *j, const dt_attention_matrices *m, int64_t batch,
                int64_t head, int64_t row)
{
    return (char *)m->data +
           (batch * m->batch + head * m->head + row * m->row) * j->size;
}

static int64_t key_head(const job *j, int64_t head)
{
    return head / (j->call->heads / j->call->key_heads);
}

/* Rows of this tile, and those of its keys. */
static char *rows_of(const job *j, const dt_attention_matrices *m, const tile *t)
{
    return at(j, m, t->batch, t->head, t->first_row);
}
static char *keys_of(const job *j, const dt_attention_matrices *m, const tile *t)
{
    return at(j, m, t->batch, key_head(j, t->head), t->first_key);
}

static tile rows_from(const job *j, int64_t batch, int64_t head, int64_t first)
{
    int64_t left = j->call->length - first;
    return (tile){batch, head, first, left < j->rows ? left : j->rows, 0, 0};
}

/* The rows from number `first` of the tile on; false: it has none. */
static bool take_block(const tile *t, int64_t first, tile *block)
{
    int64_t left = t->rows - first;
    *block = *t;
    block->first_row += first;
    block->rows = left < BLOCK ? left : BLOCK;
    return left > 0;
}

/* Goes to the keys from `first` on; false: none of them counts for a row of the
 * tile. */
static bool take_keys(const job *j, tile *t, int64_t first)
{
    int64_t end = j->call->key_length, last = t->first_row + t->rows;
    if (j->call->causal && end > last)
        end = last;
    t->first_key = first;
    t->keys = end - first < KEYS ? end - first : KEYS;
    return t->keys > 0;
}

/* How many keys of the tile count for its row i. */
static int64_t count_of(const job *j, const tile *t, int64_t i)
{
    int64_t count = t->first_row + i + 1 - t->first_key;
    if (!j->call->causal || count > t->keys)
        return t->keys;
    return count < 0 ? 0 : count;
}

static dt_attention_mask mask_of(const job *j, const tile *t, int64_t i)
{
    const dt_attention_call *c = j->call;
    const int64_t *s = c->mask_strides;
    int64_t from = t->batch * s[0] + t->head * s[1] + (t->first_row + i) * s[2] +
                   t->first_key * s[3];
    if (!c->mask)
        return (dt_attention_mask){NULL, 0, false};
    return (dt_attention_mask){(const char *)c->mask +
                                   from * (c->mask_is_bool ? 1 : j->size),
                               s[3], c->mask_is_bool};
}

static char *log_sum_of(const job *j, const tile *t, int64_t i)
{
    const dt_attention_call *c = j->call;
    return (char *)c->log_sum +
           ((t->batch * c->heads + t->head) * c->length + t->first_row + i) * j->size;
}

static void clear(const job *j, char *rows, int64_t count, int64_t row, int64_t size)
{
    for (int64_t i = 0; i < count; i++)
        memset(rows + i * row * j->size, 0, (size_t)(size * j->size));
}

/* --- products of matrices whose rows or columns are `a_row`, `a_col` ... apart --- */

typedef struct matrix {
    const void *data;
    int64_t row, column;
} matrix;

/* k rows of n columns. */
typedef struct packed {
    const void *data;
    int64_t n, k;
} packed;

static matrix transposed(matrix m)
{
    return (matrix){m.data, m.column, m.row};
}

/* The memory that a thread works in. Scores have rows DT_GEMM_PITCH long, other matrices are packed
 * as the products take them. */
typedef struct room {
    char *scores, *gradients, *a, *keys, *keys_across, *values, *rows, *grads;
} room;

static int64_t panels(const job *j, int64_t rows, int64_t columns)
{
    int64_t panel = j->gemm->columns;
    return (rows * ((columns + panel - 1) / panel) * panel * j->size + 63) / 64 * 64;
}

/* The parts of r behind each other; returns their bytes. */
static int64_t lay_out(const job *j, bool backward, room *r, char *data)
{
    const int64_t n = j->call->size, values = j->call->value_size;
    const int64_t longest = n > values ? n : values;
    const int64_t scores = BLOCK * DT_GEMM_PITCH * j->size;
    const int64_t a =
        (int64_t)dt_cpu_kernels.gemm->scratch[j->call->dtype](BLOCK, 1, longest);
    char *const first = data;
    struct {
        char **part;
        int64_t bytes;
    } parts[] = {
        {&r->scores, scores},
        {&r->a, (a + 63) / 64 * 64},
        {&r->keys, panels(j, n, KEYS)},
        {&r->values, backward ? panels(j, values, KEYS) : panels(j, KEYS, values)},
        {&r->gradients, backward * scores},
        {&r->keys_across, backward * panels(j, KEYS, n)},
        {&r->rows, backward * panels(j, BLOCK, n)},
        {&r->grads, backward * panels(j, BLOCK, values)}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].part = data;
        data += parts[i].bytes;
    }
    return data - first;
}

/* r.scores is what to free, or NULL. */
static room room_new(job *j, bool backward)
{
    room r;
    char *data = NULL;
    int64_t bytes = lay_out(j, backward, &r, data);
    if (posix_memalign((void **)&data, 64, (size_t)bytes)) {
        data = NULL;
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    }
    lay_out(j, backward, &r, data);
    return r;
}

/* A matrix of n columns of k to `out`. */
static void pack(const job *j, int64_t k, int64_t n, matrix b, char *out)
{
    const dt_gemm_args args = {
        .k = k, .n = n, .b = b.data, .b_row = b.row, .b_col = b.column};
    j->gemm->pack(&args, out);
}

/* out = scale * a @ the first n columns of the first k rows of b, which is packed. */
static void product(const job *j, const room *r, double scale, int64_t m, int64_t n,
                    int64_t k, matrix a, packed b, void *out, int64_t out_row,
                    bool adds)
{
    const dt_gemm_args args = {.m = m,
                               .n = n,
                               .k = k,
                               .a = a.data,
                               .a_row = a.row,
                               .a_col = a.column,
                               .b = b.data,
                               .packed_n = b.n,
                               .packed_k = b.k,
                               .c = out,
                               .c_row = out_row,
                               .alpha = scale,
                               .fresh = !adds,
                               .scratch = r->a};
    if (k)
        j->gemm->product(&args, 0, (n + j->gemm->columns - 1) / j->gemm->columns);
    else if (!adds)
        clear(j, out, m, out_row, n);
}

/* --- forward --- */

static void run_block(const job *j, const tile *t, const room *r, packed keys,
                      packed values, double *top, double *sum)
{
    const dt_attention_call *c = j->call;
    char *out = rows_of(j, &c->out, t);
    matrix query = {rows_of(j, &c->query, t), c->query.row, 1};
    product(j, r, c->scale, t->rows, t->keys, c->size, query, keys, r->scores,
            DT_GEMM_PITCH, false);
    for (int64_t i = 0; i < t->rows; i++) {
        char *row = r->scores + i * DT_GEMM_PITCH * j->size;
        int64_t count = count_of(j, t, i);
        dt_attention_mask mask = mask_of(j, t, i);
        double factor = j->kernel->shares(t->keys, count, row, &mask, &top[i], &sum[i]);
        if (t->first_key && factor != 1)
            j->kernel->multiply(c->value_size, out + i * c->out.row * j->size, factor);
    }
    product(j, r, 1, t->rows, c->value_size, t->keys,
            (matrix){r->scores, DT_GEMM_PITCH, 1}, values, out, c->out.row,
            t->first_key > 0);
}

static void run_rows(const job *j, tile t, const room *r)
{
    const dt_attention_call *c = j->call;
    double top[ROWS], sum[ROWS];
    tile block;
    for (int64_t i = 0; i < t.rows; i++) {
        top[i] = -(double)INFINITY;
        sum[i] = 0;
    }
    for (int64_t first = 0; take_keys(j, &t, first); first += KEYS) {
        matrix key = {keys_of(j, &c->key, &t), c->key.row, 1};
        matrix value = {keys_of(j, &c->value, &t), c->value.row, 1};
        pack(j, c->size, t.keys, transposed(key), r->keys);
        pack(j, t.keys, c->value_size, value, r->values);
        for (int64_t i = 0; take_block(&t, i, &block); i += BLOCK)
            if (take_keys(j, &block, first))
                run_block(j, &block, r, (packed){r->keys, t.keys, c->size},
                          (packed){r->values, c->value_size, t.keys}, top + i, sum + i);
    }
    for (int64_t i = 0; i < t.rows; i++)
        j->kernel->multiply(c->value_size,
                            rows_of(j, &c->out, &t) + i * c->out.row * j->size,
                            j->kernel->finish(top[i], sum[i], log_sum_of(j, &t, i)));
}

static void run_forward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    room r = room_new(j, false);
    for (int64_t item = begin; r.scores && item < end; item++) {
        int64_t head = item / j->row_tiles;
        /* In a causal call the last rows have the most keys: they go first. */
        int64_t rows = j->row_tiles - 1 - item % j->row_tiles;
        run_rows(
            j,
            rows_from(j, head / j->call->heads, head % j->call->heads, rows * j->rows),
            &r);
    }
    free(r.scores);
}

static double multiplications(const dt_attention_call *c)
{
    return (double)c->batch * (double)c->heads * (double)c->length *
           (double)c->key_length * (double)(c->size + c->value_size);
}

int dt_cpu_attention(dt_stream stream, const dt_attention_call *call)
{
    (void)stream;
    job j = begin_attention(call);
    double work = multiplications(call);
    DT_WITHOUT_GIL(work > LONG);
    return finish_attention(&j, dt_pool_try(run_forward, &j,
                                            call->batch * call->heads * j.row_tiles,
                                            work > LONG ? 1 : INT64_MAX));
}

/* --- backward --- */

/* The keys of a tile, for all of its rows. */
static void pack_keys(const job *j, const tile *t, const room *r)
{
    const dt_attention_call *c = j->call;
    matrix key = {keys_of(j, &c->key, t), c->key.row, 1};
    matrix value = {keys_of(j, &c->value, t), c->value.row, 1};
    pack(j, c->size, t->keys, transposed(key), r->keys);
    pack(j, c->value_size, t->keys, transposed(value), r->values);
    if (c->query_grad.data)
        pack(j, t->keys, c->size, key, r->keys_across);
}

/* Adds what a block of rows gives to the gradients: of its rows, and of its keys, of which
 * `keys` are packed. rows_add, keys_add: false where nothing has been written yet. */
static void run_block_backward(const job *j, const tile *t, int64_t keys, const room *r,
                               bool for_rows, bool rows_add, bool for_keys,
                               bool keys_add)
{
    const dt_attention_call *c = j->call;
    const int64_t pitch = DT_GEMM_PITCH;
    matrix query = {rows_of(j, &c->query, t), c->query.row, 1};
    matrix grad = {rows_of(j, &c->grad, t), c->grad.row, 1};
    const char *out = rows_of(j, &c->out, t);
    product(j, r, c->scale, t->rows, t->keys, c->size, query,
            (packed){r->keys, keys, c->size}, r->scores, pitch, false);
    for (int64_t i = 0; i < t->rows; i++) {
        char *row = r->scores + i * pitch * j->size;
        int64_t count = count_of(j, t, i);
        dt_attention_mask mask = mask_of(j, t, i);
        j->kernel->shares_again(t->keys, count, row, &mask, log_sum_of(j, t, i));
    }
    if (for_keys && c->value_grad.data) {
        pack(j, t->rows, c->value_size, grad, r->grads);
        product(j, r, 1, t->keys, c->value_size, t->rows, (matrix){r->scores, 1, pitch},
                (packed){r->grads, c->value_size, t->rows},
                keys_of(j, &c->value_grad, t), c->value_grad.row, keys_add);
    }
    for_rows = for_rows && c->query_grad.data;
    for_keys = for_keys && c->key_grad.data;
    if (!for_rows && !for_keys)
        return;
    product(j, r, 1, t->rows, t->keys, c->value_size, grad,
            (packed){r->values, keys, c->value_size}, r->gradients, pitch, false);
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t row = i * pitch * j->size;
        double out_dot = j->kernel->dot(
            c->value_size, (const char *)grad.data + i * grad.row * j->size,
            out + i * c->out.row * j->size);
        j->kernel->product_gradients(t->keys, r->scores + row, r->gradients + row,
                                     out_dot, c->scale);
    }
    if (for_rows)
        product(j, r, 1, t->rows, c->size, t->keys, (matrix){r->gradients, pitch, 1},
                (packed){r->keys_across, c->size, keys}, rows_of(j, &c->query_grad, t),
                c->query_grad.row, rows_add);
    if (for_keys) {
        pack(j, t->rows, c->size, query, r->rows);
        product(j, r, 1, t->keys, c->size, t->rows, (matrix){r->gradients, 1, pitch},
                (packed){r->rows, c->size, t->rows}, keys_of(j, &c->key_grad, t),
                c->key_grad.row, keys_add);
    }
}

/* The keys from `first` on of a head of keys, and all rows of its group. */
static void run_keys(const job *j, int64_t batch, int64_t head, int64_t first,
                     const room *r)
{
    const dt_attention_call *c = j->call;
    int64_t group = c->heads / c->key_heads, left = c->key_length - first;
    tile t = {batch, head * group, 0, c->length, first, left < KEYS ? left : KEYS};
    tile block;
    bool adds = c->causal;
    /* The first rows of a causal call take some of the keys only, or none. */
    if (adds && c->key_grad.data)
        clear(j, keys_of(j, &c->key_grad, &t), t.keys, c->key_grad.row, c->size);
    if (adds && c->value_grad.data)
        clear(j, keys_of(j, &c->value_grad, &t), t.keys, c->value_grad.row,
              c->value_size);
    pack_keys(j, &t, r);
    for (; t.head < (head + 1) * group; t.head++)
        for (int64_t row = 0; take_block(&t, row, &block); row += BLOCK, adds = true)
            if (take_keys(j, &block, first))
                run_block_backward(j, &block, t.keys, r, j->whole, first > 0, true,
                                   adds);
}

static void run_heads(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    int64_t heads = j->call->key_heads, each = j->whole ? 1 : j->key_tiles;
    room r = room_new(j, true);
    for (int64_t item = begin; r.scores && item < end; item++) {
        int64_t batch = item / each / heads, head = item / each % heads;
        for (int64_t k = 0; k < (j->whole ? j->key_tiles : 1); k++)
            run_keys(j, batch, head, (item % each + k) * KEYS, &r);
    }
    free(r.scores);
}

static void run_rows_backward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    room r = room_new(j, true);
    tile block;
    for (int64_t item = begin; r.scores && item < end; item++) {
        int64_t head = item / j->row_tiles;
        tile t = rows_from(j, head / j->call->heads, head % j->call->heads,
                           item % j->row_tiles * j->rows);
        for (int64_t first = 0; take_keys(j, &t, first); first += KEYS) {
            pack_keys(j, &t, &r);
            for (int64_t row = 0; take_block(&t, row, &block); row += BLOCK)
                if (take_keys(j, &block, first))
                    run_block_backward(j, &block, t.keys, &r, true, first > 0, false,
                                       false);
        }
    }
    free(r.scores);
}

int dt_cpu_attention_backward(dt_stream stream, const dt_attention_call *call)
{
    (void)stream;
    job j = begin_attention(call);
    double work = multiplications(call);
    int64_t heads = call->batch * call->key_heads, grain = work > LONG ? 1 : INT64_MAX;
    bool for_keys = call->key_grad.data || call->value_grad.data;
    DT_WITHOUT_GIL(work > LONG);
    /* One pass over a head takes five products instead of seven, but few heads do not
     * keep all threads busy. */
    j.whole = for_keys && (heads >= 2 * dt_pool_threads() || dt_pool_threads() == 1 ||
                           work <= LONG);
    int status = 0;
    if (for_keys)
        status = dt_pool_try(run_heads, &j, heads * (j.whole ? 1 : j.key_tiles), grain);
    if (!status && !j.whole && call->query_grad.data)
        status = dt_pool_try(run_rows_backward, &j,
                             call->batch * call->heads * j.row_tiles, grain);
    return finish_attention(&j, status);
}
