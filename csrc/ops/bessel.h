/* Bessel functions of the first and second kind, and Airy's, in double, for C and CUDA alike.
 * ops/special.h has the modified ones of the first kind. DT_FN as there.
 *
 * Near 0 by power series; else by integrals along a path on which the integrand falls like
 * exp(-u * u), where the trapezoidal rule is right to all digits after few terms (Trefethen
 * and Weideman, The exponentially convergent trapezoidal rule, 2014). */
#ifndef DT_OPS_BESSEL_H
#define DT_OPS_BESSEL_H

#include "ops/special.h"
#include "ops/special_codes.h"

/* The power series of J (sign -1) or I (1) of order 0 or 1, and the same with the factors
 * (digamma(k + 1) + digamma(k + order + 1)) / 2: Abramowitz and Stegun, 9.1.10, 9.1.11,
 * 9.6.10 and 9.6.11. */
DT_FN double dt_bessel_series(int order, double x, double sign, double *second)
{
    double term = order ? x / 2 : 1, sum = 0, psi = -0.577215664901532861;
    *second = 0;
    for (int k = 0; k < 40; k++) {
        sum += term;
        *second += term * (order ? psi + 0.5 / (k + 1) : psi);
        term *= sign * x * x / 4 / ((k + 1) * (double)(k + 1 + order));
        psi += 1.0 / (k + 1);
    }
    return sum;
}

/* exp(x) K(x), K being the modified function of the second kind, for x of 0.5 or more: the
 * integral of exp(x (1 - cosh t)) cosh(order t) over t from 0 on (Abramowitz and Stegun,
 * 9.6.24). */
DT_FN double dt_bessel_k_scaled(double order, double x)
{
    double step = fmin(0.2, 0.5 / sqrt(x)), sum = 0.5, term = 1;
    for (int k = 1; k < 400 && term > 1e-18 * sum; k++) {
        double half = sinh(k * step / 2);
        term = exp(-2 * x * half * half) * cosh(order * k * step);
        sum += term;
    }
    return step * sum;
}

/* exp(-ix) K(-ix), for x of 0.5 or more, by which J + iY = 2 / (pi i) exp(-i pi order / 2)
 * K(-ix) (9.6.4). On the path t = u + i phi, whose cos phi is 1 / cosh u, cosh t is 1 + iw
 * with w = sinh u tanh u. */
DT_FN void dt_bessel_wave(double order, double x, double *real, double *imaginary)
{
    double step = fmin(0.13, 0.4 / sqrt(x)), size = 1;
    *real = *imaginary = 0.5;
    for (int k = 1; k < 800 && size > 1e-18; k++) {
        double u = k * step, slope = 1 / cosh(u), phi = 2 * atan(tanh(u / 2));
        double fall = exp(-x * sinh(u) * tanh(u));
        double a = cosh(order * u) * cos(order * phi);
        double b = sinh(order * u) * sin(order * phi);
        *real += fall * (a - b * slope);
        *imaginary += fall * (b + a * slope);
        size = fall * cosh(order * u);
    }
    *real *= step;
    *imaginary *= step;
}

/* J of order 0 or 1 of a positive number, or Y. */
DT_FN double dt_bessel_real(int order, double x, bool second_kind)
{
    const double part = 0.636619772367581343; /* 2 / pi */
    double real, imaginary, rest;
    if (x < 2) {
        double first = dt_bessel_series(order, x, -1, &rest);
        if (!second_kind)
            return first;
        return part * (log(x / 2) * first - rest) - (order ? part / x : 0);
    }
    dt_bessel_wave(order, x, &real, &imaginary);
    double across = real * cos(x) - imaginary * sin(x);
    double along = real * sin(x) + imaginary * cos(x);
    if (order)
        return -part * (second_kind ? along : across);
    return part * (second_kind ? -across : along);
}

/* K of order 0 or 1 of a positive number, or that times exp(x). */
DT_FN double dt_bessel_k(int order, double x, bool scaled)
{
    double rest;
    if (x >= 2)
        return dt_bessel_k_scaled(order, x) * (scaled ? 1 : exp(-x));
    double first = dt_bessel_series(order, x, 1, &rest);
    double k = order ? 1 / x + log(x / 2) * first - rest : rest - log(x / 2) * first;
    return scaled ? k * exp(x) : k;
}

/* Airy's function Ai: Abramowitz and Stegun, 10.4.2, 10.4.14 and 10.4.15. */
DT_FN double dt_airy_ai(double x)
{
    double size = fabs(x), zeta = 2.0 / 3 * size * sqrt(size);
    if (size < 1) {
        double cube = x * x * x, first = 1, second = x, f = 0, g = 0;
        for (int k = 0; k < 12; k++) {
            f += first;
            g += second;
            first *= cube / ((3 * k + 2) * (3 * k + 3));
            second *= cube / ((3 * k + 3) * (3 * k + 4));
        }
        return 0.355028053887817239 * f - 0.258819403792806798 * g;
    }
    double factor = sqrt(size / 3) * 0.318309886183790672; /* 1 / pi */
    if (x > 0)
        return factor * exp(-zeta) * dt_bessel_k_scaled(1.0 / 3, zeta);
    double real, imaginary;
    dt_bessel_wave(1.0 / 3, zeta, &real, &imaginary);
    return 2 * factor * (real * sin(zeta) + imaginary * cos(zeta));
}

/* The function of a code. Y and K are infinite at 0, and NaN below. */
DT_FN double dt_bessel_function(double x, int code)
{
    double size = fabs(x);
    if (x != x)
        return x;
    switch (code) {
    case DT_AIRY_AI:
        return size == INFINITY ? (double)NAN : dt_airy_ai(x);
    case DT_BESSEL_J0:
        return size == INFINITY ? (double)NAN : dt_bessel_real(0, size, false);
    case DT_BESSEL_J1:
        return size == INFINITY ? (double)NAN
                                : copysign(1.0, x) * dt_bessel_real(1, size, false);
    case DT_BESSEL_I0:
        return dt_bessel(0, x);
    case DT_BESSEL_I1:
        return dt_bessel(1, x);
    case DT_SPHERICAL_J0:
        return size == INFINITY ? 0 : size < 1e-8 ? 1 : sin(x) / x;
    default:
        break;
    }
    const bool y = code == DT_BESSEL_Y0 || code == DT_BESSEL_Y1;
    const int order =
        code == DT_BESSEL_Y1 || code == DT_BESSEL_K1 || code == DT_SCALED_K1;
    if (x <= 0)
        return x < 0 ? (double)NAN : y ? -(double)INFINITY : (double)INFINITY;
    if (x == INFINITY)
        return y ? (double)NAN : 0;
    return y ? dt_bessel_real(order, x, true)
             : dt_bessel_k(order, x, code == DT_SCALED_K0 || code == DT_SCALED_K1);
}

#endif
