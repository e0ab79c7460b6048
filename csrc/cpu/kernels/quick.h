/* Functions of floats without branches (cpu/kernels/float_functions.h): the parts of numbers.
 *
 * The coefficients in quick_float32.h and quick_float64.h are least-maximum fits made for
 * the ranges there, rounded to the type. */
#ifndef DT_CPU_KERNELS_QUICK_H
#define DT_CPU_KERNELS_QUICK_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/kernels/kernels.h"

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double double_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a*b+c, with one rounding where that is an instruction. */
template <typename T>
static DT_INLINE T mad(T a, T b, T c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    if constexpr (sizeof(T) == sizeof(float))
        return __builtin_fmaf(a, b, c);
    else
        return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* Whether x / b is x * (1 / b) for each x, in a fifth of the time: b is a power of two that
 * is not near the ends. */
static inline bool has_exact_inverse(double b)
{
    int power;
    return fabs(frexp(b, &power)) == 0.5 && power > -100 && power < 100;
}

/* NaN, which the compiler does not know: it would make branches of what follows. */
static inline double none(double x)
{
    return x * INFINITY * 0.0;
}

/* Added and taken away again, these round to a whole number, which is then also in the
 * low bits of the sum. */
#define ROUNDERF 0x1.8p23f
#define ROUNDER  0x1.8p52

/* f, where a positive normal x is (1 + f) * 2^power and 1 + f between sqrt(1/2) and
 * sqrt(2). */
static inline double split_power(double x, double *power)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu;
    uint64_t i = bits_of_double(x) - root;
    /* The exponent, still biased by half of the range, becomes a double by way of its
     * bits. */
    uint64_t e = (i + ((uint64_t)1 << 62)) >> 52;
    *power = double_of_bits(0x4330000000000000u | e) - (0x1p52 + 1024.0);
    return double_of_bits((i & 0xfffffffffffffu) + root) - 1.0;
}

static inline double with_sign(double x, uint64_t negative)
{
    return double_of_bits(bits_of_double(x) ^ negative << 63);
}

#endif
