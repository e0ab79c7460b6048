#include "cuda/kernels/nn.h"

typedef int (*start_function)(dt_stream stream, const dt_nn_call *call);

int nn_run(dt_stream stream, const dt_nn_call *call)
{
    static const start_function table[DT_NNN][2] = {
#define NN_OP(name, ...) {nn_##name##_float32, nn_##name##_float64},
#include "ops/nn.def"
    };
    return table[call->op][call->dtype == DT_FLOAT64](stream, call);
}
