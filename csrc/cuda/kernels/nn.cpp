#include "cuda/kernels/nn.h"

#include "cuda/runtime/device.h"

int nn_run(dt_queue queue, const dt_nn_call *call)
{
    static const rowwise_fn table[DT_NNN][2] = {
#define NN_OP(name, ...) {rowwise_##name##_float32, rowwise_##name##_float64},
#include "ops/nn.def"
    };
    if (device_use(queue.device))
        return -1;
    return table[call->op][call->dtype == DT_FLOAT64](queue, call);
}
