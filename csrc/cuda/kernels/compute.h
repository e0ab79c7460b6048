/* Elements as they lie in memory, and the type that kernels compute in.
 *
 * Floats of 16 bits are computed with as float. The kernels of whole families are those
 * of float, and are told when they run how the elements lie in memory (Half). Others
 * have a kernel for both types of 16 bits, Bits16, and are told which of them it is
 * (`brain`: bfloat16); for other types `brain` means nothing. */
#ifndef DT_CUDA_KERNELS_COMPUTE_H
#define DT_CUDA_KERNELS_COMPUTE_H

#include <cuda_runtime.h>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"
#include "cuda/kernels/layout.h"

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

/* How floats lie in memory: as such or in 16 bits. Other types are WHOLE. */
enum Half { WHOLE, HALF16, BRAIN16 };
static inline Half half_of(dt_dtype dtype)
{
    return dtype == DT_FLOAT16 ? HALF16 : dtype == DT_BFLOAT16 ? BRAIN16 : WHOLE;
}
template <typename T>
static inline __host__ __device__ int stored_size(Half half)
{
    return std::is_same_v<T, float> && half ? 2 : (int)sizeof(T);
}

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

/* An element as it lies in memory, and a pack of them. */
template <typename T>
static __device__ __forceinline__ T element_at(const char *at, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half)
            return widened(*(const uint16_t *)at, half == BRAIN16);
    return *(const T *)at;
}
template <typename T, int N>
static __device__ __forceinline__ Pack<T, N> elements_at(const char *at, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half) {
            Pack<uint16_t, N> bits = *(const Pack<uint16_t, N> *)at;
            Pack<T, N> pack;
            UNROLL
            for (int k = 0; k < N; k++)
                pack.v[k] = widened(bits.v[k], half == BRAIN16);
            return pack;
        }
    return *(const Pack<T, N> *)at;
}
template <typename T>
static __device__ __forceinline__ void put_element(char *at, T value, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half) {
            *(uint16_t *)at = narrowed(value, half == BRAIN16);
            return;
        }
    *(T *)at = value;
}
template <typename T, int N>
static __device__ __forceinline__ void put_elements(char *at, const Pack<T, N> &pack,
                                                    Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half) {
            Pack<uint16_t, N> bits;
            UNROLL
            for (int k = 0; k < N; k++)
                bits.v[k] = narrowed(pack.v[k], half == BRAIN16);
            *(Pack<uint16_t, N> *)at = bits;
            return;
        }
    *(Pack<T, N> *)at = pack;
}

#endif
