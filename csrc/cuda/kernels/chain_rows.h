/* The rows of ops/elementwise_kernels.def as functions: row_mul(a, b, c, d). a, b and c are
 * elements of the inputs; d is always a number. */
#ifndef DT_CUDA_KERNELS_CHAIN_ROWS_H
#define DT_CUDA_KERNELS_CHAIN_ROWS_H

#include "cuda/kernels/device_functions.h"

namespace {

#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    template <typename T>                                                              \
    __device__ __forceinline__ T row_##name(T a, T b, T c, T d)                        \
    {                                                                                  \
        operands(T, a, b, c, d) return (T)(value);                                     \
    }
#include "ops/elementwise_kernels.def"

/* DT_CHAIN_CONVERT: rounding the result converts it. */
template <typename T>
__device__ __forceinline__ T row_copy(T a, T, T, T)
{
    return a;
}

} // namespace

#endif
