/* Elements as they lie in memory, and the type that kernels compute in.
 *
 * The two types of 16 bits are one to kernels, Bits16, computed with as float: which of
 * them it is a kernel is told when it runs (`brain`: bfloat16), so that one serves
 * both. For other types `brain` means nothing. */
#ifndef DT_CUDA_COMPUTE_H
#define DT_CUDA_COMPUTE_H

#include <cuda_runtime.h>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"

struct Bits16 {
    uint16_t bits;
};

template <typename T>
struct compute_of {
    typedef T type;
};
template <>
struct compute_of<Bits16> {
    typedef float type;
};
template <typename T>
using Compute = typename compute_of<T>::type;

/* The kind that the op tables' classes go by. */
template <typename T>
constexpr dt_kind kind_of = std::is_same_v<T, bool>          ? DT_KIND_BOOL
                            : std::is_integral_v<Compute<T>> ? DT_KIND_INTEGER
                                                             : DT_KIND_FLOAT;

static __device__ __forceinline__ float widened(uint16_t bits, bool brain)
{
    dt_float16 half;
    dt_bfloat16 wide;
    half.bits = wide.bits = bits;
    return brain ? (float)wide : (float)half;
}
static __device__ __forceinline__ uint16_t narrowed(float value, bool brain)
{
    return brain ? dt_bfloat16(value).bits : dt_float16(value).bits;
}

template <typename T>
static __device__ __forceinline__ T loaded(const T *at, bool)
{
    return *at;
}
static __device__ __forceinline__ float loaded(const Bits16 *at, bool brain)
{
    return widened(at->bits, brain);
}
template <typename T>
static __device__ __forceinline__ void store(T *at, T value, bool)
{
    *at = value;
}
static __device__ __forceinline__ void store(Bits16 *at, float value, bool brain)
{
    at->bits = narrowed(value, brain);
}

#endif
