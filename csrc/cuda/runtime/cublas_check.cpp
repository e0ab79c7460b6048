/* Compares the declarations in cublas.h with NVIDIA's headers, where installed. */
#include "cuda/runtime/cublas.h"

#if defined(__has_include) && !defined(DT_SIMULATED)
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#include <type_traits>

static_assert(DT_CUBLAS_SUCCESS == CUBLAS_STATUS_SUCCESS, "cublas.h differs");
static_assert((int)DT_CUBLAS_NOT_INITIALIZED == CUBLAS_STATUS_NOT_INITIALIZED,
              "cublas.h differs");
static_assert(DT_CUBLAS_ALLOC_FAILED == CUBLAS_STATUS_ALLOC_FAILED, "cublas.h differs");
static_assert(DT_CUBLAS_OP_N == CUBLAS_OP_N && DT_CUBLAS_OP_T == CUBLAS_OP_T,
              "cublas.h differs");

static_assert((int)DT_CUBLAS_32F == CUDA_R_32F && (int)DT_CUBLAS_64F == CUDA_R_64F &&
                  (int)DT_CUBLAS_16F == CUDA_R_16F &&
                  (int)DT_CUBLAS_16BF == CUDA_R_16BF,
              "cublas.h differs");
static_assert((int)DT_CUBLAS_COMPUTE_32F == CUBLAS_COMPUTE_32F &&
                  (int)DT_CUBLAS_COMPUTE_64F == CUBLAS_COMPUTE_64F &&
                  (int)DT_CUBLAS_COMPUTE_32F_FAST_TF32 ==
                      CUBLAS_COMPUTE_32F_FAST_TF32 &&
                  (int)DT_CUBLAS_GEMM_DEFAULT == CUBLAS_GEMM_DEFAULT,
              "cublas.h differs");

/* Enumerations compare as the integers that are passed. */
template <class T>
struct plain {
    typedef typename std::conditional<std::is_enum<T>::value, int, T>::type type;
};
template <class F>
struct signature;
template <class R, class... P>
struct signature<R(P...)> {
    typedef typename plain<R>::type type(typename plain<P>::type...);
};
#define FUNCTION(name, symbol, parameters)                                             \
    static_assert(std::is_same<signature<decltype(symbol)>::type,                      \
                               signature<int parameters>::type>::value,                \
                  #symbol " is declared otherwise by NVIDIA");
DT_CUBLAS_FUNCTIONS(FUNCTION)
#undef FUNCTION
#endif
#endif
