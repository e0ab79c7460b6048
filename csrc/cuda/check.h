/* The one way to call the CUDA runtime: a call that fails becomes an error of the core. */
#ifndef DT_CUDA_CHECK_H
#define DT_CUDA_CHECK_H

#include <cuda_runtime.h>

#include "base/error.h"

/* Fills the error slot from a CUDA error: what was being done, CUDA's name and words, and what
 * to do. Forgets the runtime's own last error. Returns -1. */
int dt_cuda_fail(const char *doing, cudaError_t error);

static inline int dt_cuda_check(const char *doing, cudaError_t error)
{
    return __builtin_expect(error == cudaSuccess, 1) ? 0 : dt_cuda_fail(doing, error);
}

/* 0, or -1 after dt_fail. `doing` reads on after "while": "copying to the GPU". */
#define CUDA_CHECK(doing, call) dt_cuda_check(doing, (cudaError_t)(call))

#endif
