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

/* The inverse of erf: a formula with an error of 1 in 300, improved by Halley iterations.
 * Each triples the number of correct digits: one is enough for float32, two for float64.
 * Near 1, where values of erf differ in their last digits only, it compares 1 - erf
 * instead. */
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
 * 0, by some terms, then the formula of Euler and Maclaurin for the rest. */
DT_FN double dt_zeta_above(double s, double x)
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

/* The same for all x. Terms below 0, which exist only for an integral s, are computed as
 * the difference of two sums. */
DT_FN double dt_zeta(double s, double x)
{
    if (!(s > 1) || x != x)
        return s == 1 ? (double)INFINITY : (double)NAN;
    if (x > 0)
        return x == INFINITY ? 0 : dt_zeta_above(s, x);
    if (x == floor(x))
        return INFINITY;
    if (s != floor(s))
        return NAN;
    double below = ceil(-x), first = x + below;
    double mirrored = dt_zeta_above(s, 1 - first) - dt_zeta_above(s, 1 - x);
    return dt_zeta_above(s, first) + (fmod(s, 2.0) == 0 ? mirrored : -mirrored);
}

/* The n-th derivative of digamma; n, a whole number, is not negative. */
DT_FN double dt_polygamma(double n, double x)
{
    n = rint(n);
    if (n == 0)
        return dt_digamma(x);
    double sum = dt_zeta(n + 1, x) * tgamma(n + 1);
    return fmod(n, 2.0) != 0 ? sum : -sum;
}

/* exp(x * x) * erfc(x), which erfc alone is too small for: from 2 on a continued
 * fraction (Abramowitz and Stegun, 7.1.14). */
DT_FN double dt_erfcx(double x)
{
    if (x < 2)
        return exp(x * x) * erfc(x);
    double fraction = x;
    for (int k = 60; k > 0; k--)
        fraction = x + 0.5 * k / fraction;
    return 0.564189583547756287 / fraction;
}

/* exp(-|x|) times the modified Bessel function of the first kind, of order 0 or 1: its
 * power series, or from 20 on the asymptotic one (Abramowitz and Stegun, 9.6.10 and
 * 9.7.1). */
DT_FN double dt_bessel_scaled(int order, double x)
{
    double size = fabs(x), sum = 1, term = 1;
    if (size < 20) {
        for (int k = 1; k < 64 && term > sum * 1e-17; k++) {
            term *= size * size / (4.0 * k * (k + order));
            sum += term;
        }
        sum *= exp(-size) * (order ? size / 2 : 1);
    } else {
        for (int k = 1; k < 40; k++) {
            double next = (2 * k - 1) * (2 * k - 1) - 4.0 * order;
            next *= term / (8 * k * size);
            if (fabs(next) > fabs(term) || fabs(next) < 1e-17)
                break;
            term = next;
            sum += term;
        }
        sum *= 0.398942280401432678 / sqrt(size);
    }
    return order && x < 0 ? -sum : sum;
}
/* Without the factor. Past 700 it is multiplied in two steps, as I is smaller than e^x. */
DT_FN double dt_bessel(int order, double x)
{
    double size = fabs(x), half = exp(size / 2);
    return size == INFINITY ? (order ? x : size)
                            : dt_bessel_scaled(order, x) * half * half;
}

/* Where the normal distribution has p of its weight below: from a formula that is right
 * to 0.00045 (Abramowitz and Stegun, 26.2.23) by two steps of Halley's. */
DT_FN double dt_ndtri(double p)
{
    double q = p < 0.5 ? p : 1 - p;
    if (!(p > 0 && p < 1))
        return p == 0 ? -(double)INFINITY : p == 1 ? (double)INFINITY : (double)NAN;
    if (p == 0.5)
        return 0;
    double t = sqrt(-2 * log(q));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int step = 0; step < 2; step++) {
        double wrong = 0.5 * erfc(x * 0.707106781186547524) - q;
        double by = wrong * 2.50662827463100050 * exp(0.5 * x * x);
        x += by / (1 - 0.5 * x * by);
    }
    return p < 0.5 ? -x : x;
}

/* x^a exp(-x) / gamma(a + 1). A large a near x loses digits in the powers, and is taken by
 * Stirling's series. */
DT_FN double dt_gamma_term(double a, double x)
{
    if (a < 20)
        return exp(a * log(x) - x) / tgamma(a + 1);
    double by = (x - a) / a, z = 1 / (a * a);
    double log_ratio = fabs(by) < 0.5 ? log1p(by) - by : log(x / a) - by;
    double rest = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
    return exp(a * log_ratio - rest) / sqrt(6.28318530717958648 * a);
}

/* The part of the gamma distribution of shape a that lies below x, or above: a power series
 * where x is small, else a continued fraction (Press et al., Numerical Recipes, 6.2). For
 * large a by the normal distribution and its first correction (Temme, 1979). */
DT_FN double dt_gammainc(double a, double x, bool above)
{
    if (!(x >= 0 && a >= 0) || (x == 0 && a == 0) || (x == INFINITY && a == INFINITY))
        return NAN;
    if (x == 0 || a == INFINITY)
        return above;
    if (a == 0 || x == INFINITY)
        return !above;
    if (a > 1e6) {
        double by = (x - a) / a, far = by - log1p(by);
        double eta = copysign(sqrt(2 * (far > 0 ? far : 0)), by);
        double correction = fabs(eta) < 1e-3 ? -1.0 / 3 + eta / 12 : 1 / by - 1 / eta;
        double rest =
            correction * exp(-0.5 * a * eta * eta) / sqrt(6.28318530717958648 * a);
        double tail = 0.5 * erfc((above ? eta : -eta) * sqrt(a / 2));
        return above ? tail + rest : tail - rest;
    }
    if (x < a + 1) {
        double sum = 1, term = 1;
        for (int k = 1; k < 20000 && term > sum * 1e-17; k++) {
            term *= x / (a + k);
            sum += term;
        }
        sum *= dt_gamma_term(a, x);
        return above ? 1 - sum : sum;
    }
    /* Lentz's way to evaluate it. */
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int k = 1; k < 20000; k++) {
        double factor = -k * (k - a);
        b += 2;
        d = factor * d + b;
        d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + factor / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-16)
            break;
    }
    h *= dt_gamma_term(a, x) * a;
    return above ? h : 1 - h;
}

#endif
