/* CUDA calls that fail become errors of ours, in one place. */
#ifndef DT_CUDA_RUNTIME_CHECK_H
#define DT_CUDA_RUNTIME_CHECK_H

#include <cuda_runtime.h>

#include "base/error.h"

/* dt_fail with what was being done, CUDA's name and words, and what to do. Takes the
 * error out of CUDA's own memory, so that the next call starts clean. Returns -1. */
int cuda_fail(cudaError_t error, const char *doing);

/* Returns -1 from the enclosing function when the call fails. */
#define CUDA_TRY(doing, call)                                                          \
    do {                                                                               \
        cudaError_t cuda_status = (call);                                              \
        if (cuda_status != cudaSuccess)                                                \
            return cuda_fail(cuda_status, doing);                                      \
    } while (0)

#endif
