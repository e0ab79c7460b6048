/* Compares the declarations in cublaslt.h with NVIDIA's header, where installed. */
#include "cuda/runtime/cublaslt.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <stddef.h>

#include "cuda/runtime/signature.h"

#define SAME(ours, theirs)                                                             \
    static_assert((int)DT_CUBLASLT_##ours == (int)CUBLAS##theirs, "cublaslt.h "        \
                                                                  "differs")
SAME(NOT_SUPPORTED, _STATUS_NOT_SUPPORTED);
SAME(OP_A, LT_MATMUL_DESC_TRANSA);
SAME(OP_B, LT_MATMUL_DESC_TRANSB);
SAME(EPILOGUE, LT_MATMUL_DESC_EPILOGUE);
SAME(BIAS, LT_MATMUL_DESC_BIAS_POINTER);
SAME(EPILOGUE_BIAS, LT_EPILOGUE_BIAS);
SAME(WORKSPACE, LT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(ALIGNMENT_A, LT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(ALIGNMENT_B, LT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(ALIGNMENT_C, LT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(ALIGNMENT_D, LT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(dt_cublaslt_algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
                  sizeof(dt_cublaslt_choice) ==
                      sizeof(cublasLtMatmulHeuristicResult_t) &&
                  offsetof(dt_cublaslt_choice, status) ==
                      offsetof(cublasLtMatmulHeuristicResult_t, state) &&
                  offsetof(dt_cublaslt_choice, workspace) ==
                      offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize),
              "cublaslt.h differs");

/* Handles and descriptions compare as the pointers that they are. */
template <>
struct plain<dt_cublas_handle> : plain<void *> {};
template <>
struct plain<cublasLtHandle_t> : plain<void *> {};
template <>
struct plain<cublasLtMatmulDesc_t> : plain<void *> {};
template <>
struct plain<cublasLtMatmulDesc_t *> : plain<void **> {};
template <>
struct plain<cublasLtMatrixLayout_t> : plain<void *> {};
template <>
struct plain<cublasLtMatrixLayout_t *> : plain<void **> {};
template <>
struct plain<cublasLtMatmulPreference_t> : plain<void *> {};
template <>
struct plain<cublasLtMatmulPreference_t *> : plain<void **> {};
template <>
struct plain<const cublasLtMatmulAlgo_t *> : plain<const dt_cublaslt_algorithm *> {};
template <>
struct plain<cublasLtMatmulHeuristicResult_t *> : plain<dt_cublaslt_choice *> {};
DT_CUBLASLT_FUNCTIONS(DT_SAME_FUNCTION)
#endif
#endif
