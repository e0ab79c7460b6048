/* Functions of floats for ops/formula.h.
 *
 * op_NAME is the C library's. Of some functions there are two forms: Exact's are the
 * library's, in double. Quick's are without branches, so that a loop of them becomes
 * vector code, and answer NaN for the rare arguments that they leave to the exact ones:
 * whoever uses them does an element with a NaN once more (elementwise.isa.cpp). Those
 * for float32 that are worth less than the utmost speed compute in double, where
 * rounding hardly matters.
 *
 * The coefficients are least-maximum fits made for these ranges, rounded to the type. */
#ifndef DT_CPU_KERNELS_FLOAT_FUNCTIONS_H
#define DT_CPU_KERNELS_FLOAT_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/kernels/kernels.h"

/* Long functions are called, not copied into each loop. */
#define DT_FN static __attribute__((noinline, unused))
#include "ops/bessel.h"
#include "ops/polynomials.h"
#undef DT_FN

#define LIBRARY(ours, name)                                                            \
    static inline float op_##ours(float x)                                             \
    {                                                                                  \
        return name##f(x);                                                             \
    }                                                                                  \
    static inline double op_##ours(double x)                                           \
    {                                                                                  \
        return name(x);                                                                \
    }
#define LIBRARY2(ours, name)                                                           \
    static inline float op_##ours(float a, float b)                                    \
    {                                                                                  \
        return name##f(a, b);                                                          \
    }                                                                                  \
    static inline double op_##ours(double a, double b)                                 \
    {                                                                                  \
        return name(a, b);                                                             \
    }
LIBRARY(abs, fabs)
LIBRARY(sqrt, sqrt)
LIBRARY(erfc, erfc)
LIBRARY(floor, floor)
LIBRARY(ceil, ceil)
LIBRARY(trunc, trunc)
LIBRARY(rint, rint)
LIBRARY2(hypot, hypot)
LIBRARY2(copysign, copysign)
LIBRARY2(fmod, fmod)
LIBRARY2(pow_raw, pow)
#undef LIBRARY
#undef LIBRARY2

/* These have as many digits in double as a float has. T: float or double. The library's
 * own lgamma tells the sign through a variable that threads share. */
template <typename T>
static inline T op_lgamma(T x)
{
    int sign;
    return (T)lgamma_r((double)x, &sign);
}
template <typename T>
static inline T op_digamma(T x)
{
    return (T)dt_digamma((double)x);
}
template <typename T>
static inline T op_erfinv(T x)
{
    return (T)dt_erfinv((double)x, sizeof(T) == sizeof(float) ? 1 : 2);
}
template <typename T>
static inline T op_polygamma(T n, T x)
{
    return (T)dt_polygamma((double)n, (double)x);
}

#define DT_FN      static inline
#define DT_FN_LONG DT_FN
#include "ops/arithmetic.h"

namespace {

struct Exact {
#define EXACT(name)                                                                    \
    static float name(float x)                                                         \
    {                                                                                  \
        return (float)::name((double)x);                                               \
    }                                                                                  \
    static double name(double x)                                                       \
    {                                                                                  \
        return ::name(x);                                                              \
    }
    EXACT(exp)
    EXACT(exp2)
    EXACT(expm1)
    EXACT(log)
    EXACT(log2)
    EXACT(log10)
    EXACT(log1p)
    EXACT(sin)
    EXACT(cos)
    EXACT(tan)
    EXACT(sinh)
    EXACT(cosh)
    EXACT(tanh)
    EXACT(erf)
    EXACT(asin)
    EXACT(acos)
    EXACT(atan)
    EXACT(asinh)
    EXACT(acosh)
    EXACT(atanh)
#undef EXACT
    static double atan2(double y, double x) { return ::atan2(y, x); }
    static float atan2(float y, float x)
    {
        return (float)::atan2((double)y, (double)x);
    }
    template <typename T>
    static T fmod(T a, T b)
    {
        return op_fmod(a, b);
    }
};

} // namespace

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
/* Added and taken away again, these round to a whole number, which is then also in the
 * low bits of the sum. */
#define ROUNDERF 0x1.8p23f
#define ROUNDER  0x1.8p52

/* --- float32 in float32 --- */

static inline float quick_exp(float x)
{
    /* Beyond these the result is 0 or infinite, and so it comes out. It is 0 from -104 on.
     * At -176 both powers of 2 are 0, and no product below is a denormal number, which
     * takes as long as a hundred others: masks are made of -inf. */
    x = x < -176.0f ? -176.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t = mad(x, 0x1.715476p+0f, ROUNDERF), n = t - ROUNDERF;
    float r = mad(n, -0x1.62e4p-1f, x);
    r = mad(n, -0x1.7f7d1cp-20f, r);
    float q = mad(r, 0x1.6a1f92p-10f, 0x1.123ccap-7f);
    q = mad(r, q, 0x1.555904p-5f);
    q = mad(r, q, 0x1.55548ep-3f);
    q = mad(r, q, 0x1.fffffcp-2f);
    float p = 1.0f + mad(r * r, q, r);
    /* Multiply by 2^n in two steps, since 2^n may overflow or be subnormal.
     */
    int32_t i = (int32_t)(bits_of_float(t) - bits_of_float(ROUNDERF)), half = i >> 1;
    float s1 = float_of_bits((uint32_t)(half + 127) << 23);
    float s2 = float_of_bits((uint32_t)(i - half + 127) << 23);
    return p * s1 * s2;
}

static inline float quick_log(float x)
{
    float tiny = x < 0x1p-126f ? 23.0f : 0.0f;
    float y = x < 0x1p-126f ? x * 0x1p23f : x;
    /* y = m * 2^e with m between sqrt(1/2) and sqrt(2) */
    const uint32_t root = 0x3f3504f3u;
    uint32_t i = bits_of_float(y) - root;
    float e = (float)((int32_t)i >> 23) - tiny;
    float f = float_of_bits((i & 0x7fffffu) + root) - 1.0f;
    float q = mad(f, 0x1.145df6p-4f, -0x1.de3ed2p-4f);
    q = mad(f, q, 0x1.e6ef22p-4f);
    q = mad(f, q, -0x1.fc2180p-4f);
    q = mad(f, q, 0x1.233774p-3f);
    q = mad(f, q, -0x1.555c52p-3f);
    q = mad(f, q, 0x1.99a4b4p-3f);
    q = mad(f, q, -0x1.000006p-2f);
    q = mad(f, q, 0x1.555548p-2f);
    float z = f * f;
    float low = mad(e, 0x1.7f7d1cp-20f, mad(z * f, q, -0.5f * z));
    float result = mad(e, 0x1.62e4p-1f, f + low);
    result = x == 0.0f ? -INFINITY : result;
    result = x == INFINITY ? x : result;
    return x >= 0.0f ? result : NAN;
}

static inline float quick_tanh(float x)
{
    float a = fabsf(x), z = a * a;
    float q = mad(z, -0x1.722b0cp-8f, 0x1.5157fep-6f);
    q = mad(z, q, -0x1.b81dc2p-5f);
    q = mad(z, q, 0x1.110646p-3f);
    q = mad(z, q, -0x1.55552ep-2f);
    float small = mad(a * z, q, a);
    float large = 1.0f - 2.0f / (quick_exp(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
    return copysignf(a < 0.63f ? small : large, x);
}

static inline float quick_erf(float x)
{
    float a = fabsf(x), z = a * a;
    float q = mad(z, 0x1.6626a6p-14f, -0x1.acf87ap-11f);
    q = mad(z, q, 0x1.551402p-8f);
    q = mad(z, q, -0x1.b8162cp-6f);
    q = mad(z, q, 0x1.ce2e60p-4f);
    q = mad(z, q, -0x1.812744p-2f);
    float small = mad(a, mad(z, q, 0x1.06eba8p-3f), a);
    /* The logarithm of 1 - erf; a NaN stays one. */
    float b = a > 3.95f ? 3.95f : a;
    q = mad(b, 0x1.9fb2eap-13f, -0x1.91cd18p-9f);
    q = mad(b, q, 0x1.6d9cdep-6f);
    q = mad(b, q, -0x1.aa732cp-4f);
    q = mad(b, q, -0x1.4621b8p-1f);
    q = mad(b, q, -0x1.20b752p+0f);
    q = mad(b, q, -0x1.5d0c70p-13f);
    float large = 1.0f - quick_exp(q);
    return copysignf(a < 0.9f ? small : large, x);
}

/* --- float32 in double --- */

/* e^r - 1 for r within half of ln 2, to 2^-39 */
static inline double expm1_near(double r)
{
    double q = mad(r, 0x1.9e85bf3e8a739p-16, 0x1.a188eded66190p-13);
    q = mad(r, q, 0x1.6c18dd3ac9051p-10);
    q = mad(r, q, 0x1.1110a03324768p-7);
    q = mad(r, q, 0x1.55555415465dfp-5);
    q = mad(r, q, 0x1.5555557f05702p-3);
    q = mad(r, q, 0x1.00000000619e9p-1);
    return r * mad(r, q, 1.0);
}

/* e^x for x within +-200, to 2^-39 */
static inline double exp_near(double x)
{
    double t = mad(x, 0x1.71547652b82fep+0, ROUNDER), n = t - ROUNDER;
    double r = mad(n, -0x1.62e42feep-1, x);
    r = mad(n, -0x1.a39ef35793c76p-33, r);
    double scale = double_of_bits((bits_of_double(t) + 1023) << 52);
    return mad(expm1_near(r), scale, scale);
}

static inline float quick_exp2(float x)
{
    double c = x < -160.0f ? -160.0 : (double)x;
    return (float)exp_near((c > 130.0 ? 130.0 : c) * 0x1.62e42fefa39efp-1);
}

static inline float quick_expm1(float x)
{
    double c = x < -104.0f ? -104.0 : (double)x;
    c = c > 89.0 ? 89.0 : c;
    return (float)(fabs(c) < 0.34 ? expm1_near(c) : exp_near(c) - 1.0);
}

static inline float quick_sinh(float x)
{
    double a = fabs((double)x), z = a * a;
    double small = mad(z, 1.0 / 362880, 1.0 / 5040);
    small = mad(z, small, 1.0 / 120);
    small = mad(z, small, 1.0 / 6);
    small = a * mad(z, small, 1.0);
    double e = exp_near(a > 100.0 ? 100.0 : a);
    return copysignf((float)(a < 0.5 ? small : 0.5 * (e - 1.0 / e)), x);
}

static inline float quick_cosh(float x)
{
    double a = fabs((double)x), e = exp_near(a > 100.0 ? 100.0 : a);
    return (float)(0.5 * (e + 1.0 / e));
}

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

/* The logarithm of a positive normal x as that of a number near 1 and a power of 2. */
static inline double log_parts(double x, double *power)
{
    double f = split_power(x, power);
    double s = f / (2.0 + f), z = s * s;
    double q = mad(z, 0x1.916223d61b4bdp-3, 0x1.c6261b2b96700p-3);
    q = mad(z, q, 0x1.249420041ae90p-2);
    q = mad(z, q, 0x1.9999968a54c5ap-2);
    q = mad(z, q, 0x1.5555555628a14p-1);
    return s * mad(z, q, 2.0);
}

/* The limits of a logarithm of x, where result is the plain value. */
static inline float log_limits(float x, double result)
{
    float r = x == 0.0f ? -INFINITY : (float)result;
    r = x == INFINITY ? x : r;
    return x >= 0.0f ? r : NAN;
}

static inline double log_near(double x)
{
    double power, near = log_parts(x, &power);
    return mad(power, 0x1.62e42fefa39efp-1, near);
}

/* The inverse hyperbolic functions; near 0 their series. */
static inline float quick_asinh(float x)
{
    double a = fabs((double)x), z = a * a;
    double small = a * mad(z, mad(z, 3.0 / 40, -1.0 / 6), 1.0);
    double r = a < 0x1p-6 ? small : log_near(a + sqrt(z + 1.0));
    return copysignf((float)(a < INFINITY ? r : a), x); /* NaN, too */
}
static inline float quick_acosh(float x)
{
    double a = (double)x, r = log_near(a + sqrt(mad(a, a, -1.0)));
    r = x == INFINITY ? a : r;
    return x >= 1.0f ? (float)r : NAN;
}
static inline float quick_atanh(float x)
{
    double a = fabs((double)x), z = a * a;
    double small = a * mad(z, mad(z, 1.0 / 5, 1.0 / 3), 1.0);
    double r = a < 0x1p-6 ? small : 0.5 * log_near((1.0 + a) / (1.0 - a));
    r = a == 1.0 ? INFINITY : r;
    return a <= 1.0 ? copysignf((float)r, x) : NAN;
}

static inline float quick_log2(float x)
{
    double power, near = log_parts((double)x, &power);
    return log_limits(x, mad(near, 0x1.71547652b82fep+0, power));
}

static inline float quick_log10(float x)
{
    double power, near = log_parts((double)x, &power);
    return log_limits(x, mad(near, 0x1.bcb7b1526e50ep-2, power * 0x1.34413509f79ffp-2));
}

static inline float quick_log1p(float x)
{
    double d = (double)x, u = 1.0 + d, power, near = log_parts(u, &power);
    /* The part of x that the sum has lost. */
    double lost = (d - (u - 1.0)) / u;
    double result = mad(power, 0x1.62e42fefa39efp-1, near) + lost;
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
    double t = mad(x, 0x1.45f306dc9c883p-1, ROUNDER), n = t - ROUNDER;
    *quarter = bits_of_double(t);
    /* pi/2 in pieces of 24 bits, so that products with n are exact */
    double r = mad(n, -0x1.921fb4p+0, x);
    r = mad(n, -0x1.4442dp-24, r);
    return mad(n, -0x1.8469898cc5170p-48, r);
}
static inline double sin_near(double r)
{
    double z = r * r;
    double p = mad(z, 0x1.6ccbb449de551p-19, -0x1.a00f68fb94974p-13);
    p = mad(z, p, 0x1.111108557043ep-7);
    p = mad(z, p, -0x1.5555554c61a8fp-3);
    return r * mad(z, p, 1.0);
}
static inline double cos_near(double r)
{
    double z = r * r;
    double p = mad(z, -0x1.242174f945514p-22, 0x1.a010f326de7e3p-16);
    p = mad(z, p, -0x1.6c16b8555249dp-10);
    p = mad(z, p, 0x1.5555554f107ebp-5);
    return mad(z, mad(z, p, -0.5), 1.0);
}
static inline double with_sign(double x, uint64_t negative)
{
    return double_of_bits(bits_of_double(x) ^ negative << 63);
}

static inline float quick_sin(float x)
{
    uint64_t q;
    double r = turn((double)x, &q);
    double v = q & 1 ? cos_near(r) : sin_near(r);
    float result = (float)with_sign(v, q >> 1 & 1);
    return fabsf(x) < DT_FAR ? result : NAN;
}

static inline float quick_cos(float x)
{
    uint64_t q;
    double r = turn((double)x, &q);
    double v = q & 1 ? sin_near(r) : cos_near(r);
    float result = (float)with_sign(v, (q + 1) >> 1 & 1);
    return fabsf(x) < DT_FAR ? result : NAN;
}

static inline float quick_tan(float x)
{
    uint64_t q;
    double r = turn((double)x, &q), s = sin_near(r), c = cos_near(r);
    double v = q & 1 ? -c / s : s / c;
    return fabsf(x) < DT_FAR ? (float)v : NAN;
}

/* The angle of a point whose coordinates are not negative, nor both infinite. */
static inline double angle_near(double y, double x)
{
    double low = y < x ? y : x, high = y < x ? x : y;
    /* Beyond an eighth of pi, what is missing to a quarter. */
    bool far = low > 0.4142135623730951 * high;
    double t = (far ? low - high : low) / (far ? low + high : high), z = t * t;
    double q = mad(z, -0x1.4bd4b1ce93e1fp-5, 0x1.246b6e168730ap-4);
    q = mad(z, q, -0x1.71db7b3958af3p-4);
    q = mad(z, q, 0x1.c6f7369ccd7bcp-4);
    q = mad(z, q, -0x1.2491c40d6d4e7p-3);
    q = mad(z, q, 0x1.99999832b1445p-3);
    q = mad(z, q, -0x1.55555555060bep-2);
    double r = mad(t * z, q, t) + (far ? 0x1.921fb54442d18p-1 : 0.0);
    return y < x ? r : 0x1.921fb54442d18p+0 - r;
}

/* Where x is beyond 1, the root is a NaN. */
static inline float quick_asin(float x)
{
    double a = fabs((double)x);
    return copysignf((float)angle_near(a, sqrt(mad(-a, a, 1.0))), x);
}
static inline float quick_acos(float x)
{
    double a = fabs((double)x), r = angle_near(sqrt(mad(-a, a, 1.0)), a);
    return (float)(x < 0 ? 0x1.921fb54442d18p+1 - r : r);
}

static inline float quick_atan(float x)
{
    return copysignf((float)angle_near(fabs((double)x), 1.0), x);
}

static inline float quick_atan2(float y, float x)
{
    /* Far beyond floats the angle is the limit's, also of 0 and of two infinities. */
    double a = fabs((double)y), b = fabs((double)x);
    a = a > 0x1p600 ? 0x1p600 : a;
    b = b > 0x1p600 ? 0x1p600 : b;
    double r = angle_near(a, b < 0x1p-400 ? 0x1p-400 : b);
    r = copysign(1.0, (double)x) < 0 ? 0x1.921fb54442d18p+1 - r : r;
    return copysignf((float)r, y);
}

/* NaN, which the compiler does not know: it would make branches of what follows. */
static inline double none(double x)
{
    return x * INFINITY * 0.0;
}

/* Exact, as the remainder always is: a quotient below 2^28 comes out on the right side of
 * a whole number, and its product with b fits. */
static inline float quick_fmod(float x, float y)
{
    double a = fabs((double)x), b = fabs((double)y), q = a / b;
    float r = copysignf((float)(a - trunc(q) * b), x);
    return q < 0x1p28 ? r : (float)none(q);
}

/* --- float64 --- */

/* Exact where a product and a sum are rounded once. The whole quotient may be 1 too large,
 * never too small. */
static inline double quick_fmod(double x, double y)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    double a = fabs(x), b = fabs(y), q = a / b, r = mad(-trunc(q), b, a);
    r = r < 0 ? r + b : r;
    return q < 0x1p52 ? copysign(r, x) : none(q);
#else
    return fmod(x, y);
#endif
}

/* 2^n * e^r, where t is n + ROUNDER and r within half of ln 2. */
static inline double exp_of_parts(double r, double t)
{
    double q = mad(r, 0x1.14b395d72efb0p-29, 0x1.af55452c3b7f5p-26);
    q = mad(r, q, 0x1.27ecc8732a2bep-22);
    q = mad(r, q, 0x1.71ddfdd297d17p-19);
    q = mad(r, q, 0x1.a019fd4ab9f55p-16);
    q = mad(r, q, 0x1.a01a01adb8eeap-13);
    q = mad(r, q, 0x1.6c16c16d2d8dbp-10);
    q = mad(r, q, 0x1.111111110fc03p-7);
    q = mad(r, q, 0x1.5555555555183p-5);
    q = mad(r, q, 0x1.5555555555558p-3);
    q = mad(r, q, 0x1.0000000000001p-1);
    double p = 1.0 + mad(r * r, q, r);
    /* As for float32; halving by a logical shift needs a number that is not negative.
     */
    uint64_t i = bits_of_double(t) - bits_of_double(ROUNDER) + 2048,
             half = (i >> 1) - 1024;
    double s1 = double_of_bits((half + 1023) << 52);
    double s2 = double_of_bits((i - 2048 - half + 1023) << 52);
    return p * s1 * s2;
}

static inline double quick_exp(double x)
{
    x = x < -1418.0 ? -1418.0 : x; /* as -176 for float32 */
    x = x > 710.0 ? 710.0 : x;
    double t = mad(x, 0x1.71547652b82fep+0, ROUNDER), n = t - ROUNDER;
    double r = mad(n, -0x1.62e42feep-1, x);
    return exp_of_parts(mad(n, -0x1.a39ef35793c76p-33, r), t);
}

static inline double quick_exp2(double x)
{
    x = x < -2045.0 ? -2045.0 : x;
    x = x > 1025.0 ? 1025.0 : x;
    double t = x + ROUNDER;
    return exp_of_parts((x - (t - ROUNDER)) * 0x1.62e42fefa39efp-1, t);
}

static inline double quick_cosh(double x)
{
    double a = fabs(x), e = quick_exp(a);
    return a < 709.0 ? 0.5 * e + 0.5 / e : none(x);
}

/* e^x - 1 = 2^n * (e^r - 1) + (2^n - 1); the half of it, since 2^n may overflow. */
static inline double quick_expm1(double x)
{
    double c = x < -60.0 ? -60.0 : x;
    c = c > 710.0 ? 710.0 : c;
    double t = mad(c, 0x1.71547652b82fep+0, ROUNDER), n = t - ROUNDER;
    double most = mad(n, -0x1.62e42feep-1, c), rest = n * 0x1.a39ef35793c76p-33;
    double r = most - rest, low = (most - r) - rest;
    double q = mad(r, 0x1.1f95595d1b688p-29, 0x1.af5ebf5f9e3bdp-26);
    q = mad(r, q, 0x1.27e4c5a74397ap-22);
    q = mad(r, q, 0x1.71ddf85369f19p-19);
    q = mad(r, q, 0x1.a01a01b0b40f2p-16);
    q = mad(r, q, 0x1.a01a01afe53c3p-13);
    q = mad(r, q, 0x1.6c16c16c1445ap-10);
    q = mad(r, q, 0x1.111111110f6aep-7);
    q = mad(r, q, 0x1.555555555555ap-5);
    q = mad(r, q, 0x1.5555555555559p-3);
    q = mad(r, q, 0.5);
    double scale = double_of_bits((bits_of_double(t) + 1022) << 52);
    return copysign(2.0 * mad(scale, mad(r * r, q, low), mad(scale, r, scale - 0.5)),
                    x);
}

static inline double quick_sinh(double x)
{
    double a = fabs(x), t = quick_expm1(a);
    return a < 709.0 ? copysign(0.5 * (t + t / (t + 1.0)), x) : none(x);
}

static inline double quick_tanh(double x)
{
    double a = fabs(x), z = a * a;
    double q = mad(z, 0x1.907a860b3297fp-18, -0x1.f7a620b83e3f1p-16);
    q = mad(z, q, 0x1.7f56e3544b13fp-14);
    q = mad(z, q, -0x1.f0dbda3b6dcacp-13);
    q = mad(z, q, 0x1.3506956131fabp-11);
    q = mad(z, q, -0x1.7d9b9e40f94b5p-10);
    q = mad(z, q, 0x1.d6d34e957c0bep-9);
    q = mad(z, q, -0x1.226e328326097p-7);
    q = mad(z, q, 0x1.664f486e48618p-6);
    q = mad(z, q, -0x1.ba1ba1b9c57f5p-5);
    q = mad(z, q, 0x1.1111111110b61p-3);
    q = mad(z, q, -0x1.5555555555551p-2);
    double small = mad(a * z, q, a);
    double large = 1.0 - 2.0 / (quick_exp(2.0 * (a > 20.0 ? 20.0 : a)) + 1.0);
    return copysign(a < 0.63 ? small : large, x); /* NaN is not below 0.63 */
}

/* The logarithm of (1 + f) * 2^power, plus `rest`, which is small. */
static inline double log_of_parts(double f, double power, double rest)
{
    double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double q = mad(z, 0x1.0f623cf96a446p-3, 0x1.0f5ce0563b906p-3);
    q = mad(z, q, 0x1.3b20aa87e4014p-3);
    q = mad(z, q, 0x1.745cde3ba0c3fp-3);
    q = mad(z, q, 0x1.c71c7258ea87ap-3);
    q = mad(z, q, 0x1.249249242b517p-2);
    q = mad(z, q, 0x1.9999999999dfep-2);
    q = mad(z, q, 0x1.5555555555555p-1);
    double low = mad(s, mad(z, q, half), mad(power, 0x1.a39ef35793c76p-33, rest));
    return mad(power, 0x1.62e42feep-1, f - (half - low));
}

static inline double quick_log(double x)
{
    double tiny = x < 0x1p-1022 ? 52.0 : 0.0;
    double power, f = split_power(x < 0x1p-1022 ? x * 0x1p52 : x, &power);
    double result = log_of_parts(f, power - tiny, 0.0);
    result = x == 0.0 ? -INFINITY : result;
    result = x == INFINITY ? x : result;
    return x >= 0.0 ? result : NAN;
}

static inline double quick_log1p(double x)
{
    double u = 1.0 + x, most = u - 1.0, lost = (x - most) + (1.0 - (u - most));
    double power, f = split_power(u, &power);
    double result = log_of_parts(f, power, lost / u);
    result = x == -1.0 ? -INFINITY : result;
    result = x == INFINITY || x == 0.0 ? x : result;
    return x >= -1.0 ? result : NAN;
}

/* As `turn`, with what rounding the rest has lost in `low`. Right up to DT_FAR_DOUBLE,
 * where the products with the first 66 bits of pi/2 are exact. */
#define DT_FAR_DOUBLE 0x1.8p20
static inline double turn_exactly(double x, uint64_t *quarter, double *low)
{
    double t = mad(x, 0x1.45f306dc9c883p-1, ROUNDER), n = t - ROUNDER;
    *quarter = bits_of_double(t);
    double first = x - n * 0x1.921fb544p+0, second = n * 0x1.0b4611a6p-34,
           r = first - second;
    double rest = mad(n, 0x1.3198a2e037073p-69, second - (first - r));
    double high = r - rest;
    *low = (r - high) - rest;
    return high;
}
static inline double sin_exactly(double r, double low)
{
    double z = r * r;
    double p = mad(z, -0x1.aaa545853ac2ep-41, 0x1.612092b3e2cfdp-33);
    p = mad(z, p, -0x1.ae64529845041p-26);
    p = mad(z, p, 0x1.71de3a5339715p-19);
    p = mad(z, p, -0x1.a01a01a018ae4p-13);
    p = mad(z, p, 0x1.111111111110bp-7);
    p = mad(z, p, -0x1.5555555555555p-3);
    return r + mad(r * z, p, low * mad(z, -0.5, 1.0));
}
static inline double cos_exactly(double r, double low)
{
    double z = r * r, half = 0.5 * z, w = 1.0 - half;
    double p = mad(z, -0x1.8fae9c692b1aep-37, 0x1.1ee9ebe913637p-29);
    p = mad(z, p, -0x1.27e4f809f07b2p-22);
    p = mad(z, p, 0x1.a01a019cb1bd8p-16);
    p = mad(z, p, -0x1.6c16c16c1517ep-10);
    p = mad(z, p, 0x1.555555555554cp-5);
    return w + (((1.0 - w) - half) + mad(z * z, p, -r * low));
}

static inline double quick_sin(double x)
{
    uint64_t q;
    double low, r = turn_exactly(x, &q, &low);
    double v = q & 1 ? cos_exactly(r, low) : sin_exactly(r, low);
    v = x == 0.0 ? x : with_sign(v, q >> 1 & 1);
    return fabs(x) < DT_FAR_DOUBLE ? v : none(x);
}

static inline double quick_cos(double x)
{
    uint64_t q;
    double low, r = turn_exactly(x, &q, &low);
    double v = q & 1 ? sin_exactly(r, low) : cos_exactly(r, low);
    v = with_sign(v, (q + 1) >> 1 & 1);
    return fabs(x) < DT_FAR_DOUBLE ? v : none(x);
}

static inline double quick_erf(double x)
{
    double a = fabs(x), z = a * a;
    double q = mad(z, -0x1.accd709c255f0p-31, 0x1.d77e2e51e7e6bp-27);
    q = mad(z, q, -0x1.5c15ef0ab051dp-23);
    q = mad(z, q, 0x1.b98251f7f6031p-20);
    q = mad(z, q, -0x1.f4ca904aa844dp-17);
    q = mad(z, q, 0x1.f9a2bf29bff21p-14);
    q = mad(z, q, -0x1.c02db06fbe8bbp-11);
    q = mad(z, q, 0x1.565bccfa84578p-8);
    q = mad(z, q, -0x1.b82ce3120578ep-6);
    q = mad(z, q, 0x1.ce2f21a040fe9p-4);
    q = mad(z, q, -0x1.812746b0379c1p-2);
    q = mad(z, q, 0x1.06eba8214db68p-3);
    double small = mad(a, q, a);
    /* The logarithm of 1 - erf; a NaN stays one. */
    double b = a > 5.93 ? 5.93 : a;
    q = mad(b, -0x1.4f2d5c8c03ec1p-38, 0x1.b3b14a3215543p-33);
    q = mad(b, q, -0x1.068f01fc748a4p-28);
    q = mad(b, q, 0x1.8410786447e45p-25);
    q = mad(b, q, -0x1.86b41e883dad0p-22);
    q = mad(b, q, 0x1.17a2d9f1d40e1p-19);
    q = mad(b, q, -0x1.1b7852adda06ep-17);
    q = mad(b, q, 0x1.72f6a0bac08c9p-16);
    q = mad(b, q, -0x1.35a7e3d4226c5p-16);
    q = mad(b, q, -0x1.22d4afba242cep-13);
    q = mad(b, q, 0x1.970bac735c2acp-11);
    q = mad(b, q, -0x1.f81d8c3723480p-10);
    q = mad(b, q, 0x1.b5b8aff1b68d7p-12);
    q = mad(b, q, 0x1.370dc91867653p-6);
    q = mad(b, q, -0x1.a4a99756e5b76p-4);
    q = mad(b, q, -0x1.45f647f16da28p-1);
    q = mad(b, q, -0x1.20dd1c2105cc3p+0);
    q = mad(b, q, -0x1.1a6e9ef153fbep-21);
    double large = 1.0 - quick_exp(q);
    return copysign(a < 1.0 ? small : large, x);
}

namespace {

struct Quick : Exact {
#define QUICK(name)                                                                    \
    using Exact::name;                                                                 \
    static float name(float x)                                                         \
    {                                                                                  \
        return quick_##name(x);                                                        \
    }
    QUICK(log2)
    QUICK(log10)
    QUICK(tan)
    QUICK(asin)
    QUICK(acos)
    QUICK(atan)
    QUICK(asinh)
    QUICK(acosh)
    QUICK(atanh)
#undef QUICK
#define QUICK(name)                                                                    \
    template <typename T>                                                              \
    static T name(T x)                                                                 \
    {                                                                                  \
        return quick_##name(x);                                                        \
    }
    QUICK(exp)
    QUICK(exp2)
    QUICK(expm1)
    QUICK(log)
    QUICK(log1p)
    QUICK(sin)
    QUICK(cos)
    QUICK(sinh)
    QUICK(cosh)
    QUICK(tanh)
    QUICK(erf)
#undef QUICK
    using Exact::atan2;
    static float atan2(float y, float x) { return quick_atan2(y, x); }
    using Exact::fmod;
    static float fmod(float a, float b) { return quick_fmod(a, b); }
    static double fmod(double a, double b) { return quick_fmod(a, b); }
};

} // namespace

#endif
