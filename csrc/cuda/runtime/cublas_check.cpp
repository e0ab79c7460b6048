/* Compares the declarations in cublas.h with NVIDIA's headers, where installed. */
#include "cuda/runtime/cublas.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#include "cuda/runtime/signature.h"

static_assert((int)DT_CUBLAS_SUCCESS == CUBLAS_STATUS_SUCCESS, "cublas.h differs");
static_assert((int)DT_CUBLAS_NOT_INITIALIZED == CUBLAS_STATUS_NOT_INITIALIZED,
              "cublas.h differs");
static_assert((int)DT_CUBLAS_ALLOC_FAILED == CUBLAS_STATUS_ALLOC_FAILED,
              "cublas.h differs");
static_assert((int)DT_CUBLAS_OP_N == CUBLAS_OP_N && (int)DT_CUBLAS_OP_T == CUBLAS_OP_T,
              "cublas.h differs");
static_assert((int)DT_CUBLAS_LOWER == CUBLAS_FILL_MODE_LOWER &&
                  (int)DT_CUBLAS_UPPER == CUBLAS_FILL_MODE_UPPER &&
                  (int)DT_CUBLAS_LEFT == CUBLAS_SIDE_LEFT &&
                  (int)DT_CUBLAS_RIGHT == CUBLAS_SIDE_RIGHT &&
                  (int)DT_CUBLAS_NON_UNIT == CUBLAS_DIAG_NON_UNIT &&
                  (int)DT_CUBLAS_UNIT == CUBLAS_DIAG_UNIT,
              "cublas.h differs");

static_assert((int)DT_CUBLAS_32F == CUDA_R_32F && (int)DT_CUBLAS_64F == CUDA_R_64F &&
                  (int)DT_CUBLAS_32C == CUDA_C_32F &&
                  (int)DT_CUBLAS_64C == CUDA_C_64F &&
                  (int)DT_CUBLAS_16F == CUDA_R_16F &&
                  (int)DT_CUBLAS_16BF == CUDA_R_16BF,
              "cublas.h differs");
static_assert((int)DT_CUBLAS_COMPUTE_32F == CUBLAS_COMPUTE_32F &&
                  (int)DT_CUBLAS_COMPUTE_64F == CUBLAS_COMPUTE_64F &&
                  (int)DT_CUBLAS_COMPUTE_32F_FAST_TF32 ==
                      CUBLAS_COMPUTE_32F_FAST_TF32 &&
                  (int)DT_CUBLAS_GEMM_DEFAULT == CUBLAS_GEMM_DEFAULT,
              "cublas.h differs");

/* C++ has another one, inline, for the compute types of old versions. */
typedef cublasStatus_t exported_gemm(cublasHandle_t, cublasOperation_t,
                                     cublasOperation_t, int, int, int, const void *,
                                     const void *, cudaDataType, int, long long,
                                     const void *, cudaDataType, int, long long,
                                     const void *, void *, cudaDataType, int, long long,
                                     int, cublasComputeType_t, cublasGemmAlgo_t);
#define cublasGemmStridedBatchedEx                                                     \
    *static_cast<exported_gemm *>(cublasGemmStridedBatchedEx)
DT_CUBLAS_FUNCTIONS(DT_SAME_FUNCTION, DT_SAME_TYPED)
#endif
#endif
