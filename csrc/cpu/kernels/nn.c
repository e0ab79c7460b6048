#include "base/gil.h"
#include "cpu/runtime/backend.h"
#include "device/nn_ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/chain_end.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"
#include "cpu/runtime/pool.h"

/* The kinds of operands in ops/nn.def. */
enum {
    DT_NN_NONE,
    DT_NN_OUT,
    DT_NN_INOUT,
    DT_NN_OUT_PER_ROW,
    DT_NN_OUT_SHARED,
    DT_NN_ROW,
    DT_NN_PER_ROW,
    DT_NN_INDEX,
    DT_NN_SHARED, /* or STATISTIC */
    DT_NN_SINGLE,
    DT_NN_MASK
};
static const unsigned char kinds[DT_NNN][DT_NN_OPERANDS] = {
#define OUT(name)         DT_NN_OUT,
#define INOUT(name)       DT_NN_INOUT,
#define OUT_PER_ROW(name) DT_NN_OUT_PER_ROW,
#define OUT_SHARED(name)  DT_NN_OUT_SHARED,
#define ROW(name)         DT_NN_ROW,
#define PER_ROW(name)     DT_NN_PER_ROW,
#define INDEX(name)       DT_NN_INDEX,
#define SHARED(name)      DT_NN_SHARED,
#define STATISTIC(name)   DT_NN_SHARED,
#define SINGLE(name)      DT_NN_SINGLE,
#define MASK(name)        DT_NN_MASK,
#define NN_OP(op, ...)    [DT_NN_##op] = {__VA_ARGS__},
#include "ops/nn.def"
};

enum { BY_ROWS, BY_CHANNELS, BY_COLUMNS, BY_ELEMENTS };
static const unsigned char ways[DT_NNN] = {
#define NN_OP(name, ...)    [DT_NN_##name] = BY_ROWS,
#define CHANNELS(name, ...) [DT_NN_##name] = BY_CHANNELS,
#define COLUMNS(name, ...)  [DT_NN_##name] = BY_COLUMNS,
#define ELEMENTS(name, ...) [DT_NN_##name] = BY_ELEMENTS,
#include "ops/nn.def"
};

/* Elements of a piece of parallel work, at least. */
#define WORK 8192
/* Bytes of rows that wait on the stack to go past the caches. */
#define STAGE 16384
/* Columns that one transpose turns into rows: a line of memory or more; more of them
 * where they are short. */
#define COLUMNS    16
#define TILE_BYTES 131072
/* For sums over rows: columns whose sums stay in the first cache, elements of a piece
 * of work, pieces. */
#define SUM_COLUMNS 512
#define SUM_WORK    65536
#define SUM_PIECES  16

typedef struct job {
    const dt_nn_call *call;
    const unsigned char *kinds;
    const dt_nn_kernel *kernel;
    int64_t size;     /* bytes of an element */
    int64_t width;    /* columns of a tile */
    int64_t per_slab; /* tiles of one outer index */
    bool stream;
    int fed;       /* the operand of the rows at x, or -1 */
    const char *x; /* from the first row of a piece on */
    int failed;
    int64_t pieces, rows; /* of sums over rows: pieces, and the rows of one */
    double *sums;         /* [piece][sum][column] */
} job;

static bool is_whole(unsigned char kind)
{
    return kind == DT_NN_OUT || kind == DT_NN_INOUT || kind == DT_NN_ROW;
}

/* Where element `column` of a row is in an operand of this kind, in bytes. */
static inline int64_t offset_of(const job *j, unsigned char kind, int64_t row,
                                int64_t column)
{
    switch (kind) {
    case DT_NN_OUT:
    case DT_NN_INOUT:
    case DT_NN_ROW:
        return (row * j->call->n + column) * j->size;
    case DT_NN_MASK:
        return (row * j->call->n + column) * (int64_t)sizeof(dt_bool);
    case DT_NN_OUT_PER_ROW:
    case DT_NN_PER_ROW:
        return row * j->size;
    case DT_NN_INDEX:
        return row * (int64_t)sizeof(int64_t);
    case DT_NN_SINGLE:
        return 0;
    default:
        return column * j->size;
    }
}

/* The addresses of operands, from element `column` of a row on. */
static void place(const job *j, int64_t row, int64_t column, void **at)
{
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        char *data = j->call->operands[k];
        at[k] = data ? data + offset_of(j, j->kinds[k], row, column) : NULL;
    }
}

/* The addresses of operands for the run of a channel in one outer index. */
static void place_channel(const job *j, int64_t outer, int64_t channel, void **at)
{
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        int64_t run = (outer * j->call->n + channel) * j->call->inner;
        char *data = j->call->operands[k];
        at[k] = data ? data + (is_whole(j->kinds[k]) ? run : channel) * j->size : NULL;
    }
}

/* --- rows of elements next to each other --- */

/* Copies from a buffer in the first cache to memory: whole lines go past the caches. */
static void stream_row(char *to, const char *from, int64_t bytes)
{
    int64_t head = (int64_t)(-(uintptr_t)to & 63);
    head = head > bytes ? bytes : head;
    int64_t lines = (bytes - head) & ~(int64_t)63;
    memcpy(to, from, (size_t)head);
    dt_cpu_kernels.copy->stream(to + head, from + head, lines);
    memcpy(to + head + lines, from + head + lines, (size_t)(bytes - head - lines));
}

static void run_rows(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    _Alignas(64) char stage[STAGE + 64];
    int64_t bytes = j->call->n * j->size;
    dt_nn_row row = {.n = j->call->n, .params = &j->call->params};
    for (int64_t number = begin; number < end; number++) {
        place(j, number, 0, row.at);
        if (j->fed >= 0)
            row.at[j->fed] = (char *)(uintptr_t)j->x + (number - begin) * bytes;
        if (!j->stream) {
            j->kernel->row(&row);
            continue;
        }
        char *to = row.at[0];
        row.at[0] = stage + ((uintptr_t)to & 63);
        j->kernel->row(&row);
        stream_row(to, row.at[0], bytes);
    }
    if (j->stream)
        dt_cpu_kernels.copy->stream_end();
}

/* --- rows across memory --- */

/* A tile of short rows is soon done. */
static bool stops_in_tile(const job *j)
{
    return j->call->n > WORK && dt_pool_is_stopping();
}

/* One tile: neighbouring columns of one outer index become rows of a buffer. */
static void run_tile(const job *j, int64_t tile, char *buffer)
{
    const dt_nn_call *call = j->call;
    int64_t slab = tile / j->per_slab, first = tile % j->per_slab * j->width;
    int64_t width = call->inner - first < j->width ? call->inner - first : j->width;
    int64_t row_bytes = call->n * j->size, line = call->inner * j->size;
    int power = __builtin_ctzll((unsigned long long)j->size);
    char *tiles[DT_NN_OPERANDS], *next = buffer;
    dt_nn_row row = {.n = j->call->n, .params = &j->call->params};
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        tiles[k] = next;
        if (!is_whole(j->kinds[k]))
            continue;
        next += j->width * row_bytes;
        if (stops_in_tile(j))
            return;
        if (j->kinds[k] == DT_NN_ROW)
            dt_cpu_kernels.copy->transpose[power](
                call->n, width, tiles[k], row_bytes,
                (char *)call->operands[k] + slab * call->n * line + first * j->size,
                line);
    }
    for (int64_t i = 0; i < width; i++) {
        if (stops_in_tile(j))
            return;
        place(j, slab * call->inner + first + i, 0, row.at);
        for (int k = 0; k < DT_NN_OPERANDS; k++)
            if (is_whole(j->kinds[k]))
                row.at[k] = tiles[k] + i * row_bytes;
        j->kernel->row(&row);
    }
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        if (j->kinds[k] == DT_NN_OUT)
            dt_cpu_kernels.copy->transpose[power](
                width, call->n,
                (char *)call->operands[k] + slab * call->n * line + first * j->size,
                line, tiles[k], row_bytes);
}

static int64_t tile_bytes(const job *j)
{
    int64_t whole = 0;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        whole += is_whole(j->kinds[k]);
    return whole * j->width * j->call->n * j->size;
}

static void run_tiles(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    char *buffer = aligned_alloc(64, (size_t)((tile_bytes(j) + 63) & ~(int64_t)63));
    if (!buffer) {
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t tile = begin; tile < end; tile++)
        run_tile(j, tile, buffer);
    free(buffer);
}

/* --- channels: each a run of elements for every outer index --- */

static void run_channels(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_nn_call *call = j->call;
    dt_nn_row row = {.n = call->inner, .params = &call->params};
    for (int64_t run = begin; run < end; run++) {
        place_channel(j, run / call->n, run % call->n, row.at);
        j->kernel->channel(&row);
    }
}

/* --- elements: pieces of the one row --- */

static void run_elements(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    dt_nn_row row = {.n = end - begin, .params = &j->call->params};
    place(j, 0, begin, row.at);
    j->kernel->row(&row);
}

/* --- sums over rows: partial ones are in double, and how the work is cut depends on
 * sizes alone, so that a sum is the same each time --- */

static bool wants_sum(const job *j, int s)
{
    return j->call->operands[s] && j->kinds[s] == DT_NN_OUT_SHARED;
}

/* Sums of n columns from 0 on; the kernel always computes the first. */
static void start_sums(const job *j, dt_nn_columns *c, double *sums, int64_t n)
{
    for (int s = 0; s < 2; s++, sums += j->call->n) {
        c->sums[s] = !s || wants_sum(j, s) ? sums : NULL;
        memset(sums, 0, (size_t)n * sizeof *sums);
    }
}

static void sum_columns(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_nn_call *call = j->call;
    int64_t blocks = (call->n + SUM_COLUMNS - 1) / SUM_COLUMNS;
    for (int64_t item = begin; item < end; item++) {
        int64_t piece = item / blocks, column = item % blocks * SUM_COLUMNS;
        int64_t row = piece * j->rows;
        dt_nn_columns c = {.row = call->n};
        c.rows = call->outer - row < j->rows ? call->outer - row : j->rows;
        c.columns = call->n - column < SUM_COLUMNS ? call->n - column : SUM_COLUMNS;
        place(j, row, column, c.at);
        start_sums(j, &c, j->sums + piece * 2 * call->n + column, c.columns);
        j->kernel->columns(&c);
    }
}

/* The channels of a chunk, each with one run for each outer index, in the order of
 * memory. */
static void sum_channels(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_nn_call *call = j->call;
    for (int64_t last; begin < end; begin = last) {
        int64_t piece = begin / call->n, channel = begin % call->n;
        int64_t left = call->n - channel, row = piece * j->rows;
        int64_t stop = call->outer - row < j->rows ? call->outer : row + j->rows;
        double *sums = j->sums + piece * 2 * call->n + channel;
        dt_nn_columns c = {.rows = 1, .columns = call->inner};
        last = end - begin < left ? end : begin + left;
        start_sums(j, &c, sums, last - begin);
        for (; row < stop; row++)
            for (int64_t i = 0; i < last - begin; i++) {
                place_channel(j, row, channel + i, c.at);
                c.sums[0] = sums + i;
                c.sums[1] = c.sums[1] ? sums + call->n + i : NULL;
                j->kernel->run(&c);
            }
    }
}

static void finish_sums(const job *j)
{
    const dt_nn_call *call = j->call;
    for (int s = 0; s < 2; s++) {
        float *narrow = call->operands[s];
        double *wide = call->operands[s];
        for (int64_t i = 0; wants_sum(j, s) && i < call->n; i++) {
            double sum = 0;
            for (int64_t p = 0; p < j->pieces; p++)
                sum += j->sums[(p * 2 + s) * call->n + i];
            sum *= call->params.scale;
            if (call->dtype == DT_FLOAT32)
                narrow[i] = (float)sum;
            else
                wide[i] = sum;
        }
    }
    if (!call->params.ratio)
        return;
    float *narrow[] = {call->operands[0], call->operands[1]};
    double *wide[] = {call->operands[0], call->operands[1]};
    for (int64_t i = 0; i < call->n; i++)
        if (call->dtype == DT_FLOAT32)
            narrow[0][i] /= narrow[1][i];
        else
            wide[0][i] /= wide[1][i];
}

static int run_sums(job *j)
{
    const dt_nn_call *call = j->call;
    j->pieces = call->outer * call->n * call->inner / SUM_WORK;
    j->pieces = j->pieces > SUM_PIECES ? SUM_PIECES : j->pieces < 1 ? 1 : j->pieces;
    j->rows = (call->outer + j->pieces - 1) / j->pieces;
    j->pieces = (call->outer + j->rows - 1) / j->rows;
    int64_t channel = j->rows * call->inner;
    j->sums = malloc((size_t)(j->pieces * 2 * call->n) * sizeof *j->sums);
    if (!j->sums)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "%s: no memory is left for %" PRId64 " sums; free some",
                       call->op_name, 2 * call->n);
    int64_t blocks = (call->n + SUM_COLUMNS - 1) / SUM_COLUMNS;
    int status = call->inner == 1
                     ? dt_pool_try(sum_columns, j, j->pieces * blocks, 1)
                     : dt_pool_try(sum_channels, j, j->pieces * call->n,
                                   channel < SUM_WORK / 4 ? SUM_WORK / 4 / channel : 1);
    if (!status)
        finish_sums(j);
    free(j->sums);
    return status;
}

/* --- calls --- */

/* IndexError for the first index that is out of range. */
static int check_indices(const dt_nn_call *call, const int64_t *indices)
{
    for (int64_t i = 0; i < call->outer * call->inner; i++)
        if ((uint64_t)indices[i] >= (uint64_t)call->n &&
            indices[i] != call->params.ignore_index)
            return dt_fail(DT_ERROR_INDEX,
                           "%s: target %" PRId64 " is out of bounds: there are %" PRId64
                           " classes; give targets from 0 to %" PRId64
                           ", or ignore_index",
                           call->op_name, indices[i], call->n, call->n - 1);
    return 0;
}

static job job_of(const dt_nn_call *call)
{
    job j = {.call = call, .kinds = kinds[call->op], .size = 8, .fed = -1};
    j.kernel = &dt_cpu_kernels.nn->float64[call->op];
    if (call->dtype == DT_FLOAT32) {
        j.kernel = &dt_cpu_kernels.nn->float32[call->op];
        j.size = 4;
    }
    const int64_t bytes = call->n * j.size;
    j.stream = call->inner == 1 && j.kinds[0] == DT_NN_OUT && bytes <= STAGE &&
               bytes >= 256 && call->outer * bytes >= dt_loop_stream_bytes();
    return j;
}

bool dt_cpu_nn_takes_rows(const dt_nn_call *call, int operand, unsigned *writes)
{
    const unsigned char *kind = kinds[call->op];
    *writes = 0;
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        if (kind[k] == DT_NN_INDEX || kind[k] == DT_NN_MASK)
            return false; /* an index may be out of range: an error of the call */
        if (kind[k] == DT_NN_OUT || kind[k] == DT_NN_OUT_PER_ROW)
            *writes |= 1u << k;
    }
    return ways[call->op] == BY_ROWS && call->inner == 1 && kind[operand] == DT_NN_ROW;
}

void dt_cpu_nn_rows(const dt_nn_call *call, int operand, const void *x, int64_t begin,
                    int64_t end)
{
    job j = job_of(call);
    j.fed = operand;
    j.x = x;
    run_rows(&j, begin, end);
}

int dt_cpu_nn(dt_stream stream, const dt_nn_call *call)
{
    (void)stream;
    DT_WITHOUT_GIL(call->outer * call->n * call->inner >= 2 * WORK);
    job j = job_of(call);
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        if (j.kinds[k] == DT_NN_INDEX && call->operands[k] &&
            check_indices(call, call->operands[k]))
            return -1;
    if (ways[call->op] == BY_COLUMNS)
        return run_sums(&j);
    if (ways[call->op] == BY_ELEMENTS)
        return dt_pool_try(run_elements, &j, call->n, 2 * WORK);
    int64_t rows = call->outer * call->inner;
    if (call->inner == 1)
        return dt_pool_try(run_rows, &j, rows, call->n < WORK ? WORK / call->n : 1);
    if (ways[call->op] == BY_CHANNELS)
        return dt_pool_try(run_channels, &j, call->outer * call->n,
                           call->inner < WORK ? WORK / call->inner : 1);
    j.width = TILE_BYTES / (call->n * j.size);
    j.width = j.width < COLUMNS ? COLUMNS : j.width & ~(int64_t)(COLUMNS - 1);
    j.width = j.width > call->inner ? call->inner : j.width;
    j.per_slab = (call->inner + j.width - 1) / j.width;
    int64_t tile = j.width * call->n;
    if (dt_pool_try(run_tiles, &j, call->outer * j.per_slab,
                    tile < WORK ? WORK / tile : 1) < 0)
        return -1;
    if (!j.failed)
        return 0;
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "%s: no memory is left for %" PRId64
                   " bytes of scratch; free some, or make the dimension the last one",
                   call->op_name, tile_bytes(&j));
}
