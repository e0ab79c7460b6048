/* Attention by tiles: products by BLAS, and what is between them a row at a time. */
#include "device/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "cpu/kernels/kernels.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Rows and keys of a tile, whose scores stay in the second cache. Many rows take each
 * key from memory less often, and BLAS packs it less often; few leave less of a causal
 * call's tiles unused, and give more threads something to do. */
#define ROWS      256
#define ROWS_FEW  64
#define ROWS_LONG 2048 /* from this length on a causal call has many */
#define TILES     8    /* that many threads find work in tiles of many rows */
#define KEYS      512

#define LONG 5e5 /* multiplications from which on the GIL is released */

typedef struct job {
    const dt_attention_call *call;
    const dt_attention_kernel *kernel;
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
    int64_t tiles = call->batch * call->heads * (call->length / ROWS);
    return (!call->causal || call->length >= ROWS_LONG) && tiles >= TILES ? ROWS
                                                                          : ROWS_FEW;
}

static job begin_attention(const dt_attention_call *call)
{
    bool narrow = call->dtype == DT_FLOAT32;
    int64_t rows = rows_of_a_tile(call);
    return (job){.call = call,
                 .kernel = narrow ? &dt_cpu_kernels.attention->float32
                                  : &dt_cpu_kernels.attention->float64,
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

/* --- products of matrices whose rows or columns are `a_row`, `a_col` ... apart --- */

typedef struct matrix {
    const void *data;
    int64_t row, column;
} matrix;

static matrix transposed(matrix m)
{
    return (matrix){m.data, m.column, m.row};
}

static void product(job *j, double scale, int64_t m, int64_t n, int64_t k, matrix a,
                    matrix b, void *out, int64_t out_row, bool adds)
{
    const dt_gemm g = {.dtype = j->call->dtype,
                       .batch = 1,
                       .m = m,
                       .n = n,
                       .k = k,
                       .a = a.data,
                       .a_row = a.row,
                       .a_col = a.column,
                       .b = b.data,
                       .b_row = b.row,
                       .b_col = b.column,
                       .c = out,
                       .c_row = out_row,
                       .alpha = scale,
                       .beta = adds};
    if (m && n && dt_cpu_tile_product(&g))
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
}

static void clear(const job *j, char *rows, int64_t count, int64_t row, int64_t size)
{
    for (int64_t i = 0; i < count; i++)
        memset(rows + i * row * j->size, 0, (size_t)(size * j->size));
}

/* Scratch of `tiles` tiles for a run of pieces of work. */
static char *tiles_new(job *j, int tiles)
{
    char *data = aligned_alloc(64, (size_t)(j->rows * KEYS * j->size * tiles));
    if (!data)
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
    return data;
}

/* --- forward --- */

static void run_rows(job *j, tile t, char *scores)
{
    const dt_attention_call *c = j->call;
    double top[ROWS], sum[ROWS];
    char *out = rows_of(j, &c->out, &t);
    for (int64_t i = 0; i < t.rows; i++) {
        top[i] = -(double)INFINITY;
        sum[i] = 0;
    }
    for (int64_t first = 0; take_keys(j, &t, first); first += KEYS) {
        matrix query = {rows_of(j, &c->query, &t), c->query.row, 1};
        matrix key = {keys_of(j, &c->key, &t), c->key.row, 1};
        matrix value = {keys_of(j, &c->value, &t), c->value.row, 1};
        product(j, c->scale, t.rows, t.keys, c->size, query, transposed(key), scores,
                KEYS, false);
        for (int64_t i = 0; i < t.rows; i++) {
            char *row = scores + i * KEYS * j->size;
            int64_t count = count_of(j, &t, i);
            dt_attention_mask mask = mask_of(j, &t, i);
            double factor =
                j->kernel->shares(t.keys, count, row, &mask, &top[i], &sum[i]);
            if (first && factor != 1)
                j->kernel->multiply(c->value_size, out + i * c->out.row * j->size,
                                    factor);
        }
        product(j, 1, t.rows, c->value_size, t.keys, (matrix){scores, KEYS, 1}, value,
                out, c->out.row, first > 0);
    }
    for (int64_t i = 0; i < t.rows; i++)
        j->kernel->multiply(c->value_size, out + i * c->out.row * j->size,
                            j->kernel->finish(top[i], sum[i], log_sum_of(j, &t, i)));
}

static void run_forward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    char *scores = tiles_new(j, 1);
    for (int64_t item = begin; scores && item < end; item++) {
        int64_t head = item / j->row_tiles;
        /* In a causal call the last rows have the most keys: they go first. */
        int64_t rows = j->row_tiles - 1 - item % j->row_tiles;
        run_rows(
            j,
            rows_from(j, head / j->call->heads, head % j->call->heads, rows * j->rows),
            scores);
    }
    free(scores);
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

/* Adds what a tile gives to the gradients: of its rows, and of its keys. `tiles`: room
 * for two. rows_add, keys_add: false where nothing has been written yet. */
static void run_tile(job *j, tile t, char *tiles, bool for_rows, bool rows_add,
                     bool for_keys, bool keys_add)
{
    const dt_attention_call *c = j->call;
    char *shares = tiles, *gradients = tiles + j->rows * KEYS * j->size;
    matrix query = {rows_of(j, &c->query, &t), c->query.row, 1};
    matrix key = {keys_of(j, &c->key, &t), c->key.row, 1};
    matrix value = {keys_of(j, &c->value, &t), c->value.row, 1};
    matrix grad = {rows_of(j, &c->grad, &t), c->grad.row, 1};
    const char *out = rows_of(j, &c->out, &t);
    product(j, c->scale, t.rows, t.keys, c->size, query, transposed(key), shares, KEYS,
            false);
    for (int64_t i = 0; i < t.rows; i++) {
        char *row = shares + i * KEYS * j->size;
        int64_t count = count_of(j, &t, i);
        dt_attention_mask mask = mask_of(j, &t, i);
        j->kernel->shares_again(t.keys, count, row, &mask, log_sum_of(j, &t, i));
    }
    if (for_keys && c->value_grad.data)
        product(j, 1, t.keys, c->value_size, t.rows, (matrix){shares, 1, KEYS}, grad,
                keys_of(j, &c->value_grad, &t), c->value_grad.row, keys_add);
    for_rows = for_rows && c->query_grad.data;
    for_keys = for_keys && c->key_grad.data;
    if (!for_rows && !for_keys)
        return;
    product(j, 1, t.rows, t.keys, c->value_size, grad, transposed(value), gradients,
            KEYS, false);
    for (int64_t i = 0; i < t.rows; i++) {
        int64_t row = i * KEYS * j->size;
        double out_dot = j->kernel->dot(
            c->value_size, (const char *)grad.data + i * grad.row * j->size,
            out + i * c->out.row * j->size);
        j->kernel->product_gradients(t.keys, shares + row, gradients + row, out_dot,
                                     c->scale);
    }
    if (for_rows)
        product(j, 1, t.rows, c->size, t.keys, (matrix){gradients, KEYS, 1}, key,
                rows_of(j, &c->query_grad, &t), c->query_grad.row, rows_add);
    if (for_keys)
        product(j, 1, t.keys, c->size, t.rows, (matrix){gradients, 1, KEYS}, query,
                keys_of(j, &c->key_grad, &t), c->key_grad.row, keys_add);
}

/* The keys from `first` on of a head of keys, and all rows of its group. */
static void run_keys(job *j, int64_t batch, int64_t head, int64_t first, char *tiles)
{
    const dt_attention_call *c = j->call;
    int64_t group = c->heads / c->key_heads, left = c->key_length - first;
    tile t = {batch, head * group, 0, 0, first, left < KEYS ? left : KEYS};
    bool adds = c->causal;
    /* The first rows of a causal call take some of the keys only, or none. */
    if (adds && c->key_grad.data)
        clear(j, keys_of(j, &c->key_grad, &t), t.keys, c->key_grad.row, c->size);
    if (adds && c->value_grad.data)
        clear(j, keys_of(j, &c->value_grad, &t), t.keys, c->value_grad.row,
              c->value_size);
    for (int64_t k = head * group; k < (head + 1) * group; k++)
        for (int64_t row = 0; row < c->length; row += j->rows, adds = true) {
            t = rows_from(j, batch, k, row);
            if (take_keys(j, &t, first))
                run_tile(j, t, tiles, j->whole, first > 0, true, adds);
        }
}

static void run_heads(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    int64_t heads = j->call->key_heads, each = j->whole ? 1 : j->key_tiles;
    char *tiles = tiles_new(j, 2);
    for (int64_t item = begin; tiles && item < end; item++) {
        int64_t batch = item / each / heads, head = item / each % heads;
        for (int64_t k = 0; k < (j->whole ? j->key_tiles : 1); k++)
            run_keys(j, batch, head, (item % each + k) * KEYS, tiles);
    }
    free(tiles);
}

static void run_rows_backward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    char *tiles = tiles_new(j, 2);
    for (int64_t item = begin; tiles && item < end; item++) {
        int64_t head = item / j->row_tiles;
        tile t = rows_from(j, head / j->call->heads, head % j->call->heads,
                           item % j->row_tiles * j->rows);
        for (int64_t first = 0; take_keys(j, &t, first); first += KEYS)
            run_tile(j, t, tiles, true, first > 0, false, false);
    }
    free(tiles);
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
