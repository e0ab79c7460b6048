/* The rows of ops/elementwise.def for a single element, with the C library's functions in
 * double. */
#include <math.h>
#include <stdint.h>
#include <type_traits>

#include "ops/bessel.h"
#include "ops/class.h"
#include "ops/elementwise_ops.h"
#include "ops/ops.h"
#include "ops/polynomials.h"
#include "ops/special.h"

#define LIBRARY(ours, name)                                                            \
    static inline float op_##ours(float x)                                             \
    {                                                                                  \
        return (float)name((double)x);                                                 \
    }                                                                                  \
    static inline double op_##ours(double x)                                           \
    {                                                                                  \
        return name(x);                                                                \
    }
#define LIBRARY2(ours, name)                                                           \
    static inline float op_##ours(float a, float b)                                    \
    {                                                                                  \
        return (float)name((double)a, (double)b);                                      \
    }                                                                                  \
    static inline double op_##ours(double a, double b)                                 \
    {                                                                                  \
        return name(a, b);                                                             \
    }
LIBRARY(abs, fabs)
LIBRARY(sqrt, sqrt)
LIBRARY(exp, exp)
LIBRARY(expm1, expm1)
LIBRARY(log, log)
LIBRARY(log2, log2)
LIBRARY(log10, log10)
LIBRARY(log1p, log1p)
LIBRARY(sin, sin)
LIBRARY(cos, cos)
LIBRARY(tan, tan)
LIBRARY(sinh, sinh)
LIBRARY(cosh, cosh)
LIBRARY(tanh, tanh)
LIBRARY(exp2, exp2)
LIBRARY(asin, asin)
LIBRARY(acos, acos)
LIBRARY(atan, atan)
LIBRARY(asinh, asinh)
LIBRARY(acosh, acosh)
LIBRARY(atanh, atanh)
LIBRARY(erf, erf)
LIBRARY(erfc, erfc)
LIBRARY(floor, floor)
LIBRARY(ceil, ceil)
LIBRARY(trunc, trunc)
LIBRARY(rint, rint)
LIBRARY(lgamma, lgamma)
LIBRARY(digamma, dt_digamma)
static inline float op_erfinv(float x)
{
    return (float)dt_erfinv((double)x, 1);
}
static inline double op_erfinv(double x)
{
    return dt_erfinv(x, 2);
}
LIBRARY2(polygamma, dt_polygamma)
LIBRARY2(hypot, hypot)
LIBRARY2(copysign, copysign)
LIBRARY2(atan2, atan2)
LIBRARY2(fmod, fmod)
LIBRARY2(pow_raw, pow)

#define DT_F(name) op_##name
#define DT_FN      static inline
#define DT_FN_LONG DT_FN
#include "ops/arithmetic.h"
#include "ops/formula.h"

#define KERNEL(name, arity, class, flags, ...)                                         \
    constexpr dt_class class_of_##name = DT_CLASS_VALUE(flags, DT_CLASS_##class);
#include "ops/elementwise_kernels.def"

/* A formula that the functions of a type do not cover is not compiled for it. */
template <typename T>
static bool of_type(dt_elementwise_op op, const void *a, const void *b, const void *c,
                    const void *d, void *out)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name: {                                                               \
        if constexpr (class_of_##name.takes[dt_kind_of<T>]) {                          \
            typedef std::conditional_t<class_of_##name.choice, bool, T> First;         \
            typedef std::conditional_t<class_of_##name.truth, bool, T> Result;         \
            operands(First, *(const First *)a, *(const T *)b, *(const T *)c,           \
                     *(const T *)d) *                                                  \
                (Result *)out = (Result)(value);                                       \
            return true;                                                               \
        }                                                                              \
        return false;                                                                  \
    }
#include "ops/elementwise_kernels.def"
    default:
        return false;
    }
}

/* Whether the row takes the type; then it is applied. */
extern "C" bool reference(dt_dtype dtype, dt_elementwise_op op, const void *a,
                          const void *b, const void *c, const void *d, void *out)
{
    switch (dtype) {
#define DT_DTYPE(ID, name, alias, type)                                                \
    case DT_##ID:                                                                      \
        return of_type<Compute<type>>(op, a, b, c, d, out);
#define DT_DTYPE_HALF(...) /* the same kernels as float32's; tested from Python */
#define DT_DTYPE_COMPLEX(...)
#include "ops/dtype.def"
    default:
        return false;
    }
}
