/* Functions of one float element for ops/formula.h.
 *
 * exact_NAME is the C library's. NAME is without branches, so that a loop of it becomes
 * vector code, and answers NaN for the rare arguments that it leaves to the exact one:
 * whoever uses it does an element with a NaN once more (see cpu/kernels/elementwise.inc). Those
 * for float32 that are worth less than the utmost speed compute in double, where
 * rounding hardly matters.
 *
 * The coefficients are least-maximum fits made for these ranges, rounded to the type.
 */
#ifndef DT_CPU_KERNELS_MATH_H
#define DT_CPU_KERNELS_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/special.h"

#define DT_EXACT(name)                                                                 \
    static inline float exact_##name##_FLOAT32(float x)                                \
    {                                                                                  \
        return (float)name((double)x);                                                 \
    }                                                                                  \
    static inline double exact_##name##_FLOAT64(double x)                              \
    {                                                                                  \
        return name(x);                                                                \
    }
#define DT_SAME32(name)                                                                \
    static inline float name##_FLOAT32(float x)                                        \
    {                                                                                  \
        return name##f(x);                                                             \
    }
#define DT_SAME64(name)                                                                \
    static inline double name##_FLOAT64(double x)                                      \
    {                                                                                  \
        return name(x);                                                                \
    }
#define DT_EXACT2(ours, name)                                                          \
    static inline float ours##_FLOAT32(float a, float b)                               \
    {                                                                                  \
        return name##f(a, b);                                                          \
    }                                                                                  \
    static inline double ours##_FLOAT64(double a, double b)                            \
    {                                                                                  \
        return name(a, b);                                                             \
    }

static inline float abs_FLOAT32(float x)
{
    return fabsf(x);
}
static inline double abs_FLOAT64(double x)
{
    return fabs(x);
}
DT_EXACT(sqrt)
DT_EXACT(exp)
DT_EXACT(expm1)
DT_EXACT(log)
DT_EXACT(log2)
DT_EXACT(log10)
DT_EXACT(log1p)
DT_EXACT(sin)
DT_EXACT(cos)
DT_EXACT(tan)
DT_EXACT(sinh)
DT_EXACT(cosh)
DT_EXACT(tanh)
DT_EXACT(exp2)
DT_EXACT(asin)
DT_EXACT(acos)
DT_EXACT(atan)
DT_EXACT(asinh)
DT_EXACT(acosh)
DT_EXACT(atanh)
DT_EXACT(erf)
DT_EXACT(erfc)
/* The library's own tells the sign through a variable that threads share. */
static inline double lgamma_of(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}
/* single, in double as well, is right to as many digits as a float has. */
#define DT_SPECIAL(name, single, function)                                             \
    static inline float exact_##name##_FLOAT32(float x)                                \
    {                                                                                  \
        return (float)single((double)x);                                               \
    }                                                                                  \
    static inline double exact_##name##_FLOAT64(double x)                              \
    {                                                                                  \
        return function(x);                                                            \
    }                                                                                  \
    static inline float name##_FLOAT32(float x)                                        \
    {                                                                                  \
        return (float)single((double)x);                                               \
    }                                                                                  \
    static inline double name##_FLOAT64(double x)                                      \
    {                                                                                  \
        return function(x);                                                            \
    }
DT_SPECIAL(lgamma, lgamma_of, lgamma_of)
DT_SPECIAL(digamma, dt_digamma, dt_digamma)
static inline double erfinv_single(double x)
{
    return dt_erfinv(x, 1);
}
static inline double erfinv_of(double x)
{
    return dt_erfinv(x, 2);
}
DT_SPECIAL(erfinv, erfinv_single, erfinv_of)
static inline float polygamma_FLOAT32(float n, float x)
{
    return (float)dt_polygamma((double)n, (double)x);
}
static inline double polygamma_FLOAT64(double n, double x)
{
    return dt_polygamma(n, x);
}
DT_EXACT2(atan2, atan2)
DT_EXACT2(hypot, hypot)
DT_EXACT2(copysign, copysign)
DT_EXACT2(fmod, fmod)
DT_EXACT2(pow_raw, pow)
DT_SAME32(sqrt)
DT_SAME64(sqrt)
DT_SAME64(expm1)
DT_SAME64(log)
DT_SAME64(log2)
DT_SAME64(log10)
DT_SAME64(log1p)
DT_SAME64(sin)
DT_SAME64(cos)
DT_SAME64(tan)
DT_SAME64(sinh)
DT_SAME64(cosh)
DT_SAME64(tanh)
DT_SAME32(exp2)
DT_SAME64(exp2)
DT_SAME32(asin)
DT_SAME64(asin)
DT_SAME32(acos)
DT_SAME64(acos)
DT_SAME32(atan)
DT_SAME64(atan)
DT_SAME32(asinh)
DT_SAME64(asinh)
DT_SAME32(acosh)
DT_SAME64(acosh)
DT_SAME32(atanh)
DT_SAME64(atanh)
DT_SAME32(erf)
DT_SAME64(erf)
DT_SAME32(erfc)
DT_SAME64(erfc)
DT_SAME32(floor)
DT_SAME64(floor)
DT_SAME32(ceil)
DT_SAME64(ceil)
DT_SAME32(trunc)
DT_SAME64(trunc)
DT_SAME32(rint)
DT_SAME64(rint)

/* --- helpers --- */

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
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MADF(a, b, c) __builtin_fmaf(a, b, c)
#define MAD(a, b, c)  __builtin_fma(a, b, c)
#else
#define MADF(a, b, c) ((a) * (b) + (c))
#define MAD(a, b, c)  ((a) * (b) + (c))
#endif
/* Added and taken away again, these round to a whole number, which is then also in the
 * low bits of the sum. */
#define ROUNDERF 0x1.8p23f
#define ROUNDER  0x1.8p52

/* --- float32 in float32 --- */

static inline float exp_FLOAT32(float x)
{
    /* Beyond these the result is 0 or infinite, and so it comes out. */
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t = MADF(x, 0x1.715476p+0f, ROUNDERF), n = t - ROUNDERF;
    float r = MADF(n, -0x1.62e4p-1f, x);
    r = MADF(n, -0x1.7f7d1cp-20f, r);
    float q = MADF(r, 0x1.6a1f92p-10f, 0x1.123ccap-7f);
    q = MADF(r, q, 0x1.555904p-5f);
    q = MADF(r, q, 0x1.55548ep-3f);
    q = MADF(r, q, 0x1.fffffcp-2f);
    float p = 1.0f + MADF(r * r, q, r);
    /* Times 2^n in two steps, since n may lie outside of the exponents that there are.
     */
    int32_t i = (int32_t)(bits_of_float(t) - bits_of_float(ROUNDERF)), half = i >> 1;
    float s1 = float_of_bits((uint32_t)(half + 127) << 23);
    float s2 = float_of_bits((uint32_t)(i - half + 127) << 23);
    return p * s1 * s2;
}

static inline float log_FLOAT32(float x)
{
    float tiny = x < 0x1p-126f ? 23.0f : 0.0f;
    float y = x < 0x1p-126f ? x * 0x1p23f : x;
    /* y = m * 2^e with m between sqrt(1/2) and sqrt(2) */
    const uint32_t root = 0x3f3504f3u;
    uint32_t i = bits_of_float(y) - root;
    float e = (float)((int32_t)i >> 23) - tiny;
    float f = float_of_bits((i & 0x7fffffu) + root) - 1.0f;
    float q = MADF(f, 0x1.145df6p-4f, -0x1.de3ed2p-4f);
    q = MADF(f, q, 0x1.e6ef22p-4f);
    q = MADF(f, q, -0x1.fc2180p-4f);
    q = MADF(f, q, 0x1.233774p-3f);
    q = MADF(f, q, -0x1.555c52p-3f);
    q = MADF(f, q, 0x1.99a4b4p-3f);
    q = MADF(f, q, -0x1.000006p-2f);
    q = MADF(f, q, 0x1.555548p-2f);
    float z = f * f;
    float low = MADF(e, 0x1.7f7d1cp-20f, MADF(z * f, q, -0.5f * z));
    float result = MADF(e, 0x1.62e4p-1f, f + low);
    result = x == 0.0f ? -INFINITY : result;
    result = x == INFINITY ? x : result;
    return x >= 0.0f ? result : NAN;
}

static inline float tanh_FLOAT32(float x)
{
    float a = fabsf(x), z = a * a;
    float q = MADF(z, -0x1.722b0cp-8f, 0x1.5157fep-6f);
    q = MADF(z, q, -0x1.b81dc2p-5f);
    q = MADF(z, q, 0x1.110646p-3f);
    q = MADF(z, q, -0x1.55552ep-2f);
    float small = MADF(a * z, q, a);
    float large = 1.0f - 2.0f / (exp_FLOAT32(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
    return copysignf(a < 0.63f ? small : large, x);
}

/* --- float32 in double --- */

/* e^r - 1 for r within half of ln 2, to 2^-39 */
static inline double expm1_near(double r)
{
    double q = MAD(r, 0x1.9e85bf3e8a739p-16, 0x1.a188eded66190p-13);
    q = MAD(r, q, 0x1.6c18dd3ac9051p-10);
    q = MAD(r, q, 0x1.1110a03324768p-7);
    q = MAD(r, q, 0x1.55555415465dfp-5);
    q = MAD(r, q, 0x1.5555557f05702p-3);
    q = MAD(r, q, 0x1.00000000619e9p-1);
    return r * MAD(r, q, 1.0);
}

/* e^x for x within +-200, to 2^-39 */
static inline double exp_near(double x)
{
    double t = MAD(x, 0x1.71547652b82fep+0, ROUNDER), n = t - ROUNDER;
    double r = MAD(n, -0x1.62e42feep-1, x);
    r = MAD(n, -0x1.a39ef35793c76p-33, r);
    double scale = double_of_bits((bits_of_double(t) + 1023) << 52);
    return MAD(expm1_near(r), scale, scale);
}

static inline float expm1_FLOAT32(float x)
{
    double c = x < -104.0f ? -104.0 : (double)x;
    c = c > 89.0 ? 89.0 : c;
    return (float)(fabs(c) < 0.34 ? expm1_near(c) : exp_near(c) - 1.0);
}

static inline float sinh_FLOAT32(float x)
{
    double a = fabs((double)x), z = a * a;
    double small = MAD(z, 1.0 / 362880, 1.0 / 5040);
    small = MAD(z, small, 1.0 / 120);
    small = MAD(z, small, 1.0 / 6);
    small = a * MAD(z, small, 1.0);
    double e = exp_near(a > 100.0 ? 100.0 : a);
    return copysignf((float)(a < 0.5 ? small : 0.5 * (e - 1.0 / e)), x);
}

static inline float cosh_FLOAT32(float x)
{
    double a = fabs((double)x), e = exp_near(a > 100.0 ? 100.0 : a);
    return (float)(0.5 * (e + 1.0 / e));
}

/* The logarithm of a positive normal x as that of a number near 1 and a power of 2. */
static inline double log_parts(double x, double *power)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu;
    uint64_t i = bits_of_double(x) - root;
    /* The exponent, still biased by half of the range, becomes a double by way of its
     * bits. */
    uint64_t e = (i + ((uint64_t)1 << 62)) >> 52;
    *power = double_of_bits(0x4330000000000000u | e) - (0x1p52 + 1024.0);
    double f = double_of_bits((i & 0xfffffffffffffu) + root) - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double q = MAD(z, 0x1.916223d61b4bdp-3, 0x1.c6261b2b96700p-3);
    q = MAD(z, q, 0x1.249420041ae90p-2);
    q = MAD(z, q, 0x1.9999968a54c5ap-2);
    q = MAD(z, q, 0x1.5555555628a14p-1);
    return s * MAD(z, q, 2.0);
}

/* The limits of a logarithm of x, where result is the plain value. */
static inline float log_limits(float x, double result)
{
    float r = x == 0.0f ? -INFINITY : (float)result;
    r = x == INFINITY ? x : r;
    return x >= 0.0f ? r : NAN;
}

static inline float log2_FLOAT32(float x)
{
    double power, near = log_parts((double)x, &power);
    return log_limits(x, MAD(near, 0x1.71547652b82fep+0, power));
}

static inline float log10_FLOAT32(float x)
{
    double power, near = log_parts((double)x, &power);
    return log_limits(x, MAD(near, 0x1.bcb7b1526e50ep-2, power * 0x1.34413509f79ffp-2));
}

static inline float log1p_FLOAT32(float x)
{
    double d = (double)x, u = 1.0 + d, power, near = log_parts(u, &power);
    /* What the sum has lost of x. */
    double lost = (d - (u - 1.0)) / u;
    double result = MAD(power, 0x1.62e42fefa39efp-1, near) + lost;
    float r = x == -1.0f ? -INFINITY : (float)result;
    r = x == INFINITY ? x : r;
    r = x == 0.0f ? x : r;
    return x >= -1.0f ? r : NAN;
}

/* x as a quarter of turns and a rest of at most one eighth of a turn either way. Right
 * up to DT_FAR; beyond it the callers answer NaN. */
#define DT_FAR 8e8f
static inline double turn(double x, uint64_t *quarter)
{
    double t = MAD(x, 0x1.45f306dc9c883p-1, ROUNDER), n = t - ROUNDER;
    *quarter = bits_of_double(t);
    /* pi/2 in pieces of 24 bits, so that products with n are exact */
    double r = MAD(n, -0x1.921fb4p+0, x);
    r = MAD(n, -0x1.4442dp-24, r);
    return MAD(n, -0x1.8469898cc5170p-48, r);
}
static inline double sin_near(double r)
{
    double z = r * r;
    double p = MAD(z, 0x1.6ccbb449de551p-19, -0x1.a00f68fb94974p-13);
    p = MAD(z, p, 0x1.111108557043ep-7);
    p = MAD(z, p, -0x1.5555554c61a8fp-3);
    return r * MAD(z, p, 1.0);
}
static inline double cos_near(double r)
{
    double z = r * r;
    double p = MAD(z, -0x1.242174f945514p-22, 0x1.a010f326de7e3p-16);
    p = MAD(z, p, -0x1.6c16b8555249dp-10);
    p = MAD(z, p, 0x1.5555554f107ebp-5);
    return MAD(z, MAD(z, p, -0.5), 1.0);
}
static inline double with_sign(double x, uint64_t negative)
{
    return double_of_bits(bits_of_double(x) ^ negative << 63);
}

static inline float sin_FLOAT32(float x)
{
    uint64_t q;
    double r = turn((double)x, &q);
    double v = q & 1 ? cos_near(r) : sin_near(r);
    float result = (float)with_sign(v, q >> 1 & 1);
    return fabsf(x) < DT_FAR ? result : NAN;
}

static inline float cos_FLOAT32(float x)
{
    uint64_t q;
    double r = turn((double)x, &q);
    double v = q & 1 ? sin_near(r) : cos_near(r);
    float result = (float)with_sign(v, (q + 1) >> 1 & 1);
    return fabsf(x) < DT_FAR ? result : NAN;
}

static inline float tan_FLOAT32(float x)
{
    uint64_t q;
    double r = turn((double)x, &q), s = sin_near(r), c = cos_near(r);
    double v = q & 1 ? -c / s : s / c;
    return fabsf(x) < DT_FAR ? (float)v : NAN;
}

/* --- float64 --- */

static inline double exp_FLOAT64(double x)
{
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double t = MAD(x, 0x1.71547652b82fep+0, ROUNDER), n = t - ROUNDER;
    double r = MAD(n, -0x1.62e42feep-1, x);
    r = MAD(n, -0x1.a39ef35793c76p-33, r);
    double q = MAD(r, 0x1.14b395d72efb0p-29, 0x1.af55452c3b7f5p-26);
    q = MAD(r, q, 0x1.27ecc8732a2bep-22);
    q = MAD(r, q, 0x1.71ddfdd297d17p-19);
    q = MAD(r, q, 0x1.a019fd4ab9f55p-16);
    q = MAD(r, q, 0x1.a01a01adb8eeap-13);
    q = MAD(r, q, 0x1.6c16c16d2d8dbp-10);
    q = MAD(r, q, 0x1.111111110fc03p-7);
    q = MAD(r, q, 0x1.5555555555183p-5);
    q = MAD(r, q, 0x1.5555555555558p-3);
    q = MAD(r, q, 0x1.0000000000001p-1);
    double p = 1.0 + MAD(r * r, q, r);
    /* As for float32; halving by a logical shift needs a number that is not negative.
     */
    uint64_t i = bits_of_double(t) - bits_of_double(ROUNDER) + 2048,
             half = (i >> 1) - 1024;
    double s1 = double_of_bits((half + 1023) << 52);
    double s2 = double_of_bits((i - 2048 - half + 1023) << 52);
    return p * s1 * s2;
}

#endif
