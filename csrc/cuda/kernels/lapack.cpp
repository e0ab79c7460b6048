#include "device/lapack.h"

#include "cuda/runtime/backend.h"

#ifdef DT_SIMULATED

int sim_lapack(dt_stream stream, const dt_lapack_call *call); /* sim/lapack.cpp */

int dt_cuda_lapack(dt_stream stream, const dt_lapack_call *call)
{
    return sim_lapack(stream, call);
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
