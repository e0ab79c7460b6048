/* The product of two vectors. BLAS arranges them first, as it does matrices, and stays on
 * one thread. */
#include <stdlib.h>

#include "base/gil.h"
#include "cpu/kernels/matmul.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* Elements of a piece, whose sum depends on them alone, and pieces that a thread takes. */
#define PIECE 8192
#define SOME  4

typedef struct dot {
    const dt_gemm *gemm;
    const dt_gemm_floats *kernel;
    double *sums; /* of pieces */
} dot;

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    const dot *d = context;
    const dt_gemm *g = d->gemm;
    const int64_t size = (int64_t)dt_dtype_size(g->dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * PIECE, rest = g->k - first;
        d->sums[i] = d->kernel->dot(rest < PIECE ? rest : PIECE,
                                    (const char *)g->a + first * size,
                                    (const char *)g->b + first * size);
    }
}

bool dt_cpu_gemm_is_dot(const dt_gemm *g)
{
    return g->m * g->n * g->batch == 1 && g->a_col == 1 && g->b_row == 1 && !g->row &&
           g->k >= 128 && dt_gemm_floats_of(g->dtype);
}

int dt_cpu_gemm_dot(const dt_gemm *g)
{
    const int64_t pieces = (g->k + PIECE - 1) / PIECE;
    double few[64], sum = 0;
    dot d = {g, dt_gemm_floats_of(g->dtype), few};
    DT_WITHOUT_GIL(pieces > 8);
    if (pieces > 64 && !(d.sums = malloc((size_t)pieces * sizeof *d.sums)))
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "matmul: no memory for partial sums; delete some tensors first");
    const int status = dt_pool_try(run_pieces, &d, pieces, SOME);
    for (int64_t i = 0; i < pieces && !status; i++)
        sum += d.sums[i];
    if (d.sums != few)
        free(d.sums);
    if (status)
        return -1;
    sum *= g->alpha;
    if (g->dtype == DT_FLOAT32)
        *(float *)g->c =
            (float)(g->beta == 0 ? sum : sum + g->beta * (double)*(float *)g->c);
    else
        *(double *)g->c = g->beta == 0 ? sum : sum + g->beta * *(double *)g->c;
    return 0;
}
