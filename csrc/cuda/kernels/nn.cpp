#include "cuda/runtime/backend.h"

int dt_cuda_nn(dt_stream stream, const dt_nn_call *call)
{
    static int (*const table[DT_NNN])(dt_stream stream, const dt_nn_call *call) = {
#define NN_OP(name, ...) nn_##name,
#include "ops/nn.def"
    };
    return table[call->op](stream, call);
}
