/* The steps of cumulative operations, for both backends. An Op carries a State along a row:
 * identity() before the first element, of(x, index) for one element, combine(a, b) for a
 * before b. Integers are carried as int64 and wrap, floats as double.
 *
 * The includer has op_exp, op_log1p, and DT_FN, the qualifiers of functions; DT_FN_LONG
 * are those of functions of many instructions. */
#ifndef DT_OPS_SCAN_H
#define DT_OPS_SCAN_H

#include <math.h>
#include <stdint.h>
#include <type_traits>

namespace {
namespace scan {

template <typename T>
struct Sum {
    typedef T Value;
    typedef T State;
    DT_FN State identity() { return 0; }
    DT_FN State of(T x, int64_t, bool) { return x; }
    DT_FN State combine(State a, State b) { return a + b; }
    DT_FN T value(State s, bool) { return s; }
    DT_FN int64_t index(State) { return 0; }
};

template <typename T>
struct Product : Sum<T> {
    DT_FN T identity() { return 1; }
    DT_FN T combine(T a, T b) { return a * b; }
};

template <typename T>
struct LogSumExp : Sum<T> {
    DT_FN T identity() { return -(T)INFINITY; }
    DT_FN_LONG T combine(T a, T b)
    {
        T high = a > b ? a : b, low = a > b ? b : a;
        if (a != a || b != b)
            return a + b;
        /* Equal infinities have no difference. */
        return high == low && high - high != 0 ? high
                                               : high + op_log1p(op_exp(low - high));
    }
};

template <typename T>
struct Found {
    T value;
    int64_t index; /* -1: nothing found yet */
};

/* The maximum and its index: the later of two equal ones, and a NaN before all numbers.
 * The minimum is the maximum of negatives, or of the complements of integers, which do
 * not overflow. */
template <typename T>
struct Max {
    typedef T Value;
    typedef Found<T> State;
    DT_FN T mirror(T x)
    {
        if constexpr (std::is_integral_v<T>)
            return ~x;
        else
            return -x;
    }
    DT_FN bool replaces(T later, T earlier)
    {
        return (later != later) | ((earlier == earlier) & (later >= earlier));
    }
    DT_FN State identity() { return {T(0), -1}; }
    DT_FN State of(T x, int64_t index, bool min)
    {
        return {min ? mirror(x) : x, index};
    }
    DT_FN State combine(State a, State b)
    {
        const bool later = b.index >= 0 && (a.index < 0 || replaces(b.value, a.value));
        return later ? b : a;
    }
    DT_FN T value(const State &s, bool min) { return min ? mirror(s.value) : s.value; }
    DT_FN int64_t index(const State &s) { return s.index; }
};

} // namespace scan
} // namespace

#endif
