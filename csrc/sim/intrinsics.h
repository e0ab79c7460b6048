/* CUDA's device functions, on the host. Simulated threads run one at a time, so
 * atomics and fences are plain operations; barriers, shuffles and votes switch
 * fibers (fiber.cpp). */
#ifndef DT_SIM_INTRINSICS_H
#define DT_SIM_INTRINSICS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmath>
#include <type_traits>
#include "vectors.h"

#define __host__
#define __global__   __attribute__((unused))
#define __device__   __attribute__((unused))
#define __constant__ __attribute__((unused))
/* One block runs at a time, so all blocks share one copy. */
#define __shared__      static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

/* Plain variables, because one kernel runs at a time; hidden, to avoid the
 * indirection of a shared library's symbols. */
#define SIM_HIDDEN __attribute__((visibility("hidden")))
extern SIM_HIDDEN uint3 threadIdx, blockIdx;
extern SIM_HIDDEN dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* --- barriers, shuffles, votes --- */
namespace sim {
enum Exchange { kSyncWarp, kShuffle, kBallot };
/* Waits for the lanes of mask. Each passes a value and gets the value of lane
 * `source` (kShuffle) or the set of lanes with a non-zero value (kBallot). */
uint64_t exchange(Exchange what, unsigned mask, uint64_t value, unsigned source);
unsigned lane();
/* Waits for all threads of the block; returns how many passed true. */
int barrier(bool value);
unsigned active_lanes();
[[noreturn]] void trap();

template <class T>
T shuffle(unsigned mask, T value, unsigned source)
{
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "a shuffle takes types of 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = exchange(kShuffle, mask, bits, source);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} /* namespace sim */

inline void __syncthreads()
{
    (void)sim::barrier(false);
}
inline int __syncthreads_count(int p)
{
    return sim::barrier(p != 0);
}
inline int __syncthreads_or(int p)
{
    return sim::barrier(p != 0) != 0;
}
inline int __syncthreads_and(int p)
{
    return sim::barrier(p == 0) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    sim::exchange(sim::kSyncWarp, mask, 0, 0);
}
inline unsigned __ballot_sync(unsigned mask, int p)
{
    return (unsigned)sim::exchange(sim::kBallot, mask, p != 0, 0);
}
inline int __any_sync(unsigned mask, int p)
{
    return __ballot_sync(mask, p) != 0;
}
inline int __all_sync(unsigned mask, int p)
{
    return __ballot_sync(mask, p) == mask;
}
inline unsigned __activemask()
{
    return sim::active_lanes();
}

/* width divides the warp into groups. A lane whose source is outside of its group
 * gets its own value. */
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32)
{
    unsigned lane = sim::lane(), w = (unsigned)width;
    return sim::shuffle(mask, value, (lane & ~(w - 1)) | ((unsigned)source & (w - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    unsigned lane = sim::lane(), w = (unsigned)width, first = lane & ~(w - 1);
    return sim::shuffle(mask, value, delta <= lane - first ? lane - delta : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    unsigned lane = sim::lane(), w = (unsigned)width, last = lane | (w - 1);
    return sim::shuffle(mask, value, delta <= last - lane ? lane + delta : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    unsigned lane = sim::lane(), w = (unsigned)width, from = lane ^ (unsigned)lanes;
    return sim::shuffle(mask, value, from <= (lane | (w - 1)) ? from : lane);
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap()
{
    sim::trap();
}

/* --- atomics: only the types that CUDA has --- */
#define SIM_ATOMIC(name, T, next)                                                      \
    inline T name(T *address, T value)                                                 \
    {                                                                                  \
        T old = *address;                                                              \
        *address = (next);                                                             \
        return old;                                                                    \
    }
/* Unsigned, because GPU integers wrap and signed overflow is undefined in C++. */
SIM_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
SIM_ATOMIC(atomicAdd, unsigned, old + value)
SIM_ATOMIC(atomicAdd, unsigned long long, old + value)
SIM_ATOMIC(atomicAdd, float, old + value)
SIM_ATOMIC(atomicAdd, double, old + value)
SIM_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
SIM_ATOMIC(atomicSub, unsigned, old - value)
#define SIM_ATOMIC_ORDER(T)                                                            \
    SIM_ATOMIC(atomicMax, T, value > old ? value : old)                                \
    SIM_ATOMIC(atomicMin, T, value < old ? value : old)
SIM_ATOMIC_ORDER(int)
SIM_ATOMIC_ORDER(unsigned)
SIM_ATOMIC_ORDER(long long)
SIM_ATOMIC_ORDER(unsigned long long)
#define SIM_ATOMIC_CAS(T)                                                              \
    inline T atomicCAS(T *address, T compare, T value)                                 \
    {                                                                                  \
        T old = *address;                                                              \
        if (old == compare)                                                            \
            *address = value;                                                          \
        return old;                                                                    \
    }
#define SIM_ATOMIC_BITS(T)                                                             \
    SIM_ATOMIC(atomicAnd, T, old &value)                                               \
    SIM_ATOMIC(atomicOr, T, old | value)                                               \
    SIM_ATOMIC(atomicXor, T, old ^ value)                                              \
    SIM_ATOMIC(atomicExch, T, value)                                                   \
    SIM_ATOMIC_CAS(T)
SIM_ATOMIC_BITS(int)
SIM_ATOMIC_BITS(unsigned)
SIM_ATOMIC_BITS(unsigned long long)
SIM_ATOMIC_CAS(unsigned short)
SIM_ATOMIC(atomicExch, float, value)
inline unsigned atomicInc(unsigned *address, unsigned limit)
{
    unsigned old = *address;
    *address = old >= limit ? 0 : old + 1;
    return old;
}

/* --- loads, bits, integers --- */
template <class T>
T __ldg(const T *p)
{
    return *p;
}
template <class T>
T __ldcs(const T *p)
{
    return *p;
}
template <class T>
T __ldcg(const T *p)
{
    return *p;
}
template <class T>
void __stcs(T *p, T value)
{
    *p = value;
}
template <class T>
void __stcg(T *p, T value)
{
    *p = value;
}

namespace sim {
template <class To, class From>
To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
} /* namespace sim */
inline int __float_as_int(float x)
{
    return sim::same_bits<int>(x);
}
inline unsigned __float_as_uint(float x)
{
    return sim::same_bits<unsigned>(x);
}
inline float __int_as_float(int x)
{
    return sim::same_bits<float>(x);
}
inline float __uint_as_float(unsigned x)
{
    return sim::same_bits<float>(x);
}
inline long long __double_as_longlong(double x)
{
    return sim::same_bits<long long>(x);
}
inline double __longlong_as_double(long long x)
{
    return sim::same_bits<double>(x);
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline unsigned __brev(unsigned x)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1u) << (31 - i);
    return r;
}
inline int __mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
__extension__ typedef __int128 sim_int128;
__extension__ typedef unsigned __int128 sim_uint128;
inline long long __mul64hi(long long a, long long b)
{
    return (long long)((sim_int128)a * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((sim_uint128)a * b >> 64);
}

/* --- floating point: rounding as named, else to nearest --- */
inline float __fadd_rn(float a, float b)
{
    return a + b;
}
inline float __fsub_rn(float a, float b)
{
    return a - b;
}
inline float __fmul_rn(float a, float b)
{
    return a * b;
}
inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c)
{
    return ::fmaf(a, b, c);
}
inline float __fsqrt_rn(float a)
{
    return ::sqrtf(a);
}
inline float __frcp_rn(float a)
{
    return 1.0f / a;
}
inline float __fdividef(float a, float b)
{
    return a / b;
}
inline float __saturatef(float a)
{
    return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f;
}
inline double __dadd_rn(double a, double b)
{
    return a + b;
}
inline double __dsub_rn(double a, double b)
{
    return a - b;
}
inline double __dmul_rn(double a, double b)
{
    return a * b;
}
inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
inline double __fma_rn(double a, double b, double c)
{
    return ::fma(a, b, c);
}
inline double __dsqrt_rn(double a)
{
    return ::sqrt(a);
}
inline float __int2float_rn(int a)
{
    return (float)a;
}
inline float __uint2float_rn(unsigned a)
{
    return (float)a;
}
inline float __ll2float_rn(long long a)
{
    return (float)a;
}
inline double __ll2double_rn(long long a)
{
    return (double)a;
}
inline float __double2float_rn(double a)
{
    return (float)a;
}
/* Saturates, and converts NaN to 0, like a GPU. */
inline int sim_to_int(double a)
{
    return a != a               ? 0
           : a >= 2147483647.0  ? 2147483647
           : a <= -2147483648.0 ? INT32_MIN
                                : (int)a;
}
inline int __float2int_rn(float a)
{
    return sim_to_int(::rint((double)a));
}
inline int __float2int_rz(float a)
{
    return sim_to_int((double)a);
}
inline int __double2int_rn(double a)
{
    return sim_to_int(::rint(a));
}
inline int __double2int_rz(double a)
{
    return sim_to_int(a);
}

/* Macros, because libm declares functions of these names. */
#define __expf(x)    ::expf(x)
#define __logf(x)    ::logf(x)
#define __log2f(x)   ::log2f(x)
#define __log10f(x)  ::log10f(x)
#define __sinf(x)    ::sinf(x)
#define __cosf(x)    ::cosf(x)
#define __tanf(x)    ::tanf(x)
#define __powf(x, y) ::powf(x, y)

/* Overloads replace the names that newer C libraries declare. */
#if !defined(__GLIBC_PREREQ)
#define SIM_LIBM_HAS(major, minor) 0
#else
#define SIM_LIBM_HAS(major, minor) __GLIBC_PREREQ(major, minor)
#endif
#if !SIM_LIBM_HAS(2, 42)
inline double rsqrt(double x)
{
    return 1.0 / ::sqrt(x);
}
inline float rsqrtf(float x)
{
    return 1.0f / ::sqrtf(x);
}
#endif
inline float rsqrt(float x)
{
    return rsqrtf(x);
}
#if !SIM_LIBM_HAS(2, 41)
inline double sinpi(double x)
{
    return ::sin(M_PI * ::remainder(x, 2.0));
}
inline double cospi(double x)
{
    return ::cos(M_PI * ::remainder(x, 2.0));
}
inline float sinpif(float x)
{
    return (float)::sin(M_PI * ::remainder((double)x, 2.0));
}
inline float cospif(float x)
{
    return (float)::cos(M_PI * ::remainder((double)x, 2.0));
}
#endif
inline double rcbrt(double x)
{
    return 1.0 / ::cbrt(x);
}
inline float rcbrtf(float x)
{
    return 1.0f / ::cbrtf(x);
}
inline double normcdf(double x)
{
    return 0.5 * ::erfc(-x * M_SQRT1_2);
}
inline float normcdff(float x)
{
    return (float)(0.5 * ::erfc(-(double)x * M_SQRT1_2));
}
/* A starting value good to 2e-3, then Newton steps on erf, each of which squares the
 * error; the tails use erfc, where erf loses all digits. */
inline double erfinv(double y)
{
    double a = ::fabs(y);
    if (!(a < 1.0))
        return a == 1.0 ? ::copysign((double)INFINITY, y) : (double)NAN;
    if (a == 0.0)
        return y;
    double l = ::log1p(-a * a), t = 4.330746750799873 + l / 2;
    double x = ::sqrt(::sqrt(t * t - l / 0.147) - t);
    for (int i = 0; i < 4; i++) {
        double off = a < 0.5 ? ::erf(x) - a : (1.0 - a) - ::erfc(x);
        double step = off / (M_2_SQRTPI * ::exp(-x * x));
        x -= step / (1.0 + x * step);
    }
    return ::copysign(x, y);
}
inline float erfinvf(float y)
{
    return (float)erfinv((double)y);
}

#define SIM_ORDER(T)                                                                   \
    inline T min(T a, T b)                                                             \
    {                                                                                  \
        return b < a ? b : a;                                                          \
    }                                                                                  \
    inline T max(T a, T b)                                                             \
    {                                                                                  \
        return a < b ? b : a;                                                          \
    }
SIM_ORDER(int)
SIM_ORDER(unsigned)
SIM_ORDER(long)
SIM_ORDER(unsigned long)
SIM_ORDER(long long)
SIM_ORDER(unsigned long long)
inline float min(float a, float b)
{
    return ::fminf(a, b);
}
inline float max(float a, float b)
{
    return ::fmaxf(a, b);
}
inline double min(double a, double b)
{
    return ::fmin(a, b);
}
inline double max(double a, double b)
{
    return ::fmax(a, b);
}

#endif
