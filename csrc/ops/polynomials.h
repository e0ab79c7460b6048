/* Orthogonal polynomials by their degree, in double, for C and CUDA alike. DT_FN as in
 * ops/special.h. */
#ifndef DT_OPS_POLYNOMIALS_H
#define DT_OPS_POLYNOMIALS_H

#include "ops/special.h"
#include "ops/special_codes.h"

/* No recurrence takes more steps, whatever a program asks for. */
#define DT_MOST_DEGREE 100000

/* Chebyshev's polynomial of a great degree n for x from -1 to 1: by the angle whose cosine x
 * is (Mason and Handscomb, Chebyshev Polynomials, 1.2). */
DT_FN double dt_chebyshev(int kind, double n, double x)
{
    double angle = acos(x), sign = x < 0 && fmod(n, 2.0) != 0 ? -1 : 1;
    bool end = x == 1 || x == -1;
    switch (kind) {
    case DT_CHEBYSHEV_T:
        return end ? sign : cos(n * angle);
    case DT_CHEBYSHEV_U:
        return end ? sign * (n + 1) : sin((n + 1) * angle) / sin(angle);
    case DT_CHEBYSHEV_V:
        return end ? (x > 0 ? 1 : sign * (2 * n + 1))
                   : cos((n + 0.5) * angle) / cos(angle / 2);
    default:
        return end ? (x > 0 ? 2 * n + 1 : sign)
                   : sin((n + 0.5) * angle) / sin(angle / 2);
    }
}

/* The polynomial of degree n, whose fraction is dropped, at x; 0 for a negative one. By the
 * recurrences of Abramowitz and Stegun, 22.7, the last values of which are p and q. */
DT_FN double dt_polynomial(double x, double n, int kind)
{
    if (x != x || n != n)
        return NAN;
    n = trunc(n);
    if (n < 0)
        return 0;
    if (kind >= DT_SHIFTED_T) {
        x = 2 * x - 1;
        kind -= DT_SHIFTED_T;
    }
    if (kind <= DT_CHEBYSHEV_W && n > 64 && fabs(x) <= 1)
        return dt_chebyshev(kind, n, x);
    if (n > DT_MOST_DEGREE)
        return NAN;
    double q = 1, p = 2 * x;
    if (kind == DT_CHEBYSHEV_T || kind == DT_HERMITE_HE || kind == DT_LEGENDRE_P)
        p = x;
    else if (kind == DT_CHEBYSHEV_V || kind == DT_CHEBYSHEV_W)
        p = kind == DT_CHEBYSHEV_V ? 2 * x - 1 : 2 * x + 1;
    else if (kind == DT_LAGUERRE_L)
        p = 1 - x;
    if (n == 0)
        return q;
    const int degree = (int)n;
    for (int i = 1; i < degree && p - p == 0; i++) {
        const double k = i;
        double next;
        if (kind == DT_HERMITE_H)
            next = 2 * (x * p - k * q);
        else if (kind == DT_HERMITE_HE)
            next = x * p - k * q;
        else if (kind == DT_LAGUERRE_L)
            next = ((2 * k + 1 - x) * p - k * q) / (k + 1);
        else if (kind == DT_LEGENDRE_P)
            next = ((2 * k + 1) * x * p - k * q) / (k + 1);
        else
            next = 2 * x * p - q;
        q = p;
        p = next;
    }
    return p;
}

#endif
