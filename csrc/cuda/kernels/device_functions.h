/* The words of the op tables as device functions, overloaded by element type. */
#ifndef DT_CUDA_KERNELS_DEVICE_FUNCTIONS_H
#define DT_CUDA_KERNELS_DEVICE_FUNCTIONS_H

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

/* Functions of many instructions are called: a kernel has each four times over, and a
 * wheel for five architectures has every kernel five times. Functions that are short, or
 * common in float32, are inlined; the latter not with DT_CALLED_FUNCTIONS, for a kernel
 * that has all rows. */
#define SHORT static __device__ __forceinline__
#ifdef __CUDACC__
#define LONG static __device__ __noinline__
#else
#define LONG static inline
#endif
#ifdef DT_CALLED_FUNCTIONS
#define COMMON LONG
#else
#define COMMON SHORT
#endif

#define DT_F(name) op_##name
#define DT_FN      LONG
#include "ops/bessel.h"
#include "ops/polynomials.h"
#undef DT_FN
#define DT_FN      SHORT
#define DT_FN_LONG LONG

#define MATHS(single, wide, ours, name)                                                \
    single float op_##ours(float a)                                                    \
    {                                                                                  \
        return name##f(a);                                                             \
    }                                                                                  \
    wide double op_##ours(double a)                                                    \
    {                                                                                  \
        return name(a);                                                                \
    }
#define MATHS2(single, wide, ours, name)                                               \
    single float op_##ours(float a, float b)                                           \
    {                                                                                  \
        return name##f(a, b);                                                          \
    }                                                                                  \
    wide double op_##ours(double a, double b)                                          \
    {                                                                                  \
        return name(a, b);                                                             \
    }
MATHS(SHORT, LONG, abs, fabs)
MATHS(SHORT, SHORT, sqrt, sqrt)
MATHS(COMMON, LONG, exp, exp)
MATHS(COMMON, LONG, expm1, expm1)
MATHS(COMMON, LONG, log, log)
MATHS(COMMON, LONG, log2, log2)
MATHS(COMMON, LONG, log10, log10)
MATHS(COMMON, LONG, log1p, log1p)
MATHS(LONG, LONG, sin, sin)
MATHS(LONG, LONG, cos, cos)
MATHS(LONG, LONG, tan, tan)
MATHS(COMMON, LONG, sinh, sinh)
MATHS(COMMON, LONG, cosh, cosh)
MATHS(COMMON, LONG, tanh, tanh)
MATHS(COMMON, LONG, exp2, exp2)
MATHS(COMMON, LONG, asin, asin)
MATHS(COMMON, LONG, acos, acos)
MATHS(COMMON, LONG, atan, atan)
MATHS(LONG, LONG, asinh, asinh)
MATHS(LONG, LONG, acosh, acosh)
MATHS(LONG, LONG, atanh, atanh)
MATHS(COMMON, LONG, erf, erf)
MATHS(LONG, LONG, erfc, erfc)
MATHS(SHORT, SHORT, floor, floor)
MATHS(SHORT, SHORT, ceil, ceil)
MATHS(SHORT, SHORT, trunc, trunc)
MATHS(SHORT, SHORT, rint, rint)
MATHS(LONG, LONG, lgamma, lgamma)
MATHS2(LONG, LONG, atan2, atan2)
MATHS2(COMMON, LONG, hypot, hypot)
MATHS2(SHORT, SHORT, copysign, copysign)
MATHS2(LONG, LONG, fmod, fmod)
MATHS2(LONG, LONG, pow_raw, pow)
template <typename T>
DT_FN T op_digamma(T a)
{
    return (T)dt_digamma((double)a);
}
template <typename T>
DT_FN T op_erfinv(T a)
{
    return (T)dt_erfinv((double)a, sizeof(T) == 8 ? 2 : 1);
}
template <typename T>
DT_FN T op_polygamma(T n, T a)
{
    return (T)dt_polygamma((double)n, (double)a);
}
#undef MATHS
#undef MATHS2

#undef DT_FN
#define DT_FN LONG
#include "ops/complex_functions.h"
#undef DT_FN
#define DT_FN SHORT
#include "ops/arithmetic.h"
#include "ops/formula.h"

#endif
