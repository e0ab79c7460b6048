#include "cuda/kernels/rnn.h"

int dt_cuda_rnn(dt_stream stream, const dt_rnn_call *call)
{
    switch (call->dtype) {
    case DT_FLOAT16:
        return run_step<dt_float16>(stream, call);
    case DT_BFLOAT16:
        return run_step<dt_bfloat16>(stream, call);
    case DT_FLOAT32:
        return run_step<float>(stream, call);
    default:
        return rnn_of_float64(stream, call);
    }
}
