/* Half precision: the formats of float16 and bfloat16, and conversions to and from
 * float32.
 *
 * float16 has 5 exponent and 10 mantissa bits (IEEE 754 binary16). bfloat16 has 8
 * and 7: the upper half of a float32. They are storage formats: kernels load float32
 * and round what they store to nearest even. C and CUDA give the same bits, except
 * for the payload of NaNs on a GPU. */
#ifndef DT_BASE_HALF_H
#define DT_BASE_HALF_H

#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
#include <type_traits>
#endif

#ifdef __CUDACC__
#define DT_HALF_FN static __host__ __device__ __forceinline__
#else
#define DT_HALF_FN static inline
#endif

DT_HALF_FN uint32_t dt_float32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
DT_HALF_FN float dt_float32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NaNs become quiet and keep their upper payload bits, as in hardware. */
DT_HALF_FN float dt_float16_widen(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    /* Subnormal: a multiple of 2^-24. */
    uint32_t small = dt_float32_bits((float)rest * 0x1p-24f);
    uint32_t normal = (rest << 13) + 0x38000000u;
    uint32_t special = (rest << 13) | 0x7f800000u | (rest > 0x7c00u ? 0x400000u : 0u);
    return dt_float32_of_bits(sign | (rest < 0x400u    ? small
                                      : rest < 0x7c00u ? normal
                                                       : special));
}

DT_HALF_FN uint16_t dt_float16_narrow(float value)
{
    uint32_t bits = dt_float32_bits(value), sign = bits >> 16 & 0x8000u;
    uint32_t rest = bits & 0x7fffffffu;
    /* The ulp of 0.5 is 2^-24, so adding it rounds to the subnormal grid. */
    uint32_t small = dt_float32_bits(dt_float32_of_bits(rest) + 0.5f) - 0x3f000000u;
    /* A carry out of the mantissa increments the exponent, up to infinity. */
    uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
    uint32_t nan = 0x7e00u | (rest >> 13 & 0x3ffu);
    return (uint16_t)(sign | (rest > 0x7f800000u    ? nan
                              : rest >= 0x47800000u ? 0x7c00u
                              : rest < 0x38800000u  ? small
                                                    : normal));
}

DT_HALF_FN float dt_bfloat16_widen(uint16_t bits)
{
    return dt_float32_of_bits((uint32_t)bits << 16);
}

/* All NaNs become the same one. */
DT_HALF_FN uint16_t dt_bfloat16_narrow(float value)
{
    uint32_t bits = dt_float32_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* Elements in memory are structs, so that arithmetic on the raw bits does not
 * compile. C++ converts them by explicit casts. */
#ifdef __cplusplus
struct dt_float16 {
    uint16_t bits;

#ifdef __CUDACC__
#define DT_HALF_METHOD __host__ __device__ __forceinline__
#else
/* Always inlined: the linker would keep one copy for all instruction sets. */
#define DT_HALF_METHOD inline __attribute__((always_inline))
#endif
    dt_float16() = default;
    DT_HALF_METHOD explicit dt_float16(float value)
    {
#if defined(__CUDA_ARCH__)
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        bits = dt_float16_narrow(value);
#endif
    }
    DT_HALF_METHOD explicit operator float() const
    {
#if defined(__CUDA_ARCH__)
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
#else
        return dt_float16_widen(bits);
#endif
    }
};
struct dt_bfloat16 {
    uint16_t bits;

    dt_bfloat16() = default;
    DT_HALF_METHOD explicit dt_bfloat16(float value)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        bits = dt_bfloat16_narrow(value);
#endif
    }
    DT_HALF_METHOD explicit operator float() const { return dt_bfloat16_widen(bits); }
};
#undef DT_HALF_METHOD

template <typename T>
constexpr bool is_half =
    std::is_same_v<T, dt_float16> || std::is_same_v<T, dt_bfloat16>;
/* The type to compute in with elements that are stored as S. */
template <typename S>
using Computed = std::conditional_t<is_half<S>, float, S>;
#else
typedef struct dt_float16 {
    uint16_t bits;
} dt_float16;
typedef struct dt_bfloat16 {
    uint16_t bits;
} dt_bfloat16;
#endif

#undef DT_HALF_FN
#endif
