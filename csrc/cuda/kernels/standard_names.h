/* The names of C's and C++'s standard headers that kernels of chains use, for NVRTC, which
 * has no such files (pydevtensor/cuda/_chains.py gives it empty ones). */
#ifndef DT_CUDA_KERNELS_STANDARD_NAMES_H
#define DT_CUDA_KERNELS_STANDARD_NAMES_H

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t, uintptr_t;

#define __builtin_memcpy memcpy
#define INFINITY         (__int_as_float(0x7f800000))
#define NAN              (__int_as_float(0x7fffffff))
#define INT32_MIN        (-0x7fffffff - 1)
#define INT64_MIN        (-0x7fffffffffffffffLL - 1)

namespace std {

template <class T, class U>
constexpr bool is_same_v = false;
template <class T>
constexpr bool is_same_v<T, T> = true;
template <class T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
/* For arithmetic types. */
template <class T>
constexpr bool is_signed_v = T(-1) < T(0);

template <class T, class... Others>
constexpr bool is_one_of = (is_same_v<T, Others> || ...);
template <class T>
constexpr bool is_arithmetic_v =
    is_one_of<T, bool, char, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
              uint32_t, uint64_t, float, double>;

template <class T>
constexpr bool is_integral_v = is_arithmetic_v<T> && !is_floating_point_v<T>;

template <bool CONDITION, class T>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
    typedef T type;
};
template <bool CONDITION, class T = void>
using enable_if_t = typename enable_if<CONDITION, T>::type;

template <bool CONDITION, class T, class U>
struct conditional {
    typedef T type;
};
template <class T, class U>
struct conditional<false, T, U> {
    typedef U type;
};
template <bool CONDITION, class T, class U>
using conditional_t = typename conditional<CONDITION, T, U>::type;

} // namespace std

#endif
