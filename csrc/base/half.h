/* The two floating types of 16 bits: as they lie in memory, and to and from float32.
 *
 * float16 has 5 bits of exponent and 10 of mantissa (IEEE 754), bfloat16 has 8 and 7:
 * it is the upper half of a float32. Nothing computes in them: kernels load them as
 * float32 and round what they store to the nearest, halfway cases to the even one. For
 * C and CUDA alike, with the same answers, but for which NaN a NaN becomes on a GPU. */
#ifndef DT_BASE_HALF_H
#define DT_BASE_HALF_H

#include <stdint.h>
#include <string.h>

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

/* A NaN becomes a quiet one and keeps the upper bits of its payload, as in hardware. */
DT_HALF_FN float dt_float16_widen(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    /* Below the least normal number: so many times 2^-24. */
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
    /* One half has units of 2^-24 in its last place: adding it rounds to them. */
    uint32_t small = dt_float32_bits(dt_float32_of_bits(rest) + 0.5f) - 0x3f000000u;
    /* A carry out of the mantissa is the next exponent, at last infinity. */
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

/* Every NaN becomes the same one. */
DT_HALF_FN uint16_t dt_bfloat16_narrow(float value)
{
    uint32_t bits = dt_float32_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* An element in memory: a type of its own, so that arithmetic on the bits, or a loop
 * that forgets to widen, does not compile. In C++ it converts where that is asked for
 * by a cast. */
#ifdef __cplusplus
struct dt_float16 {
    uint16_t bits;

#ifdef __CUDACC__
#define DT_HALF_METHOD __host__ __device__ __forceinline__
#else
#define DT_HALF_METHOD inline
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
