#include "cpu/kernels/nn.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/loop.h"
#include "cpu/runtime/pool.h"
#include "cpu/kernels/nn_kernels.h"

const unsigned char dt_nn_kinds[DT_NNN][DT_NN_OPERANDS] = {
#define OUT(name)         DT_NN_OUT,
#define INOUT(name)       DT_NN_INOUT,
#define OUT_PER_ROW(name) DT_NN_OUT_PER_ROW,
#define OUT_SHARED(name)  DT_NN_OUT_SHARED,
#define ROW(name)         DT_NN_ROW,
#define PER_ROW(name)     DT_NN_PER_ROW,
#define INDEX(name)       DT_NN_INDEX,
#define SHARED(name)      DT_NN_SHARED,
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
/* Columns that are turned into rows in one go: a line of memory or more; more of them
 * where they are short. */
#define COLUMNS    16
#define TILE_BYTES 131072

typedef struct job {
    const dt_nn_call *call;
    const unsigned char *kinds;
    const dt_nn_kernel *kernel;
    int64_t size;     /* bytes of an element */
    int64_t width;    /* columns of a tile */
    int64_t per_slab; /* tiles of one outer index */
    bool stream;
    int failed;
} job;

static bool is_whole(unsigned char kind)
{
    return kind == DT_NN_OUT || kind == DT_NN_ROW;
}

/* Where the row's elements are, of operands that need no tile. */
static void place(const job *j, int64_t number, dt_nn_row *row)
{
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        char *data = j->call->operands[k];
        switch (j->kinds[k]) {
        case DT_NN_OUT:
        case DT_NN_ROW:
            row->at[k] = data ? data + number * j->call->n * j->size : NULL;
            break;
        case DT_NN_OUT_PER_ROW:
        case DT_NN_PER_ROW:
            row->at[k] = data ? data + number * j->size : NULL;
            break;
        case DT_NN_INDEX:
            row->at[k] = data ? data + number * (int64_t)sizeof(int64_t) : NULL;
            break;
        default:
            row->at[k] = data;
        }
    }
}

/* --- rows of elements next to each other --- */

/* From a buffer in the first cache to memory, whole lines past the caches. */
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
        place(j, number, &row);
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
        if (j->kinds[k] == DT_NN_ROW)
            dt_cpu_kernels.copy->transpose[power](
                call->n, width, tiles[k], row_bytes,
                (char *)call->operands[k] + slab * call->n * line + first * j->size,
                line);
    }
    for (int64_t i = 0; i < width; i++) {
        place(j, slab * call->inner + first + i, &row);
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
    dt_nn_row row = {.n = j->call->n, .params = &j->call->params};
    row.n = call->inner;
    for (int64_t run = begin; run < end; run++) {
        for (int k = 0; k < DT_NN_OPERANDS; k++) {
            char *data = call->operands[k];
            int64_t first = is_whole(j->kinds[k]) ? run * call->inner : run % call->n;
            row.at[k] = data ? data + first * j->size : NULL;
        }
        j->kernel->channel(&row);
    }
}

/* --- elements: pieces of the one row --- */

static void run_elements(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    dt_nn_row row = {.n = j->call->n, .params = &j->call->params};
    row.n = end - begin;
    for (int k = 0; k < DT_NN_OPERANDS; k++) {
        char *data = j->call->operands[k];
        int64_t size = j->kinds[k] == DT_NN_MASK ? 1 : j->size;
        row.at[k] = data ? data + begin * size : NULL;
    }
    j->kernel->row(&row);
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
                           call->what, indices[i], call->n, call->n - 1);
    return 0;
}

int dt_cpu_nn(dt_stream stream, const dt_nn_call *call)
{
    (void)stream;
    if (ways[call->op] == BY_COLUMNS)
        return dt_cpu_columnwise(call);
    job j = {.call = call, .kinds = dt_nn_kinds[call->op], .size = 8};
    j.kernel = &dt_cpu_kernels.nn->float64[call->op];
    if (call->dtype == DT_FLOAT32) {
        j.kernel = &dt_cpu_kernels.nn->float32[call->op];
        j.size = 4;
    }
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        if (j.kinds[k] == DT_NN_INDEX && call->operands[k] &&
            check_indices(call, call->operands[k]))
            return -1;
    if (ways[call->op] == BY_ELEMENTS) {
        dt_pool_run(run_elements, &j, call->n, 2 * WORK);
        return 0;
    }
    int64_t rows = call->outer * call->inner;
    if (call->inner == 1) {
        int64_t bytes = call->n * j.size;
        j.stream = j.kinds[0] == DT_NN_OUT && bytes <= STAGE && bytes >= 256 &&
                   rows * bytes >= dt_loop_stream_bytes();
        dt_pool_run(run_rows, &j, rows, call->n < WORK ? WORK / call->n : 1);
        return 0;
    }
    if (ways[call->op] == BY_CHANNELS) {
        dt_pool_run(run_channels, &j, call->outer * call->n,
                    call->inner < WORK ? WORK / call->inner : 1);
        return 0;
    }
    j.width = TILE_BYTES / (call->n * j.size);
    j.width = j.width < COLUMNS ? COLUMNS : j.width & ~(int64_t)(COLUMNS - 1);
    j.width = j.width > call->inner ? call->inner : j.width;
    j.per_slab = (call->inner + j.width - 1) / j.width;
    int64_t tile = j.width * call->n;
    dt_pool_run(run_tiles, &j, call->outer * j.per_slab, tile < WORK ? WORK / tile : 1);
    if (!j.failed)
        return 0;
    return dt_fail(DT_ERROR_HOST_MEMORY,
                   "%s: no memory is left for %" PRId64
                   " bytes of scratch; free some, or make the dimension the last one",
                   call->what, tile_bytes(&j));
}
