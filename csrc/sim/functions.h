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
SIM_FUNCTION1(float, __frcp_rn, 1 / a)
SIM_FUNCTION1(float, __fsqrt_rn, sqrtf(a))
SIM_FUNCTION1(float, __frsqrt_rn, 1 / sqrtf(a))
SIM_FUNCTION1(double, __drcp_rn, 1 / a)
SIM_FUNCTION1(double, __dsqrt_rn, sqrt(a))
SIM_FUNCTION2(float, fdividef, a / b)
SIM_FUNCTION2(float, __fdividef, a / b)
SIM_FUNCTION2(float, __powf, powf(a, b))
SIM_FUNCTION2(float, __fadd_rn, a + b)
SIM_FUNCTION2(float, __fsub_rn, a - b)
SIM_FUNCTION2(float, __fmul_rn, a *b)
SIM_FUNCTION2(float, __fdiv_rn, a / b)
SIM_FUNCTION2(double, __dadd_rn, a + b)
SIM_FUNCTION2(double, __dsub_rn, a - b)
SIM_FUNCTION2(double, __dmul_rn, a *b)
SIM_FUNCTION2(double, __ddiv_rn, a / b)
SIM_FUNCTION3(float, __fmaf_rn, fmaf(a, b, c))
SIM_FUNCTION3(double, __fma_rn, fma(a, b, c))
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
SIM_FUNCTION3(unsigned, __sad, (unsigned)abs((int)a - (int)b) + c)
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
SIM_CONVERT(int, __float2int_rn, float, rintf(a))
SIM_CONVERT(int, __float2int_rz, float, a)
SIM_CONVERT(int, __float2int_rd, float, floorf(a))
SIM_CONVERT(int, __float2int_ru, float, ceilf(a))
SIM_CONVERT(unsigned, __float2uint_rn, float, rintf(a))
SIM_CONVERT(unsigned, __float2uint_rz, float, a)
SIM_CONVERT(int, __double2int_rn, double, rint(a))
SIM_CONVERT(int, __double2int_rz, double, a)
SIM_CONVERT(float, __double2float_rn, double, a)
SIM_CONVERT(float, __int2float_rn, int, a)
SIM_CONVERT(float, __uint2float_rn, unsigned, a)
SIM_CONVERT(double, __int2double_rn, int, a)
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

/* --- memory and time --- */
template <class T>
T __ldg(const T *address)
{
    return *address;
}
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

#undef SIM_FUNCTION1
#undef SIM_FUNCTION2
#undef SIM_FUNCTION3
#undef SIM_CONVERT
#undef SIM_REDUCE
#endif
