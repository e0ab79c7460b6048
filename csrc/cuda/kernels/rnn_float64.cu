#include "cuda/kernels/rnn.h"

int rnn_of_float64(dt_stream stream, const dt_rnn_call *call)
{
    return run_step<double>(stream, call);
}
