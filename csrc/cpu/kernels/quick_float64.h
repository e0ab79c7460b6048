/* Functions of float64 without branches (cpu/kernels/float_functions.h). */
#ifndef DT_CPU_KERNELS_QUICK_FLOAT64_H
#define DT_CPU_KERNELS_QUICK_FLOAT64_H

#include "cpu/kernels/quick.h"

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

/* By how much log(1 + f) exceeds f - half, where half is f^2 / 2. */
static inline double log_rest(double f, double half)
{
    double s = f / (2.0 + f), z = s * s;
    double q = mad(z, 0x1.0f623cf96a446p-3, 0x1.0f5ce0563b906p-3);
    q = mad(z, q, 0x1.3b20aa87e4014p-3);
    q = mad(z, q, 0x1.745cde3ba0c3fp-3);
    q = mad(z, q, 0x1.c71c7258ea87ap-3);
    q = mad(z, q, 0x1.249249242b517p-2);
    q = mad(z, q, 0x1.9999999999dfep-2);
    q = mad(z, q, 0x1.5555555555555p-1);
    return s * mad(z, q, half);
}

/* The logarithm of (1 + f) * 2^power, plus `rest`, which is small. */
static inline double log_of_parts(double f, double power, double rest)
{
    double half = 0.5 * f * f;
    double low = log_rest(f, half) + mad(power, 0x1.a39ef35793c76p-33, rest);
    return mad(power, 0x1.62e42feep-1, f - (half - low));
}

/* The same to a base: `factor` and `unit`, in two parts each, are the logarithms of e and 2
 * to it. The first parts have 32 bits, so that their products are exact. */
static inline double log_to_base(double f, double power, const double (&factor)[2],
                                 const double (&unit)[2])
{
    double half = 0.5 * f * f;
    double high = double_of_bits(bits_of_double(f - half) & 0xffffffff00000000u);
    double low = ((f - high) - half) + log_rest(f, half);
    double most = high * factor[0], whole = power * unit[0], sum = whole + most;
    double rest = mad(low + high, factor[1], mad(low, factor[0], power * unit[1]));
    return sum + (rest + ((whole - sum) + most));
}

/* A positive x, which may be subnormal, as split_power has it. */
static inline double split_any(double x, double *power)
{
    double f = split_power(x < 0x1p-1022 ? x * 0x1p52 : x, power);
    *power -= x < 0x1p-1022 ? 52.0 : 0.0;
    return f;
}

static inline double log_limits(double x, double result)
{
    result = x == 0.0 ? -INFINITY : result;
    result = x == INFINITY ? x : result;
    return x >= 0.0 ? result : NAN;
}

static inline double quick_log(double x)
{
    double power, f = split_any(x, &power);
    return log_limits(x, log_of_parts(f, power, 0.0));
}

static inline double quick_log2(double x)
{
    double power, f = split_any(x, &power);
    return log_limits(
        x, log_to_base(f, power, {0x1.71547652p+0, 0x1.705fc2eefa2p-33}, {1.0, 0.0}));
}

static inline double quick_log10(double x)
{
    double power, f = split_any(x, &power);
    return log_limits(x, log_to_base(f, power, {0x1.bcb7b152p-2, 0x1.b9438ca9aadd5p-36},
                                     {0x1.34413508p-2, 0x1.f79fef311f12bp-34}));
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

#endif
