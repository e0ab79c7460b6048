/* Failed CUDA calls as errors of the core. */
#ifndef DT_CUDA_RUNTIME_CHECK_H
#define DT_CUDA_RUNTIME_CHECK_H

#include <cuda_runtime.h>

#include "base/error.h"

/* Fails with the step that failed, CUDA's name and text for the error, and what to
 * do. Clears CUDA's last error, so that the next call starts clean. Returns -1. */
int cuda_fail(cudaError_t error, const char *doing);

/* Returns -1 from the enclosing function if the call fails. */
#define CUDA_TRY(doing, call)                                                          \
    do {                                                                               \
        cudaError_t cuda_status = (call);                                              \
        if (cuda_status != cudaSuccess)                                                \
            return cuda_fail(cuda_status, doing);                                      \
    } while (0)

#endif
