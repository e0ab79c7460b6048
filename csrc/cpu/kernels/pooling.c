#include "base/gil.h"
#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"

#define WORK 32768 /* elements of windows in a piece of parallel work, at least */

static void run_pooling(void *context, int64_t begin, int64_t end)
{
    dt_cpu_kernels.pooling->run(context, begin, end);
}

int dt_cpu_pooling(dt_stream stream, const dt_pooling_call *call)
{
    (void)stream;
    const dt_window *w = &call->window;
    dt_pooling_call own = *call;
    /* A row of windows is an item; backward, where windows share elements, a plane. */
    int64_t items = call->planes, each = w->output[2];
    if (dt_pooling_is_backward(call->op))
        each *= w->output[0] * w->output[1];
    else
        items *= w->output[0] * w->output[1];
    double work = (double)each * (double)w->kernel[0] * (double)w->kernel[1] *
                  (double)w->kernel[2];
    DT_WITHOUT_GIL(work * (double)items >= 2 * WORK);
    return dt_pool_try(run_pooling, &own, items,
                       work < WORK ? (int64_t)(WORK / work) + 1 : 1);
}
