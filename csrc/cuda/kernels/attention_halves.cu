/* Attention of float16 and bfloat16 on tensor cores: by warps, or where they take the call by
 * warpgroups. */
#include "cuda/kernels/attention_mma.h"

int attention_of_halves(dt_stream stream, const dt_attention_call *call,
                        const Dropout &dropout)
{
    const int newest = newest_architecture();
    if (newest && !dt_attention_on_tensor_cores(call, newest))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "attention: kernels were built for compute capability %d.%d, which "
            "does not multiply %s; build pydevtensor for this GPU: "
            "PYDEVTENSOR_CUDA_ARCHS=native pip install .",
            newest / 10, newest % 10, dt_dtype_name(call->dtype));
    dt_device_properties gpu;
    if (dt_cuda_device_properties(stream.device, &gpu))
        return -1;
    TensorCoreTask task = tensor_core_task(call, dropout);
    const bool warpgroups = attention_fits_warpgroups(call, 10 * gpu.major + gpu.minor);
    if (call->grad.data)
        return start_backward<uint16_t>(stream, task,
                                        dropout.on ? attention_gradients_with_dropout
                                        : warpgroups
                                            ? attention_gradients_of_warpgroups
                                            : start_gradients<uint16_t, false>);
    return (dropout.on   ? attention_with_dropout
            : warpgroups ? attention_of_warpgroups
                         : start_forward<uint16_t, false>)(stream, task);
}
