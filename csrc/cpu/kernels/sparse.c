#include <inttypes.h>

#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"

#define WORK 16384 /* products in a piece of parallel work, at least */

typedef struct job {
    dt_sparse_call call;
    int64_t wrong; /* an entry whose index is out of range, or -1 */
} job;

static void run_sparse(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    int64_t wrong = dt_cpu_kernels.sparse->run(&j->call, begin, end);
    if (wrong >= 0)
        __atomic_store_n(&j->wrong, wrong, __ATOMIC_RELAXED);
}

int dt_cpu_sparse(dt_stream stream, const dt_sparse_call *call)
{
    (void)stream;
    job own = {*call, -1};
    const int64_t items = call->row_of ? call->count : call->rows;
    /* Per item, on average, with the writing of a row. */
    const double all = (double)call->n * (double)(call->count + items);
    const double work = all / (double)items;
    DT_WITHOUT_GIL(all >= 2 * WORK);
    if (dt_pool_try(run_sparse, &own, items, (int64_t)(WORK / work) + 1))
        return -1;
    if (own.wrong < 0)
        return 0;
    return dt_fail(DT_ERROR_INDEX,
                   "sparse product: entry %" PRId64 " of %" PRId64
                   " has an index out of range for %" PRId64 " rows and %" PRId64
                   " columns; make the tensor with check_invariants=True to see which",
                   own.wrong, call->count, call->rows, call->inner);
}
