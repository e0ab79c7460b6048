/* Functions of complex numbers, for both backends, computed in double, so that those of
 * complex64 are exact to the last digit. The includer defines DT_FN (qualifiers of
 * functions) and has the maths library's functions of doubles.
 *
 * Branch cuts and signs of zeros are those of C99, Annex G; infinite parts may give NaN
 * where it asks for infinities. */
#ifndef DT_OPS_COMPLEX_FUNCTIONS_H
#define DT_OPS_COMPLEX_FUNCTIONS_H

#include <math.h>

#include "base/complex.h"

typedef dt_complex128 dt_wide;

/* --- exponentials and logarithms --- */

DT_FN dt_wide dt_wide_exp(dt_wide z)
{
    const double size = exp(z.real);
    return z.imag == 0 ? dt_wide(size, z.imag)
                       : dt_wide(size * cos(z.imag), size * sin(z.imag));
}
DT_FN dt_wide dt_wide_expm1(dt_wide z)
{
    const double half = sin(z.imag / 2), less = expm1(z.real);
    return dt_wide(less * cos(z.imag) - 2 * half * half, (less + 1) * sin(z.imag));
}
/* log(z + 1), whose real part is exact near 0. */
DT_FN dt_wide dt_wide_log1p(dt_wide z)
{
    const double x = z.real, y = z.imag, size = hypot(x + 1, y);
    return dt_wide(size > 0.5 && size < 2 ? log1p(x * (x + 2) + y * y) / 2 : log(size),
                   atan2(y, x + 1));
}
DT_FN dt_wide dt_wide_log(dt_wide z)
{
    const double x = z.real, y = z.imag, size = hypot(x, y);
    return dt_wide(size > 0.5 && size < 2
                       ? log1p((fabs(x) - 1) * (fabs(x) + 1) + y * y) / 2
                       : log(size),
                   atan2(y, x));
}
DT_FN dt_wide dt_wide_scaled(dt_wide z, double by)
{
    return dt_wide(z.real * by, z.imag * by);
}
DT_FN dt_wide dt_wide_sqrt(dt_wide z)
{
    if (z.real == 0 && z.imag == 0)
        return dt_wide(0, z.imag);
    if (fabs(z.imag) == INFINITY)
        return dt_wide(INFINITY, z.imag);
    /* A quarter of it, since the size of large parts would overflow. */
    const double root =
        2 * sqrt((fabs(z.real / 4) + hypot(z.real / 4, z.imag / 4)) / 2);
    const double other = z.imag / 2 / root;
    return z.real >= 0 ? dt_wide(root, other)
                       : dt_wide(fabs(other), copysign(root, z.imag));
}
DT_FN dt_wide dt_wide_pow(dt_wide a, dt_wide b)
{
    if (!b)
        return dt_wide(1, 0);
    if (!a)
        return b.real > 0 ? dt_wide(0, 0) : dt_wide(NAN, NAN);
    if (b.imag == 0 && b.real == 2)
        return a * a;
    return dt_wide_exp(dt_wide_log(a) * b);
}

/* --- circles and hyperbolas --- */

DT_FN dt_wide dt_wide_sinh(dt_wide z)
{
    return dt_wide(sinh(z.real) * cos(z.imag), cosh(z.real) * sin(z.imag));
}
DT_FN dt_wide dt_wide_cosh(dt_wide z)
{
    return dt_wide(cosh(z.real) * cos(z.imag), sinh(z.real) * sin(z.imag));
}
DT_FN dt_wide dt_wide_tanh(dt_wide z)
{
    /* Beyond, the rest is less than a double has. */
    if (fabs(z.real) > 20)
        return dt_wide(copysign(1.0, z.real),
                       4 * sin(z.imag) * cos(z.imag) * exp(-2 * fabs(z.real)));
    const double x = sinh(z.real), c = cos(z.imag), below = x * x + c * c;
    return dt_wide(x * cosh(z.real) / below, c * sin(z.imag) / below);
}
/* z times i, and i times less: a function of the circle is one of the hyperbola in
 * this plane turned by a quarter. */
DT_FN dt_wide dt_wide_turned(dt_wide z)
{
    return dt_wide(-z.imag, z.real);
}
DT_FN dt_wide dt_wide_back(dt_wide z)
{
    return dt_wide(z.imag, -z.real);
}
/* Kahan, 1987. */
DT_FN dt_wide dt_wide_asin(dt_wide z)
{
    const dt_wide less = dt_wide_sqrt(dt_wide(1 - z.real, -z.imag));
    const dt_wide more = dt_wide_sqrt(dt_wide(1 + z.real, z.imag));
    return dt_wide(atan2(z.real, (less * more).real),
                   asinh(less.real * more.imag - less.imag * more.real));
}
DT_FN dt_wide dt_wide_acos(dt_wide z)
{
    const dt_wide less = dt_wide_sqrt(dt_wide(1 - z.real, -z.imag));
    const dt_wide more = dt_wide_sqrt(dt_wide(1 + z.real, z.imag));
    return dt_wide(2 * atan2(less.real, more.real),
                   asinh(more.real * less.imag - more.imag * less.real));
}
DT_FN dt_wide dt_wide_acosh(dt_wide z)
{
    const dt_wide less = dt_wide_sqrt(dt_wide(z.real - 1, z.imag));
    const dt_wide more = dt_wide_sqrt(dt_wide(z.real + 1, z.imag));
    return dt_wide(asinh(less.real * more.real + less.imag * more.imag),
                   2 * atan2(less.imag, more.real));
}
DT_FN dt_wide dt_wide_atanh(dt_wide z)
{
    return dt_wide_scaled(dt_wide_log1p(z) - dt_wide_log1p(-z), 0.5);
}

/* --- op_NAME, of either type --- */

#define DT_COMPLEX_FUNCTION(name, value)                                               \
    template <typename Part>                                                           \
    DT_FN dt_complex<Part> op_##name(dt_complex<Part> x)                               \
    {                                                                                  \
        const dt_wide z = dt_wide(x);                                                  \
        return dt_complex<Part>(value);                                                \
    }
DT_COMPLEX_FUNCTION(exp, dt_wide_exp(z))
DT_COMPLEX_FUNCTION(exp2, dt_wide_exp(dt_wide_scaled(z, 0.69314718055994531)))
DT_COMPLEX_FUNCTION(expm1, dt_wide_expm1(z))
DT_COMPLEX_FUNCTION(log, dt_wide_log(z))
DT_COMPLEX_FUNCTION(log2, dt_wide_scaled(dt_wide_log(z), 1.4426950408889634))
DT_COMPLEX_FUNCTION(log10, dt_wide_scaled(dt_wide_log(z), 0.43429448190325183))
DT_COMPLEX_FUNCTION(log1p, dt_wide_log1p(z))
DT_COMPLEX_FUNCTION(sqrt, dt_wide_sqrt(z))
DT_COMPLEX_FUNCTION(sinh, dt_wide_sinh(z))
DT_COMPLEX_FUNCTION(cosh, dt_wide_cosh(z))
DT_COMPLEX_FUNCTION(tanh, dt_wide_tanh(z))
DT_COMPLEX_FUNCTION(sin, dt_wide_back(dt_wide_sinh(dt_wide_turned(z))))
DT_COMPLEX_FUNCTION(cos, dt_wide_cosh(dt_wide_turned(z)))
DT_COMPLEX_FUNCTION(tan, dt_wide_back(dt_wide_tanh(dt_wide_turned(z))))
DT_COMPLEX_FUNCTION(asin, dt_wide_asin(z))
DT_COMPLEX_FUNCTION(acos, dt_wide_acos(z))
DT_COMPLEX_FUNCTION(atan, dt_wide_back(dt_wide_atanh(dt_wide_turned(z))))
DT_COMPLEX_FUNCTION(asinh, dt_wide_back(dt_wide_asin(dt_wide_turned(z))))
DT_COMPLEX_FUNCTION(acosh, dt_wide_acosh(z))
DT_COMPLEX_FUNCTION(atanh, dt_wide_atanh(z))
#undef DT_COMPLEX_FUNCTION

template <typename Part>
DT_FN dt_complex<Part> op_pow(dt_complex<Part> a, dt_complex<Part> b)
{
    return dt_complex<Part>(dt_wide_pow(dt_wide(a), dt_wide(b)));
}
template <typename Part>
DT_FN bool op_isinf(dt_complex<Part> z)
{
    return fabs((double)z.real) == INFINITY || fabs((double)z.imag) == INFINITY;
}
template <typename Part>
DT_FN bool op_isfinite(dt_complex<Part> z)
{
    return fabs((double)z.real) < INFINITY && fabs((double)z.imag) < INFINITY;
}

#endif
