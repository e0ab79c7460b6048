/* Functions of float32 without branches (cpu/kernels/float_functions.h). Those that are
 * worth less than the utmost speed compute in double, where rounding hardly matters. */
#ifndef DT_CPU_KERNELS_QUICK_FLOAT32_H
#define DT_CPU_KERNELS_QUICK_FLOAT32_H

#include "cpu/kernels/quick.h"

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

/* Exact, as the remainder always is: a quotient below 2^28 comes out on the right side of
 * a whole number, and its product with b fits. */
static inline float quick_fmod(float x, float y)
{
    double a = fabs((double)x), b = fabs((double)y), q = a / b;
    float r = copysignf((float)(a - trunc(q) * b), x);
    return q < 0x1p28 ? r : (float)none(q);
}

#endif
