/* Sums over rows: the COLUMNS of ops/nn.def. Partial sums are in double, and how
 * the work is cut depends on sizes alone, so that a sum is the same each time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/runtime/pool.h"
#include "cpu/kernels/nn.h"
#include "cpu/kernels/nn_kernels.h"

/* Columns whose sums stay in the first cache, elements of a piece of work, pieces. */
#define BLOCK  512
#define WORK   65536
#define PIECES 16

typedef struct job {
    const dt_nn_call *call;
    const unsigned char *kinds;
    void (*kernel)(const dt_nn_columns *columns);
    int64_t size;         /* bytes of an element */
    int64_t pieces, rows; /* into which the rows are cut; of a piece */
    double *sums;         /* [piece][sum][column] */
} job;

static void *operand(const job *j, int k, int64_t row, int64_t column)
{
    char *data = j->call->operands[k];
    if (!data)
        return NULL;
    switch (j->kinds[k]) {
    case DT_NN_ROW:
        return data + (row * j->call->n + column) * j->size;
    case DT_NN_PER_ROW:
        return data + row * j->size;
    default:
        return data + column * j->size;
    }
}

static void run_columns(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_nn_call *call = j->call;
    int64_t blocks = (call->n + BLOCK - 1) / BLOCK;
    for (int64_t item = begin; item < end; item++) {
        int64_t piece = item / blocks, column = item % blocks * BLOCK;
        int64_t row = piece * j->rows;
        dt_nn_columns c = {.row = call->n};
        c.rows = call->outer - row < j->rows ? call->outer - row : j->rows;
        c.columns = call->n - column < BLOCK ? call->n - column : BLOCK;
        for (int k = 0; k < DT_NN_OPERANDS; k++)
            c.at[k] = operand(j, k, row, column);
        for (int s = 0; s < 2; s++) {
            double *sums = j->sums + (piece * 2 + s) * call->n + column;
            c.sums[s] = !s || (call->operands[s] && j->kinds[s] == DT_NN_OUT_SHARED)
                            ? sums
                            : NULL;
            for (int64_t i = 0; i < c.columns; i++)
                sums[i] = 0;
        }
        j->kernel(&c);
    }
}

/* One channel after the other, each a run of every outer index. */
static void run_channels(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const dt_nn_call *call = j->call;
    for (int64_t channel = begin; channel < end; channel++) {
        dt_nn_columns c = {.rows = 1, .columns = call->inner};
        for (int s = 0; s < 2; s++) {
            double *sum = j->sums + s * call->n + channel;
            c.sums[s] = !s || (call->operands[s] && j->kinds[s] == DT_NN_OUT_SHARED)
                            ? sum
                            : NULL;
            *sum = 0;
        }
        for (int64_t o = 0; o < call->outer; o++) {
            for (int k = 0; k < DT_NN_OPERANDS; k++) {
                char *data = call->operands[k];
                int64_t first = (o * call->n + channel) * call->inner;
                c.at[k] = !data ? NULL
                                : data + (j->kinds[k] == DT_NN_ROW ? first : channel) *
                                             j->size;
            }
            j->kernel(&c);
        }
    }
}

static void finish(const job *j)
{
    const dt_nn_call *call = j->call;
    for (int s = 0; s < 2; s++) {
        if (!call->operands[s] || j->kinds[s] != DT_NN_OUT_SHARED)
            continue;
        float *narrow = call->operands[s];
        double *wide = call->operands[s];
        for (int64_t i = 0; i < call->n; i++) {
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
}

int dt_cpu_columnwise(const dt_nn_call *call)
{
    bool narrow = call->dtype == DT_FLOAT32, runs = call->inner > 1;
    const dt_nn_kernel *kernel = narrow ? &dt_cpu_kernels.nn->float32[call->op]
                                        : &dt_cpu_kernels.nn->float64[call->op];
    job j = {.call = call, .kinds = dt_nn_kinds[call->op], .pieces = 1};
    j.kernel = runs ? kernel->run : kernel->columns;
    j.size = narrow ? 4 : 8;
    int64_t blocks = (call->n + BLOCK - 1) / BLOCK;
    if (!runs) {
        j.pieces = call->outer * call->n / WORK;
        j.pieces = j.pieces > PIECES ? PIECES : j.pieces < 1 ? 1 : j.pieces;
        j.rows = (call->outer + j.pieces - 1) / j.pieces;
        j.pieces = (call->outer + j.rows - 1) / j.rows;
    }
    j.sums = malloc((size_t)(j.pieces * 2 * call->n) * sizeof *j.sums);
    if (!j.sums)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "%s: no memory is left for %" PRId64 " sums; free some",
                       call->what, 2 * call->n);
    int64_t channel = call->outer * call->inner;
    if (runs)
        dt_pool_run(run_channels, &j, call->n,
                    channel < WORK / 4 ? WORK / 4 / channel : 1);
    else
        dt_pool_run(run_columns, &j, j.pieces * blocks, 1);
    finish(&j);
    free(j.sums);
    return 0;
}
