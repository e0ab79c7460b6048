#include "cuda/rowwise.h"

#include "cuda/device.h"

int rowwise_run(dt_queue queue, const dt_rowwise *call)
{
    static const rowwise_fn table[DT_NROWWISE][2] = {
#define ROWWISE(name, ...) {rowwise_##name##_float32, rowwise_##name##_float64},
#include "ops/rowwise.def"
    };
    if (device_use(queue.device))
        return -1;
    return table[call->op][call->dtype == DT_FLOAT64](queue, call);
}
