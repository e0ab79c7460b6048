#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"

#define WORK 16384 /* products in a piece of parallel work, at least */

static void run_resample(void *context, int64_t begin, int64_t end)
{
    dt_cpu_kernels.resample->run(context, begin, end);
}

int dt_cpu_resample(dt_stream stream, const dt_resample_call *call)
{
    (void)stream;
    dt_resample_call own = *call;
    bool rows = call->inner == 1;
    int64_t items = rows ? call->outer : call->outer * call->along.outputs;
    /* Per item, on average; y is written where there are no taps, too. */
    int64_t products = call->along.starts[call->along.outputs] + call->along.outputs;
    int64_t work = rows ? products : (products / call->along.outputs + 1) * call->inner;
    DT_WITHOUT_GIL((double)work * (double)items >= 2 * WORK);
    return dt_pool_try(run_resample, &own, items, WORK / work + 1);
}
