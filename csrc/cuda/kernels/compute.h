/* The type of elements in memory (stored), and the type that kernels compute in.
 *
 * Kernels compute with 16-bit floats as float. Whole families have one kernel for float,
 * which takes the stored type as an argument (Half). Others have a kernel for each
 * type. */
#ifndef DT_CUDA_KERNELS_COMPUTE_H
#define DT_CUDA_KERNELS_COMPUTE_H

#include <cuda_runtime.h>
#include <type_traits>

#include "base/dtype.h"
#include "base/half.h"
#include "cuda/kernels/layout.h"

/* How floats are stored: as float or in 16 bits. Other types are WHOLE. */
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

template <int N>
static __device__ __forceinline__ Vector<float, N>
widened(const Vector<uint16_t, N> &bits, bool brain)
{
    Vector<float, N> wide;
    UNROLL
    for (int k = 0; k < N; k++) {
        dt_float16 half;
        dt_bfloat16 brains;
        half.bits = brains.bits = bits.v[k];
        wide.v[k] = brain ? (float)brains : (float)half;
    }
    return wide;
}
template <int N>
static __device__ __forceinline__ Vector<uint16_t, N>
narrowed(const Vector<float, N> &wide, bool brain)
{
    Vector<uint16_t, N> bits;
    UNROLL
    for (int k = 0; k < N; k++)
        bits.v[k] = brain ? dt_bfloat16(wide.v[k]).bits : dt_float16(wide.v[k]).bits;
    return bits;
}
template <int N>
static __device__ __forceinline__ Vector<bool, N>
tested(const Vector<dt_bool, N> &stored)
{
    Vector<bool, N> vector;
    UNROLL
    for (int k = 0; k < N; k++)
        vector.v[k] = (bool)stored.v[k];
    return vector;
}

/* A vector of stored elements, and one element. */
template <typename T, int N>
static __device__ __forceinline__ Vector<T, N> elements_at(const char *at, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half)
            return widened(*(const Vector<uint16_t, N> *)at, half == BRAIN16);
    if constexpr (std::is_same_v<T, bool>)
        return tested(*(const Vector<dt_bool, N> *)at);
    else
        return *(const Vector<T, N> *)at;
}
template <typename T>
static __device__ __forceinline__ T element_at(const char *at, Half half)
{
    return elements_at<T, 1>(at, half).v[0];
}
template <typename T, int N>
static __device__ __forceinline__ void
put_elements(char *at, const Vector<T, N> &vector, Half half)
{
    if constexpr (std::is_same_v<T, float>)
        if (half) {
            *(Vector<uint16_t, N> *)at = narrowed(vector, half == BRAIN16);
            return;
        }
    *(Vector<T, N> *)at = vector;
}
template <typename T>
static __device__ __forceinline__ void put_element(char *at, T value, Half half)
{
    put_elements(at, Vector<T, 1>{{value}}, half);
}

/* f(T()) for the type T of the elements. */
template <class F>
int with_type(dt_dtype dtype, F f)
{
    switch (dtype) {
#define DT_DTYPE(ID, name, alias, type)                                                \
    case DT_##ID:                                                                      \
        return f(type());
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
    default:
        return dt_fail(DT_ERROR_RUNTIME, "there is no element type %d", (int)dtype);
    }
}
/* The same in a kernel. */
template <class F>
static __device__ __forceinline__ void with_element_type(dt_dtype dtype, F f)
{
    switch (dtype) {
#define DT_DTYPE(ID, name, alias, type)                                                \
    case DT_##ID:                                                                      \
        f(type());                                                                     \
        break;
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
    default:
        break;
    }
}
/* f(T()) for the unsigned integer T of the elements' size. */
template <class F>
int with_word(dt_dtype dtype, F f)
{
    switch (dt_dtype_size(dtype)) {
    case 1:
        return f(uint8_t());
    case 2:
        return f(uint16_t());
    case 4:
        return f(uint32_t());
    default:
        return f(uint64_t());
    }
}
/* The same in a kernel. */
template <class F>
static __device__ __forceinline__ void with_element_word(int size, F f)
{
    switch (size) {
    case 1:
        f(uint8_t());
        break;
    case 2:
        f(uint16_t());
        break;
    case 4:
        f(uint32_t());
        break;
    default:
        f(uint64_t());
    }
}

#endif
