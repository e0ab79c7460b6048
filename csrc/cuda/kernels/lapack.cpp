#include "device/lapack.h"

#include "cuda/runtime/backend.h"

#ifdef DT_SIMULATED

/* sim/lapack.cpp; -1 after dt_fail, else what queueing the work says. */
int sim_lapack(dt_stream stream, const dt_lapack_call *call, cudaError_t *error);

int dt_cuda_lapack(dt_stream stream, const dt_lapack_call *call)
{
    cudaError_t error;
    if (sim_lapack(stream, call, &error))
        return -1;
    CUDA_TRY("factorizing matrices", error);
    return 0;
}

#else

/* cuSOLVER is not used yet. */
int dt_cuda_lapack(dt_stream, const dt_lapack_call *)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "factorizations are not there for GPUs yet; bring the matrix to the "
                   "CPU with .cpu(), and the result back with .cuda()");
}

#endif
