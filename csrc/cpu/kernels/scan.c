#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include <stdlib.h>

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"

#define WORK  32768  /* elements of a piece of parallel work, at least */
#define PART  131072 /* elements of a part of a long row */
#define APART 8      /* from so many columns on, they are scanned side by side */
#define ROWS  8192   /* of columns, between two looks for an interrupt */

typedef struct job {
    const dt_scan *s;
    const dt_scan_kernel *kernel;
    int64_t size, blocks;
    int64_t row, parts;    /* of a long row */
    dt_scan_state *states; /* of its parts */
    bool totals;
} job;

/* `n` elements of a row, from its element number `first` in the order of the scan. */
static void scan_some(const job *j, int64_t row, int64_t first, int64_t n, bool writes,
                      dt_scan_state *state)
{
    const dt_scan *s = j->s;
    int64_t way = s->backward ? -1 : 1, place = s->backward ? s->n - 1 - first : first;
    int64_t at = row / s->inner * s->n * s->inner + place * s->inner + row % s->inner;
    j->kernel->row(n, way * s->inner, (const char *)s->x + at * j->size,
                   writes ? (char *)s->out + at * j->size : NULL,
                   writes && s->index ? s->index + at : NULL, place, way, state);
}

static void scan_rows(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    for (int64_t row = begin; row < end; row++) {
        dt_scan_state state;
        j->kernel->start(&state);
        /* The last chunk is at least as long as the others: short rows are added in
         * another order. */
        for (int64_t first = 0, n; first < j->s->n; first += n) {
            int64_t left = j->s->n - first;
            n = left < 2 * PART ? left : PART;
            if (first && dt_pool_is_stopping())
                return;
            scan_some(j, row, first, n, true, &state);
        }
    }
}

/* `n` rows, from row number `first` in the order of the scan, of some columns. */
static inline void scan_block(const job *j, int64_t item, int64_t first, int64_t n,
                              dt_scan_state *states)
{
    const dt_scan *s = j->s;
    int64_t way = s->backward ? -1 : 1, place = s->backward ? s->n - 1 - first : first;
    int64_t column = item % j->blocks * DT_SCAN_COLUMNS;
    int64_t columns = s->inner - column;
    if (columns > DT_SCAN_COLUMNS)
        columns = DT_SCAN_COLUMNS;
    int64_t at = (item / j->blocks * s->n + place) * s->inner + column;
    j->kernel->columns(n, way * s->inner, columns, (const char *)s->x + at * j->size,
                       (char *)s->out + at * j->size, s->index ? s->index + at : NULL,
                       place, way, states);
}

static void scan_columns(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    for (int64_t item = begin; item < end; item++)
        scan_block(j, item, 0, j->s->n, NULL);
}

static void scan_long_columns(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    dt_scan_state states[DT_SCAN_COLUMNS];
    for (int64_t item = begin; item < end; item++) {
        for (int c = 0; c < DT_SCAN_COLUMNS; c++)
            j->kernel->start(&states[c]);
        for (int64_t first = 0; first < j->s->n; first += ROWS) {
            int64_t left = j->s->n - first;
            if (dt_pool_is_stopping())
                return;
            scan_block(j, item, first, left < ROWS ? left : ROWS, states);
        }
    }
}

static void scan_parts(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = part * PART,
                n = j->s->n - first > PART ? PART : j->s->n - first;
        scan_some(j, j->row, first, n, !j->totals, &j->states[part]);
    }
}

/* One row among several threads: the totals of its chunks, what precedes each
 * chunk, then the chunks. */
static int scan_long_row(job *j)
{
    dt_scan_state before;
    for (int64_t p = 0; p < j->parts; p++)
        j->kernel->start(&j->states[p]);
    j->totals = true;
    if (dt_pool_try(scan_parts, j, j->parts - 1, 1) < 0)
        return -1;
    j->kernel->start(&before);
    for (int64_t p = 0; p < j->parts; p++) {
        dt_scan_state total = j->states[p];
        j->states[p] = before;
        if (p < j->parts - 1)
            j->kernel->join(&before, &total);
    }
    j->totals = false;
    return dt_pool_try(scan_parts, j, j->parts, 1);
}

int dt_cpu_scan(dt_stream stream, dt_scan_op op, const dt_scan *s)
{
    (void)stream;
    job j = {.s = s, .size = (int64_t)dt_dtype_size(s->dtype)};
    const dt_scan_kernels *kernels = dt_cpu_kernels.scan;
    j.kernel = op + (s->dtype == DT_INT64     ? kernels->int64
                     : s->dtype == DT_FLOAT32 ? kernels->float32
                                              : kernels->float64);
    if (!j.kernel->row)
        return dt_fail(DT_ERROR_RUNTIME, "logcumsumexp: not defined for integers");
    int64_t rows = s->outer * s->inner, numel = rows * s->n;
    int threads = dt_pool_threads();
    DT_WITHOUT_GIL(numel >= 2 * WORK);
    if (s->inner >= APART) {
        j.blocks = (s->inner + DT_SCAN_COLUMNS - 1) / DT_SCAN_COLUMNS;
        int64_t each = s->n * (s->inner < DT_SCAN_COLUMNS ? s->inner : DT_SCAN_COLUMNS);
        return dt_pool_try(s->n > ROWS ? scan_long_columns : scan_columns, &j,
                           s->outer * j.blocks, (WORK + each - 1) / each);
    }
    if (threads > 1 && rows < 2 * (int64_t)threads && s->n >= 2 * PART) {
        j.parts = (s->n + PART - 1) / PART;
        j.states = malloc((size_t)j.parts * sizeof *j.states);
        if (!j.states)
            return dt_fail(DT_ERROR_HOST_MEMORY,
                           "a scan: no memory for partial results; delete some tensors "
                           "first");
        int status = 0;
        for (j.row = 0; j.row < rows && !status; j.row++)
            status = scan_long_row(&j);
        free(j.states);
        return status;
    }
    if (numel < 2 * WORK)
        scan_rows(&j, 0, rows);
    else
        return dt_pool_try(scan_rows, &j, rows, (WORK + s->n - 1) / s->n);
    return 0;
}
