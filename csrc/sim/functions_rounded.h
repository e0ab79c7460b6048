/* More of functions.h, which includes it: lengths, error and Bessel functions, and
 * arithmetic and conversions with a rounding by name. */
#ifndef DT_SIM_FUNCTIONS_ROUNDED_H
#define DT_SIM_FUNCTIONS_ROUNDED_H

/* --- lengths of vectors --- */
SIM_FUNCTION2(float, rhypotf, 1 / hypot((double)a, (double)b))
SIM_FUNCTION2(double, rhypot, 1 / hypot(a, b))
SIM_FUNCTION3(double, norm3d, hypot(hypot(a, b), c))
SIM_FUNCTION3(double, rnorm3d, 1 / norm3d(a, b, c))
SIM_FUNCTION3(float, norm3df, norm3d(a, b, c))
SIM_FUNCTION3(float, rnorm3df, 1 / norm3d(a, b, c))
inline double norm4d(double a, double b, double c, double d)
{
    return hypot(hypot(a, b), hypot(c, d));
}
inline double rnorm4d(double a, double b, double c, double d)
{
    return 1 / norm4d(a, b, c, d);
}
inline float norm4df(float a, float b, float c, float d)
{
    return (float)norm4d(a, b, c, d);
}
inline float rnorm4df(float a, float b, float c, float d)
{
    return (float)(1 / norm4d(a, b, c, d));
}
inline double norm(int n, const double *p)
{
    double length = 0;
    for (int i = 0; i < n; i++)
        length = hypot(length, p[i]);
    return length;
}
inline float normf(int n, const float *p)
{
    double length = 0;
    for (int i = 0; i < n; i++)
        length = hypot(length, (double)p[i]);
    return (float)length;
}

/* --- error functions and Bessel functions --- */
inline double erfcinv(double q)
{
    if (q > 1)
        return -erfcinv(2 - q);
    if (!(q > 0))
        return q == 0 ? __builtin_inf() : __builtin_nan("");
    /* Winitzki's formula, and steps of Halley's. */
    const double part = 0.147, l = log(q * (2 - q)), t = 2 / (M_PI * part) + l / 2;
    double x = sqrt(sqrt(t * t - l / part) - t);
    for (int i = 0; i < 3; i++) {
        const double u = (q - erfc(x)) * exp(x * x) / M_2_SQRTPI;
        x -= u / (1 + x * u);
    }
    return x;
}
inline double erfinv(double y)
{
    if (fabs(y) > 0.5)
        return copysign(erfcinv(1 - fabs(y)), y);
    double x = y * (1 / M_2_SQRTPI);
    for (int i = 0; i < 5; i++)
        x -= (erf(x) - y) * exp(x * x) / M_2_SQRTPI;
    return x;
}
inline double erfcx(double a)
{
    if (a < 20)
        return exp(a * a) * erfc(a);
    double rest = a; /* the continued fraction */
    for (int k = 30; k; k--)
        rest = a + k / 2.0 / rest;
    return 1 / (rest * sqrt(M_PI));
}
SIM_FUNCTION1(double, normcdfinv, -M_SQRT2 *erfcinv(2 * a))
SIM_FUNCTION1(float, erfcinvf, erfcinv(a))
SIM_FUNCTION1(float, erfinvf, erfinv(a))
SIM_FUNCTION1(float, erfcxf, erfcx(a))
SIM_FUNCTION1(float, normcdfinvf, normcdfinv(a))
namespace sim {
inline double bessel_i(int order, double x)
{
    double term = order ? x / 2 : 1, sum = term;
    for (int k = 1; fabs(term) > fabs(sum) * 1e-18; k++) {
        term *= x / 2 / k * (x / 2) / (k + order);
        sum += term;
    }
    return sum;
}
} /* namespace sim */
SIM_FUNCTION1(double, cyl_bessel_i0, sim::bessel_i(0, a))
SIM_FUNCTION1(double, cyl_bessel_i1, sim::bessel_i(1, a))
SIM_FUNCTION1(float, cyl_bessel_i0f, sim::bessel_i(0, a))
SIM_FUNCTION1(float, cyl_bessel_i1f, sim::bessel_i(1, a))

/* --- a rounding by name: to nearest, to zero, down, up --- */
namespace sim {
enum Rounding { kToZero, kDown, kUp };
/* Rounds an exact result by `how`. r is the exact result rounded to nearest; rest has the
 * sign of the exact result minus r. */
template <class T>
T rounded(T r, T rest, Rounding how)
{
    const bool up = how == kUp || (how == kToZero && r < 0);
    const bool down = how == kDown || (how == kToZero && r > 0);
    if (rest > 0 && up)
        return (T)nextafter(r, (T)__builtin_inf());
    return rest < 0 && down ? (T)nextafter(r, -(T)__builtin_inf()) : r;
}
inline float nextafter(float from, float to)
{
    return nextafterf(from, to);
}
inline double nextafter(double from, double to)
{
    return ::nextafter(from, to);
}
/* The difference of a + b and r, which is the rounded sum. */
template <class T>
T rest_of_sum(T a, T b, T r)
{
    const T part = r - a;
    return (a - (r - part)) + (b - part);
}
template <class T>
T rest_of_fma(T a, T b, T c, T r)
{
    const T product = a * b, sum = product + c;
    return (sum - r) + (rest_of_sum(product, c, sum) + (T)fma((T)a, (T)b, (T)-product));
}
template <class T>
T sign_of(T a)
{
    return (T)((a > 0) - (a < 0));
}
} /* namespace sim */
#define SIM_ROUNDED(T, name, given, nearest, rest)                                     \
    inline T name##_rn given                                                           \
    {                                                                                  \
        return (T)(nearest);                                                           \
    }                                                                                  \
    inline T name##_rz given                                                           \
    {                                                                                  \
        const T r = (T)(nearest);                                                      \
        return sim::rounded(r, (T)(rest), sim::kToZero);                               \
    }                                                                                  \
    inline T name##_rd given                                                           \
    {                                                                                  \
        const T r = (T)(nearest);                                                      \
        return sim::rounded(r, (T)(rest), sim::kDown);                                 \
    }                                                                                  \
    inline T name##_ru given                                                           \
    {                                                                                  \
        const T r = (T)(nearest);                                                      \
        return sim::rounded(r, (T)(rest), sim::kUp);                                   \
    }
#define SIM_ARITHMETIC(T, f, add, sub, mul, div, of_three, rcp, root)                  \
    SIM_ROUNDED(T, add, (T a, T b), a + b, sim::rest_of_sum(a, b, r))                  \
    SIM_ROUNDED(T, sub, (T a, T b), a - b, sim::rest_of_sum(a, -b, r))                 \
    SIM_ROUNDED(T, mul, (T a, T b), a *b, fma##f(a, b, -r))                            \
    SIM_ROUNDED(T, div, (T a, T b), a / b, fma##f(-r, b, a) * sim::sign_of(b))         \
    SIM_ROUNDED(T, of_three, (T a, T b, T c), fma##f(a, b, c),                         \
                sim::rest_of_fma(a, b, c, r))                                          \
    SIM_ROUNDED(T, rcp, (T a), 1 / a, fma##f(-r, a, (T)1) * sim::sign_of(a))           \
    SIM_ROUNDED(T, root, (T a), sqrt##f(a), fma##f(-r, r, a))
SIM_ARITHMETIC(float, f, __fadd, __fsub, __fmul, __fdiv, __fmaf, __frcp, __fsqrt)
SIM_ARITHMETIC(double, , __dadd, __dsub, __dmul, __ddiv, __fma, __drcp, __dsqrt)
SIM_ROUNDED(float, __double2float, (double a), a, a - (double)r)
SIM_ROUNDED(float, __int2float, (int a), a, (double)a - (double)r)
SIM_ROUNDED(float, __uint2float, (unsigned a), a, (double)a - (double)r)
SIM_ROUNDED(float, __ll2float, (long long a), a, (long double)a - (long double)r)
SIM_ROUNDED(float, __ull2float, (unsigned long long a), a,
            (long double)a - (long double)r)
SIM_ROUNDED(double, __ll2double, (long long a), a, (long double)a - (long double)r)
SIM_ROUNDED(double, __ull2double, (unsigned long long a), a,
            (long double)a - (long double)r)
#undef SIM_ARITHMETIC
#undef SIM_ROUNDED

#endif
