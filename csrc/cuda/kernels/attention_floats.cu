/* Attention of float32 on tensor cores. */
#include "cuda/kernels/attention_mma.h"

bool attention_fits_floats(const dt_attention_call *call, int capability)
{
    const int newest = newest_architecture();
    return call->dtype == DT_FLOAT32 &&
           dt_attention_on_tensor_cores(call, capability) &&
           (!newest || dt_attention_on_tensor_cores(call, newest));
}

int attention_of_floats(dt_stream stream, const dt_attention_call *call)
{
    TensorCoreTask task = tensor_core_task(call, {});
    return call->grad.data
               ? start_backward<float>(stream, task, start_gradients<float, false>)
               : start_forward<float, false>(stream, task);
}
