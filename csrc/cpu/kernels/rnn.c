#include "base/gil.h"
#include "cpu/runtime/backend.h"
#include "device/rnn_ops.h"

#include "cpu/kernels/kernels.h"
#include "cpu/runtime/pool.h"

/* Elements of a piece of parallel work, at least: each takes some exponentials. */
#define WORK 1024

static void run_rows(void *context, int64_t begin, int64_t end)
{
    const dt_rnn_call *call = context;
    const dt_rnn_kernels *kernels = dt_cpu_kernels.rnn;
    dt_rnn_kernel *kernel =
        (call->dtype == DT_FLOAT32 ? kernels->float32 : kernels->float64)[call->op];
    int64_t size = (int64_t)dt_dtype_size(call->dtype);
    for (int64_t row = begin; row < end; row++) {
        void *at[DT_RNN_OPERANDS];
        for (int k = 0; k < DT_RNN_OPERANDS; k++)
            at[k] = (char *)call->operands[k] + row * dt_rnn_row(call, k) * size;
        kernel(at, call->n);
    }
}

int dt_cpu_rnn(dt_stream stream, const dt_rnn_call *call)
{
    (void)stream;
    DT_WITHOUT_GIL(call->rows * call->n >= 2 * WORK);
    return dt_pool_try(run_rows, (void *)call, call->rows,
                       call->n < WORK ? WORK / call->n : 1);
}
