/* Products of many small matrices with the same large one, such as the steps of a
 * recurrent layer have. BLAS would arrange the large one anew for each. */
#include <stdlib.h>

#include "base/gil.h"
#include "cpu/kernels/matmul.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/pool.h"

/* With fewer rows a product waits for memory; with more, arranging takes BLAS little of
 * the time. */
#define ROWS_LEAST 4
#define ROWS_MOST  192
#define LONG       5e5 /* multiplications from which on the GIL is released */
#define PIECE      1e6 /* that a thread does at least */

typedef struct packed_product {
    const dt_gemm *gemm;
    const dt_gemm_floats *kernel;
    int failed;
} packed_product;

static int64_t panels_of(const dt_gemm *g, const dt_gemm_floats *kernel)
{
    return (g->n + kernel->columns - 1) / kernel->columns;
}

void *dt_cpu_gemm_pack(const dt_gemm *g)
{
    const dt_gemm_floats *kernel = dt_gemm_floats_of(g->dtype);
    if (!kernel || g->m < ROWS_LEAST || g->m > ROWS_MOST || !g->k)
        return NULL;
    int64_t numel = panels_of(g, kernel) * kernel->columns * g->k;
    void *packed;
    if (posix_memalign(&packed, 64, (size_t)numel * dt_dtype_size(g->dtype)))
        return NULL;
    dt_gemm_args args = dt_gemm_args_of(g, NULL);
    kernel->pack(&args, packed);
    return packed;
}

static void run_panels(void *context, int64_t begin, int64_t end)
{
    packed_product *p = context;
    const dt_gemm *g = p->gemm;
    void *scratch = NULL;
    if (posix_memalign(&scratch, 64,
                       dt_cpu_kernels.gemm->scratch[g->dtype](g->m, 1, g->k))) {
        __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    dt_gemm_args args = dt_gemm_args_of(g, scratch);
    p->kernel->product(&args, begin, end);
    free(scratch);
}

int dt_cpu_gemm_with_packed(const dt_gemm *g)
{
    packed_product p = {.gemm = g, .kernel = dt_gemm_floats_of(g->dtype)};
    double panel = (double)g->m * (double)g->k * (double)p.kernel->columns;
    int64_t panels = panels_of(g, p.kernel);
    DT_WITHOUT_GIL(panel * (double)panels > LONG);
    /* A piece for each thread, since each piece packs a. */
    int64_t least = 1 + (int64_t)(PIECE / panel), threads = dt_pool_threads();
    int64_t each = (panels + threads - 1) / threads;
    if (dt_pool_try(run_panels, &p, panels, each > least ? each : least))
        return -1;
    return p.failed ? dt_fail(DT_ERROR_HOST_MEMORY,
                              "matmul: no memory to arrange the operands in; delete "
                              "some tensors first")
                    : 0;
}
