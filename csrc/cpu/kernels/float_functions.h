/* Functions of floats for ops/formula.h.
 *
 * op_NAME is the C library's. Of some functions there are two forms: Exact's are the
 * library's, in double. Quick's are without branches, so that a loop of them becomes
 * vector code, and answer NaN for the rare arguments that they leave to the exact ones:
 * whoever uses them does an element with a NaN once more (elementwise.isa.cpp). */
#ifndef DT_CPU_KERNELS_FLOAT_FUNCTIONS_H
#define DT_CPU_KERNELS_FLOAT_FUNCTIONS_H

#include <math.h>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/quick_float32.h"
#include "cpu/kernels/quick_float64.h"

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

/* The functions that are quick for both types, and whose code for float64 is long. */
#define LONG_FUNCTIONS(EACH)                                                           \
    EACH(exp2)                                                                         \
    EACH(expm1)                                                                        \
    EACH(log)                                                                          \
    EACH(log2)                                                                         \
    EACH(log10)                                                                        \
    EACH(log1p)                                                                        \
    EACH(sin)                                                                          \
    EACH(cos)                                                                          \
    EACH(sinh)                                                                         \
    EACH(cosh)                                                                         \
    EACH(tanh)

struct Quick : Exact {
#define QUICK(name)                                                                    \
    using Exact::name;                                                                 \
    static float name(float x)                                                         \
    {                                                                                  \
        return quick_##name(x);                                                        \
    }
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
    QUICK(erf)
    LONG_FUNCTIONS(QUICK)
#undef QUICK
    using Exact::atan2;
    static float atan2(float y, float x) { return quick_atan2(y, x); }
    using Exact::fmod;
    static float fmod(float a, float b) { return quick_fmod(a, b); }
    static double fmod(double a, double b) { return quick_fmod(a, b); }
};

/* For formulas of several functions, which have many loops: to keep wheels small, the long
 * functions of float64 are exact there. */
struct Composed : Quick {
#define COMPOSED(name)                                                                 \
    using Quick::name;                                                                 \
    static double name(double x)                                                       \
    {                                                                                  \
        return Exact::name(x);                                                         \
    }
    LONG_FUNCTIONS(COMPOSED)
#undef COMPOSED
};
#undef LONG_FUNCTIONS

} // namespace

#endif
