#include "cuda/runtime/backend.h"
#include "device/nn_ops.h"

/* In nn_*.cu. */
#define NN_OP(name, ...) int nn_##name(dt_stream stream, const dt_nn_call *call);
#include "ops/nn.def"

int dt_cuda_nn(dt_stream stream, const dt_nn_call *call)
{
    static int (*const table[DT_NNN])(dt_stream stream, const dt_nn_call *call) = {
#define NN_OP(name, ...) nn_##name,
#include "ops/nn.def"
    };
    return table[call->op](stream, call);
}
