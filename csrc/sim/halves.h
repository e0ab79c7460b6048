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

/* __half_raw and its kin. */
template <class S>
struct Raw {
    unsigned short x;
};

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
    Half(Raw<S> raw) : bits(raw.x) {}
    operator Raw<S>() const { return {bits}; }
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
    SIM_HALF_TEST(__hequ, !(a < b || a > b))
    SIM_HALF_TEST(__hneu, a != b)
    SIM_HALF_TEST(__hltu, !(a >= b))
    SIM_HALF_TEST(__hleu, !(a > b))
    SIM_HALF_TEST(__hgtu, !(a <= b))
    SIM_HALF_TEST(__hgeu, !(a < b))
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
    friend Half __hfma_sat(Half a, Half b, Half c)
    {
        return Half(__saturatef(__hfma(a, b, c)));
    }
    friend Half __hfma_relu(Half a, Half b, Half c)
    {
        const Half sum = __hfma(a, b, c);
        return (float)sum < 0 ? Half(0.0f) : sum;
    }
    SIM_HALF_UNARY(hexp, exp((double)a))
    SIM_HALF_UNARY(hexp2, exp2((double)a))
    SIM_HALF_UNARY(hexp10, exp10((double)a))
    SIM_HALF_UNARY(hlog, log((double)a))
    SIM_HALF_UNARY(hlog2, log2((double)a))
    SIM_HALF_UNARY(hlog10, log10((double)a))
    SIM_HALF_UNARY(hsin, sin((double)a))
    SIM_HALF_UNARY(hcos, cos((double)a))
    SIM_HALF_UNARY(htanh, tanh((double)a))
    SIM_HALF_UNARY(htanh_approx, tanh((double)a))
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
#define SIM_PAIR_FMA(name, of)                                                         \
    friend Pair name(Pair a, Pair b, Pair c)                                           \
    {                                                                                  \
        return {of(a.x, b.x, c.x), of(a.y, b.y, c.y)};                                 \
    }
/* 1 or 0 for each component, all of its bits, and whether it is so for both. */
#define SIM_PAIR_TEST(name)                                                            \
    friend Pair __h##name##2(Pair a, Pair b)                                           \
    {                                                                                  \
        return {H(__h##name(a.x, b.x)), H(__h##name(a.y, b.y))};                       \
    }                                                                                  \
    friend unsigned __h##name##2_mask(Pair a, Pair b)                                  \
    {                                                                                  \
        return (__h##name(a.x, b.x) ? 0xffffu : 0) |                                   \
               (__h##name(a.y, b.y) ? 0xffff0000u : 0);                                \
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
    /* Whether it is so for both. */
    friend bool operator==(Pair a, Pair b) { return __hbeq2(a, b); }
    friend bool operator!=(Pair a, Pair b) { return __hbneu2(a, b); }
    friend bool operator<(Pair a, Pair b) { return __hblt2(a, b); }
    friend bool operator<=(Pair a, Pair b) { return __hble2(a, b); }
    friend bool operator>(Pair a, Pair b) { return __hbgt2(a, b); }
    friend bool operator>=(Pair a, Pair b) { return __hbge2(a, b); }
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
    SIM_PAIR_BINARY(__hmin2_nan, __hmin_nan)
    SIM_PAIR_BINARY(__hmax2_nan, __hmax_nan)
    SIM_PAIR_UNARY(__hisnan2, __hisnan)
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
    SIM_PAIR_UNARY(h2tanh_approx, htanh)
    SIM_PAIR_UNARY(h2sqrt, hsqrt)
    SIM_PAIR_UNARY(h2rsqrt, hrsqrt)
    SIM_PAIR_UNARY(h2rcp, hrcp)
    SIM_PAIR_UNARY(h2floor, hfloor)
    SIM_PAIR_UNARY(h2ceil, hceil)
    SIM_PAIR_UNARY(h2trunc, htrunc)
    SIM_PAIR_UNARY(h2rint, hrint)
    SIM_PAIR_FMA(__hfma2, __hfma)
    SIM_PAIR_FMA(__hfma2_sat, __hfma_sat)
    SIM_PAIR_FMA(__hfma2_relu, __hfma_relu)
    /* Complex numbers: a * b + c. */
    friend Pair __hcmadd(Pair a, Pair b, Pair c)
    {
        return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)),
                __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
    }
    SIM_PAIR_TEST(eq)
    SIM_PAIR_TEST(ne)
    SIM_PAIR_TEST(lt)
    SIM_PAIR_TEST(le)
    SIM_PAIR_TEST(gt)
    SIM_PAIR_TEST(ge)
    SIM_PAIR_TEST(equ)
    SIM_PAIR_TEST(neu)
    SIM_PAIR_TEST(ltu)
    SIM_PAIR_TEST(leu)
    SIM_PAIR_TEST(gtu)
    SIM_PAIR_TEST(geu)
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
    friend Pair __lows2bfloat162(Pair a, Pair b) { return {a.x, b.x}; }
    friend Pair __highs2bfloat162(Pair a, Pair b) { return {a.y, b.y}; }
    friend Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
};

/* A shuffle takes them too. */
template <class S>
constexpr bool can_shuffle<Half<S>> = true;
template <class S>
constexpr bool can_shuffle<Pair<S>> = true;

/* A number in 16 bits, rounded as it says. */
template <class H, class T>
H half_rounded(T value, Rounding how)
{
    H near((double)value);
    const long double exact = (long double)value, there = (float)near;
    const bool negative = near.bits >> 15;
    const bool up = there < exact && (how == kUp || (how == kToZero && exact < 0));
    const bool down = there > exact && (how == kDown || (how == kToZero && exact > 0));
    if ((up || down) && !(near.bits & 0x7fff))
        near.bits = up ? 0x0001 : 0x8001;
    else if (up || down)
        near.bits = (uint16_t)(near.bits + (up == negative ? -1 : 1));
    return near;
}
inline int clamped(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

} /* namespace sim */

#undef SIM_HALF_UNARY
#undef SIM_HALF_BINARY
#undef SIM_HALF_TEST
#undef SIM_HALF_ASSIGN
#undef SIM_PAIR_UNARY
#undef SIM_PAIR_BINARY
#undef SIM_PAIR_FMA
#undef SIM_PAIR_TEST

/* Conversions of one format and one rounding. */
#define SIM_HALF_TO(H, name, to)                                                       \
    inline int __##name##2int##to(H a)                                                 \
    {                                                                                  \
        return __float2int##to(a);                                                     \
    }                                                                                  \
    inline unsigned __##name##2uint##to(H a)                                           \
    {                                                                                  \
        return __float2uint##to(a);                                                    \
    }                                                                                  \
    inline long long __##name##2ll##to(H a)                                            \
    {                                                                                  \
        return __float2ll##to(a);                                                      \
    }                                                                                  \
    inline unsigned long long __##name##2ull##to(H a)                                  \
    {                                                                                  \
        return __float2ull##to(a);                                                     \
    }                                                                                  \
    inline short __##name##2short##to(H a)                                             \
    {                                                                                  \
        return (short)sim::clamped(__float2int##to(a), -32768, 32767);                 \
    }                                                                                  \
    inline unsigned short __##name##2ushort##to(H a)                                   \
    {                                                                                  \
        return (unsigned short)sim::clamped(__float2int##to(a), 0, 65535);             \
    }
#define SIM_HALF_OF(H, name, T, made)                                                  \
    inline H name(T a)                                                                 \
    {                                                                                  \
        return made;                                                                   \
    }
#define SIM_HALF_OF_NUMBERS(H, name, of_float, to, made)                               \
    SIM_HALF_OF(H, of_float##to, float, made)                                          \
    SIM_HALF_OF(H, __int2##name##to, int, made)                                        \
    SIM_HALF_OF(H, __uint2##name##to, unsigned, made)                                  \
    SIM_HALF_OF(H, __short2##name##to, short, made)                                    \
    SIM_HALF_OF(H, __ushort2##name##to, unsigned short, made)                          \
    SIM_HALF_OF(H, __ll2##name##to, long long, made)                                   \
    SIM_HALF_OF(H, __ull2##name##to, unsigned long long, made)

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
    SIM_HALF_OF_NUMBERS(H, name, of_float, _rn, a)                                     \
    SIM_HALF_OF_NUMBERS(H, name, of_float, _rz, sim::half_rounded<H>(a, sim::kToZero)) \
    SIM_HALF_OF_NUMBERS(H, name, of_float, _rd, sim::half_rounded<H>(a, sim::kDown))   \
    SIM_HALF_OF_NUMBERS(H, name, of_float, _ru, sim::half_rounded<H>(a, sim::kUp))     \
    SIM_HALF_TO(H, name, _rn)                                                          \
    SIM_HALF_TO(H, name, _rz)                                                          \
    SIM_HALF_TO(H, name, _rd)                                                          \
    SIM_HALF_TO(H, name, _ru)                                                          \
    inline H __double2##name(double a)                                                 \
    {                                                                                  \
        return a;                                                                      \
    }                                                                                  \
    inline signed char __##name##2char_rz(H a)                                         \
    {                                                                                  \
        return (signed char)sim::clamped(__float2int_rz(a), -128, 127);                \
    }                                                                                  \
    inline unsigned char __##name##2uchar_rz(H a)                                      \
    {                                                                                  \
        return (unsigned char)sim::clamped(__float2int_rz(a), 0, 255);                 \
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
#undef SIM_HALF_OF_NUMBERS
#undef SIM_HALF_OF
#undef SIM_HALF_TO

using __half_raw = sim::Raw<dt_float16>;
using __nv_bfloat16_raw = sim::Raw<dt_bfloat16>;
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
#define __CUDA_FP16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__
#define CUDART_INF_FP16        __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16        __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_NEG_ZERO_FP16   __ushort_as_half(0x8000)
#define CUDART_ONE_FP16        __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16       __ushort_as_half(0)
#define CUDART_INF_BF16        __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16        __ushort_as_bfloat16(0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_NEG_ZERO_BF16   __ushort_as_bfloat16(0x8000)
#define CUDART_ONE_BF16        __ushort_as_bfloat16(0x3f80)
#define CUDART_ZERO_BF16       __ushort_as_bfloat16(0)

#endif
