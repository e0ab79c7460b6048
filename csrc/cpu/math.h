/* Functions of one float element for ops/formula.h, without branches where that lets a loop of
 * them become vector code. */
#ifndef DT_CPU_MATH_H
#define DT_CPU_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define DT_LIBM(name)                                                                      \
    static inline float name##_FLOAT32(float x)                                            \
    {                                                                                      \
        return name##f(x);                                                                 \
    }                                                                                      \
    static inline double name##_FLOAT64(double x)                                          \
    {                                                                                      \
        return name(x);                                                                    \
    }
#define DT_LIBM2(ours, name)                                                               \
    static inline float ours##_FLOAT32(float a, float b)                                   \
    {                                                                                      \
        return name##f(a, b);                                                              \
    }                                                                                      \
    static inline double ours##_FLOAT64(double a, double b)                                \
    {                                                                                      \
        return name(a, b);                                                                 \
    }
static inline float abs_FLOAT32(float x)
{
    return fabsf(x);
}
static inline double abs_FLOAT64(double x)
{
    return fabs(x);
}
DT_LIBM(sqrt)
DT_LIBM(exp)
DT_LIBM(expm1)
DT_LIBM(log)
DT_LIBM(log2)
DT_LIBM(log10)
DT_LIBM(log1p)
DT_LIBM(sin)
DT_LIBM(cos)
DT_LIBM(tan)
DT_LIBM(sinh)
DT_LIBM(cosh)
DT_LIBM(tanh)
DT_LIBM(floor)
DT_LIBM(ceil)
DT_LIBM(trunc)
DT_LIBM(rint)
DT_LIBM2(atan2, atan2)
DT_LIBM2(fmod, fmod)
DT_LIBM2(pow_raw, pow)

#endif
