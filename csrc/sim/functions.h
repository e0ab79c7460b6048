/* CUDA's mathematical and integer functions that C++ does not have. Those that are fast
 * and inexact on a GPU are exact here. */
#ifndef DT_SIM_FUNCTIONS_H
#define DT_SIM_FUNCTIONS_H

#define SIM_FUNCTION1(T, name, result)                                                 \
    inline T name(T a)                                                                 \
    {                                                                                  \
        return (T)(result);                                                            \
    }
#define SIM_FUNCTION2(T, name, result)                                                 \
    inline T name(T a, T b)                                                            \
    {                                                                                  \
        return (T)(result);                                                            \
    }
#define SIM_FUNCTION3(T, name, result)                                                 \
    inline T name(T a, T b, T c)                                                       \
    {                                                                                  \
        return (T)(result);                                                            \
    }

/* --- max and min, of two types too --- */
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b)
{
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>)
        return fmax((C)a, (C)b);
    else
        return (C)a < (C)b ? (C)b : (C)a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b)
{
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>)
        return fmin((C)a, (C)b);
    else
        return (C)b < (C)a ? (C)b : (C)a;
}
SIM_FUNCTION2(unsigned, umax, a < b ? b : a)
SIM_FUNCTION2(unsigned, umin, b < a ? b : a)
SIM_FUNCTION2(long long, llmax, a < b ? b : a)
SIM_FUNCTION2(long long, llmin, b < a ? b : a)
SIM_FUNCTION2(unsigned long long, ullmax, a < b ? b : a)
SIM_FUNCTION2(unsigned long long, ullmin, b < a ? b : a)

/* --- floats --- */
SIM_FUNCTION1(float, rsqrtf, 1.0f / sqrtf(a))
SIM_FUNCTION1(double, rsqrt, 1.0 / sqrt(a))
SIM_FUNCTION1(float, rcbrtf, 1.0f / cbrtf(a))
SIM_FUNCTION1(double, rcbrt, 1.0 / cbrt(a))
SIM_FUNCTION1(float, sinpif, sin(M_PI *(double)a))
SIM_FUNCTION1(double, sinpi, sin(M_PI *a))
SIM_FUNCTION1(float, cospif, cos(M_PI *(double)a))
SIM_FUNCTION1(double, cospi, cos(M_PI *a))
SIM_FUNCTION1(float, normcdff, 0.5 * erfc(-(double)a * M_SQRT1_2))
SIM_FUNCTION1(double, normcdf, 0.5 * erfc(-a * M_SQRT1_2))
SIM_FUNCTION1(float, __saturatef, a > 0 ? (a < 1 ? a : 1) : 0)
SIM_FUNCTION1(float, __expf, expf(a))
SIM_FUNCTION1(float, __exp10f, exp10f(a))
SIM_FUNCTION1(float, __logf, logf(a))
SIM_FUNCTION1(float, __log2f, log2f(a))
SIM_FUNCTION1(float, __log10f, log10f(a))
SIM_FUNCTION1(float, __sinf, sinf(a))
SIM_FUNCTION1(float, __cosf, cosf(a))
SIM_FUNCTION1(float, __tanf, tanf(a))
SIM_FUNCTION1(float, __frsqrt_rn, 1 / sqrtf(a))
SIM_FUNCTION2(float, fdividef, a / b)
SIM_FUNCTION2(float, __fdividef, a / b)
SIM_FUNCTION2(float, __powf, powf(a, b))
SIM_FUNCTION1(float, __tanhf, tanhf(a))
inline void sincospif(float a, float *s, float *c)
{
    *s = sinpif(a);
    *c = cospif(a);
}
inline void __sincosf(float a, float *s, float *c)
{
    *s = sinf(a);
    *c = cosf(a);
}

inline void sincospi(double a, double *s, double *c)
{
    *s = sinpi(a);
    *c = cospi(a);
}

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_PI_F  3.141592654f
#define CUDART_INF   __builtin_inf()
#define CUDART_NAN   __builtin_nan("")
#define CUDART_PI    3.1415926535897931

/* --- integers --- */
SIM_FUNCTION2(int, __mul24, a *b)
SIM_FUNCTION2(unsigned, __umul24, a *b)
SIM_FUNCTION2(int, __mulhi, (long long)a *b >> 32)
SIM_FUNCTION3(unsigned, __usad, (a < b ? b - a : a - b) + c)
inline unsigned __sad(int a, int b, unsigned c)
{
    return (unsigned)llabs((long long)a - b) + c;
}
SIM_FUNCTION2(int, __hadd, ((long long)a + b) >> 1)
SIM_FUNCTION2(int, __rhadd, ((long long)a + b + 1) >> 1)
SIM_FUNCTION2(unsigned, __uhadd, ((unsigned long long)a + b) >> 1)
SIM_FUNCTION2(unsigned, __urhadd, ((unsigned long long)a + b + 1) >> 1)
SIM_FUNCTION2(long long, __mul64hi, (__int128)a *b >> 64)
SIM_FUNCTION2(unsigned long long, __umul64hi, (unsigned __int128)a *b >> 64)
/* They shift the 64 bits of high and low; _lc and _rc by 32 at most. */
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift)
{
    return shift < 32 ? __funnelshift_l(low, high, shift) : low;
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift)
{
    return shift < 32 ? __funnelshift_r(low, high, shift) : high;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    const unsigned long long all = (unsigned long long)b << 32 | a;
    unsigned made = 0;
    for (int i = 0; i < 4; i++)
        made |= (unsigned)(all >> 8 * (which >> 4 * i & 7) & 0xFF) << 8 * i;
    return made;
}
/* Products of the parts of words, added to c. */
namespace sim {
template <class A, class B, class T>
T dot(T a, T b, T c, int n, int first)
{
    for (int i = 0; i < n; i++)
        c += (T)(A)(a >> 8 * (int)sizeof(A) * i) *
             (T)(B)(b >> 8 * (int)sizeof(B) * (i + first));
    return c;
}
/* f of each part of two words. */
template <class P, class F>
unsigned parts(unsigned a, unsigned b, F f)
{
    unsigned made = 0;
    for (int at = 0; at < 32; at += 8 * (int)sizeof(P))
        made |=
            (unsigned)(std::make_unsigned_t<P>)f((int)(P)(a >> at), (int)(P)(b >> at))
            << at;
    return made;
}
} /* namespace sim */
SIM_FUNCTION3(int, __dp4a, (sim::dot<signed char, signed char>(a, b, c, 4, 0)))
SIM_FUNCTION3(unsigned, __dp4a, (sim::dot<unsigned char, unsigned char>(a, b, c, 4, 0)))
SIM_FUNCTION3(int, __dp2a_lo, (sim::dot<short, signed char>(a, b, c, 2, 0)))
SIM_FUNCTION3(int, __dp2a_hi, (sim::dot<short, signed char>(a, b, c, 2, 2)))
SIM_FUNCTION3(unsigned, __dp2a_lo,
              (sim::dot<unsigned short, unsigned char>(a, b, c, 2, 0)))
SIM_FUNCTION3(unsigned, __dp2a_hi,
              (sim::dot<unsigned short, unsigned char>(a, b, c, 2, 2)))
/* Four bytes or two halves of a word at a time. */
#define SIM_PARTS(name, P, result)                                                     \
    inline unsigned name(unsigned one, unsigned other)                                 \
    {                                                                                  \
        return sim::parts<P>(one, other, [](int a, int b) { return (result); });       \
    }
#define SIM_BOTH(name, sign, result)                                                   \
    SIM_PARTS(name##4, sign char, result)                                              \
    SIM_PARTS(name##2, sign short, result)
#define SIM_SIGNS(name, result)                                                        \
    SIM_BOTH(name##s, signed, result)                                                  \
    SIM_BOTH(name##u, unsigned, result)
SIM_BOTH(__vadd, unsigned, a + b)
SIM_BOTH(__vsub, unsigned, a - b)
SIM_PARTS(__vaddss4, signed char, a + b > 127 ? 127 : a + b < -128 ? -128 : a + b)
SIM_PARTS(__vaddss2, short, a + b > 32767 ? 32767 : a + b < -32768 ? -32768 : a + b)
SIM_PARTS(__vaddus4, unsigned char, a + b > 255 ? 255 : a + b)
SIM_PARTS(__vaddus2, unsigned short, a + b > 65535 ? 65535 : a + b)
SIM_PARTS(__vsubss4, signed char, a - b > 127 ? 127 : a - b < -128 ? -128 : a - b)
SIM_PARTS(__vsubss2, short, a - b > 32767 ? 32767 : a - b < -32768 ? -32768 : a - b)
SIM_BOTH(__vsubus, unsigned, a < b ? 0 : a - b)
SIM_SIGNS(__vmax, a < b ? b : a)
SIM_SIGNS(__vmin, b < a ? b : a)
SIM_SIGNS(__vabsdiff, a < b ? b - a : a - b)
SIM_SIGNS(__vavg, (a + b + 1) >> 1)
SIM_BOTH(__vcmpeq, unsigned, -(a == b))
SIM_BOTH(__vcmpne, unsigned, -(a != b))
SIM_SIGNS(__vcmplt, -(a < b))
SIM_SIGNS(__vcmple, -(a <= b))
SIM_SIGNS(__vcmpgt, -(a > b))
SIM_SIGNS(__vcmpge, -(a >= b))
#undef SIM_SIGNS
#undef SIM_BOTH
#undef SIM_PARTS
inline int __popcll(unsigned long long a)
{
    return __builtin_popcountll(a);
}
inline int __clz(int a)
{
    return a ? __builtin_clz((unsigned)a) : 32;
}
inline int __clzll(long long a)
{
    return a ? __builtin_clzll((unsigned long long)a) : 64;
}
inline int __ffs(int a)
{
    return __builtin_ffs(a);
}
inline int __ffsll(long long a)
{
    return __builtin_ffsll(a);
}
inline unsigned __brev(unsigned a)
{
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++)
        reversed |= (a >> i & 1u) << (31 - i);
    return reversed;
}
inline unsigned long long __brevll(unsigned long long a)
{
    return (unsigned long long)__brev((unsigned)a) << 32 | __brev((unsigned)(a >> 32));
}

/* --- conversions --- */
#define SIM_CONVERT(To, name, From, result)                                            \
    inline To name(From a)                                                             \
    {                                                                                  \
        return (To)(result);                                                           \
    }
namespace sim {
/* The nearest number of an integer type, 0 for NaN. */
template <class To, class From>
To whole(From a)
{
    using Limits = std::numeric_limits<To>;
    if (!(a == a))
        return 0;
    if (a >= (From)Limits::max())
        return Limits::max();
    return a <= (From)Limits::min() ? Limits::min() : (To)a;
}
} /* namespace sim */
#define SIM_TO_INTEGER(From, f, from, To, to)                                          \
    SIM_CONVERT(To, __##from##2##to##_rn, From, sim::whole<To>(rint##f(a)))            \
    SIM_CONVERT(To, __##from##2##to##_rz, From, sim::whole<To>(trunc##f(a)))           \
    SIM_CONVERT(To, __##from##2##to##_rd, From, sim::whole<To>(floor##f(a)))           \
    SIM_CONVERT(To, __##from##2##to##_ru, From, sim::whole<To>(ceil##f(a)))
#define SIM_TO_INTEGERS(From, f, from)                                                 \
    SIM_TO_INTEGER(From, f, from, int, int)                                            \
    SIM_TO_INTEGER(From, f, from, unsigned, uint)                                      \
    SIM_TO_INTEGER(From, f, from, long long, ll)                                       \
    SIM_TO_INTEGER(From, f, from, unsigned long long, ull)
SIM_TO_INTEGERS(float, f, float)
SIM_TO_INTEGERS(double, , double)
#undef SIM_TO_INTEGERS
#undef SIM_TO_INTEGER
SIM_CONVERT(double, __int2double_rn, int, a)
SIM_CONVERT(double, __uint2double_rn, unsigned, a)
namespace sim {
template <class To, class From>
To same_bits(From a)
{
    static_assert(sizeof(To) == sizeof(From));
    To b;
    __builtin_memcpy(&b, &a, sizeof b);
    return b;
}
} /* namespace sim */
SIM_CONVERT(int, __float_as_int, float, sim::same_bits<int>(a))
SIM_CONVERT(unsigned, __float_as_uint, float, sim::same_bits<unsigned>(a))
SIM_CONVERT(float, __int_as_float, int, sim::same_bits<float>(a))
SIM_CONVERT(float, __uint_as_float, unsigned, sim::same_bits<float>(a))
SIM_CONVERT(long long, __double_as_longlong, double, sim::same_bits<long long>(a))
SIM_CONVERT(double, __longlong_as_double, long long, sim::same_bits<double>(a))
SIM_CONVERT(int, __double2hiint, double, sim::same_bits<long long>(a) >> 32)
SIM_CONVERT(int, __double2loint, double, sim::same_bits<long long>(a))
inline double __hiloint2double(int high, int low)
{
    return sim::same_bits<double>((unsigned long long)(unsigned)high << 32 |
                                  (unsigned)low);
}

/* --- memory and time --- */
#define SIM_LOAD(name)                                                                 \
    template <class T>                                                                 \
    T name(const T *address)                                                           \
    {                                                                                  \
        return *address;                                                               \
    }
SIM_LOAD(__ldg)
SIM_LOAD(__ldca)
SIM_LOAD(__ldcg)
SIM_LOAD(__ldcs)
SIM_LOAD(__ldcv)
SIM_LOAD(__ldlu)
#undef SIM_LOAD
#define SIM_STORE(name)                                                                \
    template <class T>                                                                 \
    void name(T *address, std::common_type_t<T> value)                                 \
    {                                                                                  \
        *address = value;                                                              \
    }
SIM_STORE(__stcg)
SIM_STORE(__stcs)
SIM_STORE(__stwb)
SIM_STORE(__stwt)
#undef SIM_STORE
inline void __threadfence()
{
    sim::fence(false);
}
inline void __threadfence_block()
{
    sim::fence(true);
}
inline void __nanosleep(unsigned) {}
inline long long clock64()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
#define clock() ((clock_t)clock64()) /* not the C library's */
SIM_ATOMIC_ADD(float2, (float2{old.x + value.x, old.y + value.y}))
SIM_ATOMIC_ADD(float4, (float4{old.x + value.x, old.y + value.y, old.z + value.z,
                               old.w + value.w}))

/* --- votes of a block, and of what lanes have --- */
inline int __any_sync(unsigned mask, int p SIM_AND_LINE)
{
    return __ballot_sync(mask, p SIM_SAME_LINE) != 0;
}
inline int __all_sync(unsigned mask, int p SIM_AND_LINE)
{
    return __ballot_sync(mask, !p SIM_SAME_LINE) == 0; /* also where the warp is not
                                                          full */
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value SIM_AND_LINE)
{
    unsigned same = 0;
    mask = __ballot_sync(mask, 1 SIM_SAME_LINE);
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(rest);
        if (sim::shuffle(mask, value, lane SIM_SAME_LINE) == value)
            same |= 1u << lane;
    }
    return same;
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int *all SIM_AND_LINE)
{
    const unsigned there = __ballot_sync(mask, 1 SIM_SAME_LINE);
    *all = __match_any_sync(mask, value SIM_SAME_LINE) == there;
    return *all ? there : 0;
}
namespace sim {
template <class T, class F>
T reduce(unsigned mask, T value, F join SIM_AND_LINE)
{
    mask = __ballot_sync(mask, 1 SIM_SAME_LINE);
    T result = shuffle(mask, value, (unsigned)__builtin_ctz(mask) SIM_SAME_LINE);
    for (unsigned rest = mask & (mask - 1); rest; rest &= rest - 1)
        result = join(
            result, shuffle(mask, value, (unsigned)__builtin_ctz(rest) SIM_SAME_LINE));
    return result;
}
} /* namespace sim */
#define SIM_REDUCE(name, T, result)                                                    \
    inline T __reduce_##name##_sync(unsigned mask, T value SIM_AND_LINE)               \
    {                                                                                  \
        return sim::reduce(mask, value,                                                \
                           [](T a, T b) { return (T)(result); } SIM_SAME_LINE);        \
    }
SIM_REDUCE(add, int, a + b)
SIM_REDUCE(add, unsigned, a + b)
SIM_REDUCE(min, int, b < a ? b : a)
SIM_REDUCE(min, unsigned, b < a ? b : a)
SIM_REDUCE(max, int, a < b ? b : a)
SIM_REDUCE(max, unsigned, a < b ? b : a)
SIM_REDUCE(and, unsigned, a &b)
SIM_REDUCE(or, unsigned, a | b)
SIM_REDUCE(xor, unsigned, a ^ b)

namespace sim {
/* The threads of the block for which p holds. */
SIM_QUIET int count_threads(int p SIM_AND_LINE)
{
    static int count;
    __syncthreads(SIM_OWN_LINE);
    count = 0;
    __syncthreads(SIM_OWN_LINE);
    __atomic_fetch_add(&count, p != 0, __ATOMIC_RELAXED);
    __syncthreads(SIM_OWN_LINE);
    return count;
}
} /* namespace sim */
inline int __syncthreads_count(int p SIM_AND_LINE)
{
    return sim::count_threads(p SIM_SAME_LINE);
}
inline int __syncthreads_or(int p SIM_AND_LINE)
{
    return sim::count_threads(p SIM_SAME_LINE) != 0;
}
inline int __syncthreads_and(int p SIM_AND_LINE)
{
    return sim::count_threads(!p SIM_SAME_LINE) == 0;
}

#include "functions_rounded.h"

#undef SIM_FUNCTION1
#undef SIM_FUNCTION2
#undef SIM_FUNCTION3
#undef SIM_CONVERT
#undef SIM_REDUCE
#endif
