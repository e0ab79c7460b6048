/* Kernels that the program compiled: of simulated GPUs. */
#include "cuda/runtime/backend.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"
#include "device/module.h"

#ifdef DT_SIMULATED

int dt_cuda_module_load(int device, const char *path, void **out)
{
    if (device_check(device))
        return -1;
    const char *error = sim::module_load(path, out);
    return error ? dt_fail(DT_ERROR_RUNTIME, "%s", error) : 0;
}

int dt_cuda_module_kernel(void *module, const char *name, const dt_module_kernel **out)
{
    *out = sim::module_kernel(module, name);
    return *out ? 0 : dt_fail(DT_ERROR_RUNTIME, "the module has no kernel %s", name);
}

int dt_cuda_launch(dt_stream stream, const dt_module_call *c)
{
    Relaxed mode; /* the first launch of a kernel loads it */
    CUDA_TRY("launching a kernel of the program",
             sim::launch_module(*c, (cudaStream_t)stream.handle));
    return 0;
}

#else

static int refuse()
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "kernels from source run on simulated GPUs only: choose those with "
                   "PYDEVTENSOR_SIM_GPUS=2 or cuda.simulate(2)");
}

int dt_cuda_module_load(int, const char *, void **)
{
    return refuse();
}

int dt_cuda_module_kernel(void *, const char *, const dt_module_kernel **)
{
    return refuse();
}

int dt_cuda_launch(dt_stream, const dt_module_call *)
{
    return refuse();
}

#endif
