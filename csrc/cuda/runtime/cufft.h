/* The part of cuFFT that is used. Nothing installs it for this library; where it is found,
 * as beside PyTorch, transforms on GPUs are its. Declared here as in cublas.h. */
#ifndef DT_CUDA_RUNTIME_CUFFT_H
#define DT_CUDA_RUNTIME_CUFFT_H

#include <cuda_runtime.h>

#include "cuda/runtime/library.h"

enum { DT_CUFFT_ALLOC_FAILED = 2 };
enum {
    DT_CUFFT_R2C = 0x2a,
    DT_CUFFT_C2R = 0x2c,
    DT_CUFFT_C2C = 0x29,
    DT_CUFFT_D2Z = 0x6a,
    DT_CUFFT_Z2D = 0x6c,
    DT_CUFFT_Z2Z = 0x69
};
enum { DT_CUFFT_FORWARD = -1, DT_CUFFT_INVERSE = 1 };

/* Elements are void here. */
#define DT_CUFFT_FUNCTIONS(FUNCTION)                                                   \
    FUNCTION(create, cufftCreate, (int *plan))                                         \
    FUNCTION(destroy, cufftDestroy, (int plan))                                        \
    FUNCTION(set_own_workspace, cufftSetAutoAllocation, (int plan, int automatic))     \
    FUNCTION(make, cufftMakePlanMany64,                                                \
             (int plan, int ndim, long long *sizes, long long *in_sizes,               \
              long long in_step, long long in_next, long long *out_sizes,              \
              long long out_step, long long out_next, int type, long long batch,       \
              size_t *workspace))                                                      \
    FUNCTION(set_stream, cufftSetStream, (int plan, cudaStream_t stream))              \
    FUNCTION(set_workspace, cufftSetWorkArea, (int plan, void *workspace))             \
    FUNCTION(complex64, cufftExecC2C, (int plan, void *x, void *y, int direction))     \
    FUNCTION(complex128, cufftExecZ2Z, (int plan, void *x, void *y, int direction))    \
    FUNCTION(from_float32, cufftExecR2C, (int plan, void *x, void *y))                 \
    FUNCTION(from_float64, cufftExecD2Z, (int plan, void *x, void *y))                 \
    FUNCTION(to_float32, cufftExecC2R, (int plan, void *x, void *y))                   \
    FUNCTION(to_float64, cufftExecZ2D, (int plan, void *x, void *y))                   \
    FUNCTION(get_version, cufftGetVersion, (int *version))

typedef struct dt_cufft {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_CUFFT_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_cufft;

extern dt_library cufft_library;

/* Opens cuFFT, once; NULL if it is not installed. DT_LOCK_LIBRARY_CALLS is held. */
const dt_cufft *cufft_get(void);

#endif
