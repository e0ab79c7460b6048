/* cuda_fp16.h and cuda_bf16.h: __half, __nv_bfloat16, pairs of them, and their functions.
 * A result is that of real arithmetic, rounded once, as on a GPU but for functions such as
 * hexp. */
#ifndef DT_SIM_HALVES_H
#define DT_SIM_HALVES_H

#include "base/half.h"

namespace sim {

/* A float that a narrower type rounds as it would round value + rest: rounded to odd. */
inline double to_odd(double value, double rest)
{
    uint64_t bits = same_bits<uint64_t>(value);
    if (rest == 0 || bits & 1 || !(fabs(value) < HUGE_VAL))
        return value;
    return same_bits<double>((rest > 0) == (value > 0) ? bits | 1 : bits - 1);
}
inline float to_odd(double value)
{
    const float near = (float)value;
    const uint32_t bits = same_bits<uint32_t>(near);
    const double rest = value - (double)near;
    if (rest == 0 || bits & 1 || !(fabsf(near) < HUGE_VALF))
        return near;
    if (near == 0) /* below float's subnormals */
        return near;
    return same_bits<float>((rest > 0) == (near > 0) ? bits | 1 : bits - 1);
}

#define SIM_HALF_UNARY(name, result)                                                   \
    friend Half name(Half half)                                                        \
    {                                                                                  \
        const float a = half;                                                          \
        return Half(result);                                                           \
    }
#define SIM_HALF_BINARY(name, result)                                                  \
    friend Half name(Half left, Half right)                                            \
    {                                                                                  \
        const float a = left, b = right;                                               \
        return Half(result);                                                           \
    }
#define SIM_HALF_TEST(name, result)                                                    \
    friend bool name(Half left, Half right)                                            \
    {                                                                                  \
        const float a = left, b = right;                                               \
        return result;                                                                 \
    }
#define SIM_HALF_ASSIGN(op)                                                            \
    Half &operator op## = (Half other)                                                 \
    {                                                                                  \
        return *this = *this op other;                                                 \
    }

/* S: dt_float16 or dt_bfloat16. The functions are found by their arguments. */
template <class S>
struct Half {
    uint16_t bits;

    Half() = default;
    Half(float value) : bits(S(value).bits) {}
    Half(double value) : bits(S(to_odd(value)).bits) {}
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
    Half(T value) : Half((double)value)
    {
    }
    operator float() const
    {
        S stored;
        stored.bits = bits;
        return (float)stored;
    }
    SIM_HALF_ASSIGN(+)
    SIM_HALF_ASSIGN(-)
    SIM_HALF_ASSIGN(*)
    SIM_HALF_ASSIGN(/)
    Half &operator++() { return *this += Half(1.0f); }
    Half &operator--() { return *this -= Half(1.0f); }
    Half operator++(int)
    {
        Half before = *this;
        ++*this;
        return before;
    }
    Half operator--(int)
    {
        Half before = *this;
        --*this;
        return before;
    }
    friend Half operator+(Half a) { return a; }
    friend Half operator-(Half a) { return __hneg(a); }
    friend Half __hneg(Half a)
    {
        a.bits ^= 0x8000;
        return a;
    }
    friend Half __habs(Half a)
    {
        a.bits &= 0x7fff;
        return a;
    }
    SIM_HALF_BINARY(operator+, a + b)
    SIM_HALF_BINARY(operator-, a - b)
    SIM_HALF_BINARY(operator*, a *b)
    SIM_HALF_BINARY(operator/, a / b)
    SIM_HALF_BINARY(__hadd, a + b)
    SIM_HALF_BINARY(__hsub, a - b)
    SIM_HALF_BINARY(__hmul, a *b)
    SIM_HALF_BINARY(__hdiv, a / b)
    SIM_HALF_BINARY(__hadd_rn, a + b)
    SIM_HALF_BINARY(__hsub_rn, a - b)
    SIM_HALF_BINARY(__hmul_rn, a *b)
    SIM_HALF_BINARY(__hadd_sat, __saturatef(a + b))
    SIM_HALF_BINARY(__hsub_sat, __saturatef(a - b))
    SIM_HALF_BINARY(__hmul_sat, __saturatef(a *b))
    SIM_HALF_BINARY(__hmin, fminf(a, b))
    SIM_HALF_BINARY(__hmax, fmaxf(a, b))
    SIM_HALF_BINARY(__hmin_nan, a != a || b != b ? a + b : fminf(a, b))
    SIM_HALF_BINARY(__hmax_nan, a != a || b != b ? a + b : fmaxf(a, b))
    SIM_HALF_TEST(operator==, a == b)
    SIM_HALF_TEST(operator!=, a != b)
    SIM_HALF_TEST(operator<, a < b)
    SIM_HALF_TEST(operator<=, a <= b)
    SIM_HALF_TEST(operator>, a > b)
    SIM_HALF_TEST(operator>=, a >= b)
    SIM_HALF_TEST(__heq, a == b)
    SIM_HALF_TEST(__hne, a<b || a> b)
    SIM_HALF_TEST(__hlt, a < b)
    SIM_HALF_TEST(__hle, a <= b)
    SIM_HALF_TEST(__hgt, a > b)
    SIM_HALF_TEST(__hge, a >= b)
    friend bool __hisnan(Half a) { return (float)a != (float)a; }
    friend int __hisinf(Half a)
    {
        return fabsf(a) == HUGE_VALF ? ((float)a > 0 ? 1 : -1) : 0;
    }
    friend Half __hfma(Half a, Half b, Half c)
    {
        /* The product is exact in double, and so is the error of the sum. */
        const double product = (double)(float)a * (float)b, other = (float)c;
        const double sum = product + other, part = sum - product;
        return to_odd(sum, (product - (sum - part)) + (other - part));
    }
    friend Half fma(Half a, Half b, Half c) { return __hfma(a, b, c); }
    SIM_HALF_UNARY(hexp, exp((double)a))
    SIM_HALF_UNARY(hexp2, exp2((double)a))
    SIM_HALF_UNARY(hexp10, exp10((double)a))
    SIM_HALF_UNARY(hlog, log((double)a))
    SIM_HALF_UNARY(hlog2, log2((double)a))
    SIM_HALF_UNARY(hlog10, log10((double)a))
    SIM_HALF_UNARY(hsin, sin((double)a))
    SIM_HALF_UNARY(hcos, cos((double)a))
    SIM_HALF_UNARY(htanh, tanh((double)a))
    SIM_HALF_UNARY(hsqrt, sqrtf(a))
    SIM_HALF_UNARY(hrsqrt, 1 / sqrt((double)a))
    SIM_HALF_UNARY(hrcp, 1 / a)
    SIM_HALF_UNARY(hfloor, floorf(a))
    SIM_HALF_UNARY(hceil, ceilf(a))
    SIM_HALF_UNARY(htrunc, truncf(a))
    SIM_HALF_UNARY(hrint, rintf(a))
};

#define SIM_PAIR_UNARY(name, of)                                                       \
    friend Pair name(Pair a)                                                           \
    {                                                                                  \
        return {of(a.x), of(a.y)};                                                     \
    }
#define SIM_PAIR_BINARY(name, of)                                                      \
    friend Pair name(Pair a, Pair b)                                                   \
    {                                                                                  \
        return {of(a.x, b.x), of(a.y, b.y)};                                           \
    }
/* 1 or 0 for each component, and whether it is so for both. */
#define SIM_PAIR_TEST(name)                                                            \
    friend Pair __h##name##2(Pair a, Pair b)                                           \
    {                                                                                  \
        return {H(__h##name(a.x, b.x)), H(__h##name(a.y, b.y))};                       \
    }                                                                                  \
    friend bool __hb##name##2(Pair a, Pair b)                                          \
    {                                                                                  \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y);                             \
    }

template <class S>
struct alignas(4) Pair {
    using H = Half<S>;
    H x, y;

    Pair() = default;
    Pair(H x_, H y_) : x(x_), y(y_) {}
    SIM_PAIR_BINARY(operator+, __hadd)
    SIM_PAIR_BINARY(operator-, __hsub)
    SIM_PAIR_BINARY(operator*, __hmul)
    SIM_PAIR_BINARY(operator/, __hdiv)
    Pair &operator+=(Pair b) { return *this = *this + b; }
    Pair &operator-=(Pair b) { return *this = *this - b; }
    Pair &operator*=(Pair b) { return *this = *this * b; }
    Pair &operator/=(Pair b) { return *this = *this / b; }
    friend bool operator==(Pair a, Pair b) { return a.x == b.x && a.y == b.y; }
    friend bool operator!=(Pair a, Pair b) { return !(a == b); }
    SIM_PAIR_BINARY(__hadd2, __hadd)
    SIM_PAIR_BINARY(__hsub2, __hsub)
    SIM_PAIR_BINARY(__hmul2, __hmul)
    SIM_PAIR_BINARY(__h2div, __hdiv)
    SIM_PAIR_BINARY(__hadd2_rn, __hadd)
    SIM_PAIR_BINARY(__hsub2_rn, __hsub)
    SIM_PAIR_BINARY(__hmul2_rn, __hmul)
    SIM_PAIR_BINARY(__hadd2_sat, __hadd_sat)
    SIM_PAIR_BINARY(__hsub2_sat, __hsub_sat)
    SIM_PAIR_BINARY(__hmul2_sat, __hmul_sat)
    SIM_PAIR_BINARY(__hmin2, __hmin)
    SIM_PAIR_BINARY(__hmax2, __hmax)
    SIM_PAIR_UNARY(operator-, __hneg)
    SIM_PAIR_UNARY(__hneg2, __hneg)
    SIM_PAIR_UNARY(__habs2, __habs)
    SIM_PAIR_UNARY(h2exp, hexp)
    SIM_PAIR_UNARY(h2exp2, hexp2)
    SIM_PAIR_UNARY(h2exp10, hexp10)
    SIM_PAIR_UNARY(h2log, hlog)
    SIM_PAIR_UNARY(h2log2, hlog2)
    SIM_PAIR_UNARY(h2log10, hlog10)
    SIM_PAIR_UNARY(h2sin, hsin)
    SIM_PAIR_UNARY(h2cos, hcos)
    SIM_PAIR_UNARY(h2tanh, htanh)
    SIM_PAIR_UNARY(h2sqrt, hsqrt)
    SIM_PAIR_UNARY(h2rsqrt, hrsqrt)
    SIM_PAIR_UNARY(h2rcp, hrcp)
    SIM_PAIR_UNARY(h2floor, hfloor)
    SIM_PAIR_UNARY(h2ceil, hceil)
    SIM_PAIR_UNARY(h2trunc, htrunc)
    SIM_PAIR_UNARY(h2rint, hrint)
    friend Pair __hfma2(Pair a, Pair b, Pair c)
    {
        return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
    }
    SIM_PAIR_TEST(eq)
    SIM_PAIR_TEST(ne)
    SIM_PAIR_TEST(lt)
    SIM_PAIR_TEST(le)
    SIM_PAIR_TEST(gt)
    SIM_PAIR_TEST(ge)
    friend H __low2half(Pair a) { return a.x; }
    friend H __high2half(Pair a) { return a.y; }
    friend H __low2bfloat16(Pair a) { return a.x; }
    friend H __high2bfloat16(Pair a) { return a.y; }
    friend float __low2float(Pair a) { return a.x; }
    friend float __high2float(Pair a) { return a.y; }
    friend Pair __low2half2(Pair a) { return {a.x, a.x}; }
    friend Pair __high2half2(Pair a) { return {a.y, a.y}; }
    friend Pair __low2bfloat162(Pair a) { return {a.x, a.x}; }
    friend Pair __high2bfloat162(Pair a) { return {a.y, a.y}; }
    friend Pair __lows2half2(Pair a, Pair b) { return {a.x, b.x}; }
    friend Pair __highs2half2(Pair a, Pair b) { return {a.y, b.y}; }
    friend Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
};

/* A shuffle takes them too. */
template <class S>
constexpr bool can_shuffle<Half<S>> = true;
template <class S>
constexpr bool can_shuffle<Pair<S>> = true;

} /* namespace sim */

#undef SIM_HALF_UNARY
#undef SIM_HALF_BINARY
#undef SIM_HALF_TEST
#undef SIM_HALF_ASSIGN
#undef SIM_PAIR_UNARY
#undef SIM_PAIR_BINARY
#undef SIM_PAIR_TEST

/* The names of one format. */
#define SIM_HALF_NAMES(S, H, name, to_float, of_float)                                 \
    using H = sim::Half<S>;                                                            \
    using H##2 = sim::Pair<S>;                                                         \
    DT_HALVES(sizeof(#name) == sizeof("half") ? 'h' : 'g', H, H##2)                    \
    inline float to_float(H a)                                                         \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline H of_float(float a)                                                         \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline H of_float##_rn(float a)                                                    \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline H __double2##name(double a)                                                 \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline H __int2##name##_rn(int a)                                                  \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline H __uint2##name##_rn(unsigned a)                                            \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline int __##name##2int_rn(H a)                                                  \
    {                                                                                  \
        return __float2int_rn(a);                                                      \
    }                                                                                  \
    inline int __##name##2int_rz(H a)                                                  \
    {                                                                                  \
        return __float2int_rz(a);                                                      \
    }                                                                                  \
    inline unsigned short __##name##_as_ushort(H a)                                    \
    {                                                                                  \
        return a.bits;                                                                 \
    }                                                                                  \
    inline short __##name##_as_short(H a)                                              \
    {                                                                                  \
        return (short)a.bits;                                                          \
    }                                                                                  \
    inline H __ushort_as_##name(unsigned short a)                                      \
    {                                                                                  \
        H made;                                                                        \
        made.bits = a;                                                                 \
        return made;                                                                   \
    }                                                                                  \
    inline H __short_as_##name(short a)                                                \
    {                                                                                  \
        return __ushort_as_##name((unsigned short)a);                                  \
    }                                                                                  \
    inline H##2 __##name##2##name##2(H a)                                              \
    {                                                                                  \
        return {a, a};                                                                 \
    }                                                                                  \
    inline H##2 __halves2##name##2(H a, H b)                                           \
    {                                                                                  \
        return {a, b};                                                                 \
    }                                                                                  \
    inline H##2 make_##name##2(H a, H b)                                               \
    {                                                                                  \
        return {a, b};                                                                 \
    }                                                                                  \
    inline H##2 of_float##2(float a)                                                   \
    {                                                                                  \
        return {a, a};                                                                 \
    }                                                                                  \
    inline H##2 of_float##2_rn(float a)                                                \
    {                                                                                  \
        return {a, a};                                                                 \
    }                                                                                  \
    inline H##2 __floats2##name##2_rn(float a, float b)                                \
    {                                                                                  \
        return {a, b};                                                                 \
    }                                                                                  \
    inline H##2 __float22##name##2_rn(float2 a)                                        \
    {                                                                                  \
        return {a.x, a.y};                                                             \
    }                                                                                  \
    inline float2 __##name##22float2(H##2 a)                                           \
    {                                                                                  \
        return {a.x, a.y};                                                             \
    }                                                                                  \
    SIM_ATOMIC_ADD(H, H(old + value))                                                  \
    SIM_ATOMIC_ADD(H##2, (H##2(old.x + value.x, old.y + value.y)))

SIM_HALF_NAMES(dt_float16, __half, half, __half2float, __float2half)
SIM_HALF_NAMES(dt_bfloat16, __nv_bfloat16, bfloat16, __bfloat162float, __float2bfloat16)
#undef SIM_HALF_NAMES

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
#define __CUDA_FP16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__
#define CUDART_INF_FP16  __ushort_as_half(0x7c00)
#define CUDART_ONE_FP16  __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half(0)

#endif
