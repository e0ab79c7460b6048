/* Functions that no maths library of C has, in double, for C and CUDA alike.
 *
 * The includer may define DT_FN (qualifiers of functions). */
#ifndef DT_OPS_SPECIAL_H
#define DT_OPS_SPECIAL_H

#include <math.h>
#include <stdbool.h>

#ifndef DT_FN
#define DT_FN static inline
#endif

/* The inverse of erf: from a formula that is right to 1 in 300, by steps of Halley's,
 * each of which makes three times as many digits right: one for float32, two for
 * float64. Near 1 what is left to 1 is compared, since erf has no digits to tell its
 * values apart there. */
DT_FN double dt_erfinv(double y, int steps)
{
    const double pi = 3.14159265358979324, a = 0.147;
    double size = fabs(y), rest = 1 - size;
    if (!(size < 1))
        return size == 1 ? copysign((double)INFINITY, y) : NAN;
    double logarithm = log1p(-y * y), half = 2 / (pi * a) + logarithm / 2;
    double x =
        0.886226925452758014 * size; /* by the slope at 0, where the formula cancels */
    if (size > 0.1)
        x = sqrt(sqrt(half * half - logarithm / a) - half);
    for (int step = 0; step < steps && x > 0; step++) {
        double wrong = size < 0.5 ? erf(x) - size : rest - erfc(x);
        double slope = 1.12837916709551257 * exp(-x * x);
        double by = wrong / slope;
        x -= by / (1 + x * by);
    }
    return copysign(x, y);
}

/* The derivative of the logarithm of the gamma function: from its asymptotic series,
 * which holds from 12 on; smaller ones are led there by digamma(x) = digamma(x + 1) -
 * 1/x, negative ones by reflection. At 0 it is infinite, with the sign of -x; at the
 * other poles there is no limit. */
DT_FN double dt_digamma(double x)
{
    const double pi = 3.14159265358979324;
    double result = 0;
    if (x == 0)
        return copysign((double)INFINITY, -x);
    if (x < 0) {
        if (x == floor(x))
            return NAN;
        /* The fraction first: the tangent of a large multiple of pi would lose digits.
         */
        double whole = trunc(x);
        result = -pi / tan(pi * (x - whole));
        x = 1 - x;
    }
    while (x < 12) {
        result -= 1 / x;
        x += 1;
    }
    if (x == INFINITY)
        return x;
    /* Bernoulli's numbers: B(2k) / 2k. */
    double z = 1 / (x * x), series = 1.0 / 12;
    series = 691.0 / 32760 - z * series;
    series = 1.0 / 132 - z * series;
    series = 1.0 / 240 - z * series;
    series = 1.0 / 252 - z * series;
    series = 1.0 / 120 - z * series;
    series = 1.0 / 12 - z * series;
    return result + log(x) - 0.5 / x - z * series;
}

/* Hurwitz's zeta function, the sum of (x + k)^-s over k = 0, 1, ..., for s > 1 and x >
 * 0: some terms, then the formula of Euler and Maclaurin for the rest. */
DT_FN double dt_zeta(double s, double x)
{
    /* Bernoulli's numbers: B(2k) / (2k)! */
    const double terms[] = {1.0 / 12,           -1.0 / 720,
                            1.0 / 30240,        -1.0 / 1209600,
                            1.0 / 47900160,     -691.0 / 1307674368000.0,
                            1.0 / 74724249600.0};
    double sum = 0;
    double far = s < 188 ? 12 + s : 200; /* the formula converges from there on */
    while (x < far) {
        sum += pow(x, -s);
        x += 1;
    }
    double power = pow(x, -s);
    if (power == 0)
        return sum;
    sum += power * x / (s - 1) + 0.5 * power;
    double factor = s * power / x;
    for (int k = 0; k < 7; k++) {
        sum += terms[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x);
    }
    return sum;
}

/* The n-th derivative of digamma; n, a whole number, is not negative. The terms of the
 * sum that lie below 0 are those of another two. */
DT_FN double dt_polygamma(double n, double x)
{
    n = rint(n);
    if (n == 0)
        return dt_digamma(x);
    bool odd = fmod(n, 2.0) != 0;
    double sum, s = n + 1;
    if (x > 0) {
        sum = x == INFINITY ? 0 : dt_zeta(s, x);
    } else if (x == floor(x)) {
        sum = INFINITY;
    } else {
        double below = ceil(-x), first = x + below;
        double mirrored = dt_zeta(s, 1 - first) - dt_zeta(s, 1 - x);
        sum = dt_zeta(s, first) + (odd ? mirrored : -mirrored);
    }
    sum *= tgamma(s);
    return odd ? sum : -sum;
}

#endif
