/* Compares the declarations in cusolver.h with NVIDIA's header, where installed. */
#include "cuda/runtime/cusolver.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cusolverDn.h>)
#include <cusolverDn.h>

#include "cuda/runtime/signature.h"

static_assert((int)DT_CUSOLVER_SUCCESS == CUSOLVER_STATUS_SUCCESS &&
                  (int)DT_CUSOLVER_NOT_INITIALIZED == CUSOLVER_STATUS_NOT_INITIALIZED &&
                  (int)DT_CUSOLVER_ALLOC_FAILED == CUSOLVER_STATUS_ALLOC_FAILED &&
                  (int)DT_CUSOLVER_INVALID_VALUE == CUSOLVER_STATUS_INVALID_VALUE &&
                  (int)DT_CUSOLVER_EXECUTION_FAILED == CUSOLVER_STATUS_EXECUTION_FAILED,
              "cusolver.h differs");
static_assert((int)DT_CUSOLVER_NO_VECTORS == CUSOLVER_EIG_MODE_NOVECTOR &&
                  (int)DT_CUSOLVER_VECTORS == CUSOLVER_EIG_MODE_VECTOR,
              "cusolver.h differs");
static_assert(DT_CUDA_MAJOR - 1 == CUSOLVER_VER_MAJOR, "cusolver.cpp differs");

/* Xgeev came with CUDA 12.6.2. */
#if CUSOLVER_VERSION < 11701
#define OPTIONAL(name, symbol, parameters)
#else
#define OPTIONAL DT_SAME_FUNCTION
#endif
DT_CUSOLVER_FUNCTIONS(DT_SAME_FUNCTION, DT_SAME_TYPED, OPTIONAL)
#undef OPTIONAL
#endif
#endif
