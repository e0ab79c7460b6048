/* The words of the op tables as device functions, overloaded by element type. */
#ifndef DT_CUDA_KERNELS_DEVICE_FUNCTIONS_H
#define DT_CUDA_KERNELS_DEVICE_FUNCTIONS_H

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>

/* Functions of many instructions are called: a kernel has each four times over, and a
 * wheel for five architectures has every kernel five times. Functions that are short, or
 * common in float32, are inlined. */
#define SHORT static __device__ __forceinline__
#ifdef __CUDACC__
#define LONG static __device__ __noinline__
#else
#define LONG static inline
#endif

#define DT_F(name) op_##name
#define DT_FN      LONG
#include "ops/special.h"
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
MATHS(SHORT, LONG, exp, exp)
MATHS(SHORT, LONG, expm1, expm1)
MATHS(SHORT, LONG, log, log)
MATHS(SHORT, LONG, log2, log2)
MATHS(SHORT, LONG, log10, log10)
MATHS(SHORT, LONG, log1p, log1p)
MATHS(LONG, LONG, sin, sin)
MATHS(LONG, LONG, cos, cos)
MATHS(LONG, LONG, tan, tan)
MATHS(SHORT, LONG, sinh, sinh)
MATHS(SHORT, LONG, cosh, cosh)
MATHS(SHORT, LONG, tanh, tanh)
MATHS(SHORT, LONG, exp2, exp2)
MATHS(SHORT, LONG, asin, asin)
MATHS(SHORT, LONG, acos, acos)
MATHS(SHORT, LONG, atan, atan)
MATHS(LONG, LONG, asinh, asinh)
MATHS(LONG, LONG, acosh, acosh)
MATHS(LONG, LONG, atanh, atanh)
MATHS(SHORT, LONG, erf, erf)
MATHS(LONG, LONG, erfc, erfc)
MATHS(SHORT, SHORT, floor, floor)
MATHS(SHORT, SHORT, ceil, ceil)
MATHS(SHORT, SHORT, trunc, trunc)
MATHS(SHORT, SHORT, rint, rint)
MATHS(LONG, LONG, lgamma, lgamma)
MATHS2(LONG, LONG, atan2, atan2)
MATHS2(SHORT, LONG, hypot, hypot)
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
