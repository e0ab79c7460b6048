/* Functions that the formulas use and the C maths library lacks, for every element type
 * and for both backends.
 *
 * The includer defines DT_FN (qualifiers: `static inline`, with `__device__` in CUDA)
 * and DT_FN_LONG (the same for functions of integers that are many instructions), and
 * has for floats op_abs, op_floor, op_ceil, op_trunc, op_rint, op_copysign, op_fmod and
 * op_pow_raw (the library's pow). */
#ifndef DT_OPS_ARITHMETIC_H
#define DT_OPS_ARITHMETIC_H

#include <stdint.h>
#include <type_traits>

#include "base/complex.h"

template <typename T>
constexpr bool is_float = std::is_floating_point_v<T>;
/* Whether a number is negative. bool and uint8_t never are. */
template <typename T>
DT_FN bool op_is_negative(T a)
{
    if constexpr (std::is_signed_v<T>)
        return a < 0;
    else
        return false;
}

/* The comparison with itself passes a NaN on, from either side. */
template <typename T>
DT_FN T op_maximum(T a, T b)
{
    return (a > b || a != a) ? a : b;
}
template <typename T>
DT_FN T op_minimum(T a, T b)
{
    return (a < b || a != a) ? a : b;
}
/* A NaN gives way to the other, from either side. */
template <typename T>
DT_FN T op_fmax_of(T a, T b)
{
    return (a > b || b != b) ? a : b;
}
template <typename T>
DT_FN T op_fmin_of(T a, T b)
{
    return (a < b || b != b) ? a : b;
}
template <typename T>
DT_FN T op_sign(T a)
{
    if constexpr (std::is_signed_v<T>)
        return (T)((a > 0) - (a < 0));
    else
        return (T)(a != 0);
}
template <typename T>
DT_FN bool op_signbit_of(T a)
{
    if constexpr (is_float<T>)
        return op_copysign((T)1, a) < 0;
    else
        return op_is_negative(a);
}
template <typename T>
DT_FN bool op_isinf(T a)
{
    return is_float<T> && a - a != 0 && a == a;
}
template <typename T>
DT_FN bool op_isfinite(T a)
{
    return !is_float<T> || a - a == 0;
}

template <typename T>
DT_FN T op_conj(T a)
{
    if constexpr (is_complex<T>)
        return T(a.real, -a.imag);
    else
        return a;
}

/* --- functions of ops/special.h, bessel.h and polynomials.h, in double --- */

template <typename T>
DT_FN T op_i0_of(T x)
{
    return (T)dt_bessel(0, (double)x);
}
template <typename T>
DT_FN T op_i0e_of(T x)
{
    return (T)dt_bessel_scaled(0, (double)x);
}
template <typename T>
DT_FN T op_i1_of(T x)
{
    return (T)dt_bessel(1, (double)x);
}
template <typename T>
DT_FN T op_i1e_of(T x)
{
    return (T)dt_bessel_scaled(1, (double)x);
}
template <typename T>
DT_FN T op_erfcx_of(T x)
{
    return (T)dt_erfcx((double)x);
}
template <typename T>
DT_FN T op_ndtri_of(T x)
{
    return (T)dt_ndtri((double)x);
}
template <typename T>
DT_FN T op_zeta_of(T a, T b)
{
    return (T)dt_zeta((double)a, (double)b);
}
template <typename T>
DT_FN T op_igamma_of(T a, T b)
{
    return (T)dt_gammainc((double)a, (double)b, false);
}
template <typename T>
DT_FN T op_igammac_of(T a, T b)
{
    return (T)dt_gammainc((double)a, (double)b, true);
}
template <typename T>
DT_FN T op_bessel_of(T x, T code)
{
    return (T)dt_bessel_function((double)x, (int)code);
}
template <typename T>
DT_FN T op_polynomial_of(T x, T n, T kind)
{
    return (T)dt_polynomial((double)x, (double)n, (int)kind);
}

/* --- integers --- */

template <typename T>
DT_FN T op_bitwise_not(T a)
{
    if constexpr (std::is_same_v<T, bool>)
        return !a;
    else
        return (T)~a;
}
/* Unsigned, so that INT64_MIN does not overflow. */
template <typename T>
DT_FN uint64_t op_magnitude(T a)
{
    return op_is_negative(a) ? 0 - (uint64_t)a : (uint64_t)a;
}
template <typename T>
DT_FN_LONG uint64_t op_common(T a, T b)
{
    uint64_t m = op_magnitude(a), n = op_magnitude(b);
    while (n) {
        uint64_t rest = m % n;
        m = n;
        n = rest;
    }
    return m;
}
template <typename T>
DT_FN T op_gcd(T a, T b)
{
    return (T)op_common(a, b);
}
template <typename T>
DT_FN_LONG T op_lcm(T a, T b)
{
    uint64_t divisor = op_common(a, b);
    if (!divisor)
        return 0;
    uint64_t product = op_magnitude(a) / divisor * op_magnitude(b);
    return (T)op_magnitude((T)product);
}
/* C leaves a shift by less than 0, or by all bits or more, undefined. */
template <typename T>
DT_FN T op_left_shift(T a, T b)
{
    int64_t by = (int64_t)b; /* NOLINT(bugprone-signed-char-misuse): of all types */
    return by < 0 || by >= 8 * (int64_t)sizeof(T) ? (T)0 : (T)((uint64_t)a << by);
}
template <typename T>
DT_FN T op_right_shift(T a, T b)
{
    int64_t by = (int64_t)b; /* NOLINT(bugprone-signed-char-misuse): of all types */
    int64_t most = 8 * (int64_t)sizeof(T) - std::is_signed_v<T>;
    return (T)((int64_t)a >> (by < 0 || by > most ? most : by));
}

template <typename T>
DT_FN T op_abs(T a)
{
    return (T)(op_is_negative(a) ? -a : a);
}
template <typename T>
DT_FN T op_floor(T a)
{
    return a;
}
template <typename T>
DT_FN T op_ceil(T a)
{
    return a;
}
template <typename T>
DT_FN T op_trunc(T a)
{
    return a;
}
template <typename T>
DT_FN T op_rint(T a)
{
    return a;
}
/* Division guards its two traps, a zero divisor (the caller reports it where it can)
 * and the least integer by -1, which wraps to itself: no input may stop the process. */
template <typename T>
DT_FN_LONG T op_fmod(T a, T b)
{
    return (T)(b == 0 || (std::is_signed_v<T> && b == (T)-1) ? 0 : a % b);
}
template <typename T>
DT_FN_LONG T op_quotient(T a, T b)
{
    if (b == 0)
        return 0;
    if (std::is_signed_v<T> && b == (T)-1)
        return (T)-a;
    T quotient = (T)(a / b);
    bool rounds = a % b != 0 && op_is_negative(a) != op_is_negative(b);
    return (T)(rounds ? quotient - 1 : quotient);
}
template <typename T>
DT_FN_LONG T op_power(T a, T b)
{
    if (op_is_negative(b))
        return (T)(a == 1 ? 1 : a == (T)-1 ? (b % 2 ? -1 : 1) : 0);
    T result = 1;
    for (; b; b = (T)(b / 2)) {
        if (b % 2)
            result = (T)(result * a);
        a = (T)(a * a);
    }
    return result;
}

/* --- numbers --- */

/* Python's rule: the remainder has the sign of b. mod: C's. */
template <typename T>
DT_FN T op_remainder(T mod, T b)
{
    /* Without branches, for vectors. */
    bool other = (mod != 0) & (op_is_negative(mod) != op_is_negative(b));
    return other ? (T)(mod + b) : mod;
}
/* The quotient that belongs to this remainder. mod: C's, of floats. */
template <typename T>
DT_FN T op_floor_divide(T a, T b, T mod)
{
    if constexpr (!is_float<T>) {
        return op_quotient(a, b);
    } else {
        T quotient = (a - mod) / b;
        quotient = (mod != 0) & ((b < 0) != (mod < 0)) ? quotient - 1 : quotient;
        T whole = op_floor(quotient);
        whole = quotient - whole > (T)0.5 ? whole + 1 : whole;
        whole = quotient == 0 ? op_copysign((T)0, a / b) : whole;
        return b == 0 ? a / b : whole;
    }
}
template <typename T>
DT_FN T op_pow(T a, T b)
{
    if constexpr (std::is_same_v<T, bool>)
        return a | !b;
    else if constexpr (is_float<T>)
        /* The square is by far the commonest power, and exact this way. */
        return b == 2 ? a * a : op_pow_raw(a, b);
    else
        return op_power(a, b);
}

#endif
