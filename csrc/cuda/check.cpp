#include "check.h"

/* After these the card's context is lost, and every later call fails the same way. */
static bool is_fatal(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
        return true;
    default:
        return false;
    }
}

static const char *advice(cudaError_t error)
{
    if (is_fatal(error))
        return "an earlier operation broke the GPU's work, which cannot be repaired in this "
               "process: start it again, with CUDA_LAUNCH_BLOCKING=1 to learn which one";
    switch (error) {
    case cudaErrorMemoryAllocation:
        return "free some tensors (del x) and cuda.empty_cache(), or use smaller batches";
    case cudaErrorNoKernelImageForDevice:
        return "this build has no code for the card: build pydevtensor with "
               "PYDEVTENSOR_CUDA_ARCHS=native";
    case cudaErrorInitializationError:
        return "start processes with multiprocessing's 'spawn' method, not 'fork', once CUDA "
               "is in use";
    case cudaErrorInsufficientDriver:
        return "install a newer NVIDIA driver";
    default:
        return "look with nvidia-smi whether the card is healthy and free, then try again in "
               "a new process";
    }
}

int dt_cuda_fail(const char *doing, cudaError_t error)
{
    cudaGetLastError();
    return dt_fail(DT_ERROR_ACCELERATOR, "CUDA error %s while %s: %s; %s",
                   cudaGetErrorName(error), doing, cudaGetErrorString(error),
                   advice(error));
}
