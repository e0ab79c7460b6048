/* The words of the op tables as device functions, overloaded by element type. */
#ifndef DT_CUDA_MATH_H
#define DT_CUDA_MATH_H

#include <math.h>
#include <stdint.h>

#define DT_F(name) op_##name
#define DT_FN      static __device__ __forceinline__
#include "ops/special.h"

#define MATHS(ours, name)                                                              \
    DT_FN float op_##ours(float a)                                                     \
    {                                                                                  \
        return name##f(a);                                                             \
    }                                                                                  \
    DT_FN double op_##ours(double a)                                                   \
    {                                                                                  \
        return name(a);                                                                \
    }
#define MATHS2(ours, name)                                                             \
    DT_FN float op_##ours(float a, float b)                                            \
    {                                                                                  \
        return name##f(a, b);                                                          \
    }                                                                                  \
    DT_FN double op_##ours(double a, double b)                                         \
    {                                                                                  \
        return name(a, b);                                                             \
    }
MATHS(abs, fabs)
MATHS(sqrt, sqrt)
MATHS(exp, exp)
MATHS(expm1, expm1)
MATHS(log, log)
MATHS(log2, log2)
MATHS(log10, log10)
MATHS(log1p, log1p)
MATHS(sin, sin)
MATHS(cos, cos)
MATHS(tan, tan)
MATHS(sinh, sinh)
MATHS(cosh, cosh)
MATHS(tanh, tanh)
MATHS(exp2, exp2)
MATHS(asin, asin)
MATHS(acos, acos)
MATHS(atan, atan)
MATHS(asinh, asinh)
MATHS(acosh, acosh)
MATHS(atanh, atanh)
MATHS(erf, erf)
MATHS(erfc, erfc)
MATHS(floor, floor)
MATHS(ceil, ceil)
MATHS(trunc, trunc)
MATHS(rint, rint)
MATHS(lgamma, lgamma)
MATHS2(atan2, atan2)
MATHS2(hypot, hypot)
MATHS2(copysign, copysign)
MATHS2(fmod, fmod)
MATHS2(pow_raw, pow)
DT_FN float op_digamma(float a)
{
    return (float)dt_digamma((double)a);
}
DT_FN double op_digamma(double a)
{
    return dt_digamma(a);
}
DT_FN float op_polygamma(float n, float a)
{
    return (float)dt_polygamma((double)n, (double)a);
}
DT_FN double op_polygamma(double n, double a)
{
    return dt_polygamma(n, a);
}
#undef MATHS
#undef MATHS2

#define T bool
#define DT_T_BOOL
#include "ops/arithmetic.inc"
#undef DT_T_BOOL
#undef T
#define DT_T_UNSIGNED
#define T uint8_t
#include "ops/arithmetic.inc"
#undef T
#undef DT_T_UNSIGNED
#define DT_T_SIGNED
#define T int8_t
#include "ops/arithmetic.inc"
#undef T
#define T int16_t
#include "ops/arithmetic.inc"
#undef T
#define T int32_t
#include "ops/arithmetic.inc"
#undef T
#define T int64_t
#include "ops/arithmetic.inc"
#undef T
#undef DT_T_SIGNED
#define DT_T_FLOAT
#define T float
#include "ops/arithmetic.inc"
#undef T
#define T double
#include "ops/arithmetic.inc"
#undef T
#undef DT_T_FLOAT

#include "ops/formula.h"

#endif
