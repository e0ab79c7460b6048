/* Conversions between element types, for both backends. The includer has DT_FN, the
 * qualifiers of functions. */
#ifndef DT_OPS_CONVERT_H
#define DT_OPS_CONVERT_H

#include <stdint.h>
#include <type_traits>

#include "base/bool.h"

/* The result of x86, and so of PyTorch, for a float outside of an integer's range: the
 * smallest integer, of 32 bits for types up to that size, wrapped to the target's.
 * Between float32 and 32 bits it is compared in float32, which vectors do twice as
 * fast. uint8 goes by way of 64 bits; of a float32 beyond 32 bits the last eight are 0
 * anyway. */
template <typename T, typename From>
DT_FN T dt_converted(From x)
{
    if constexpr (std::is_same_v<From, dt_bool>)
        return (bool)x ? (T)1 : (T)0;
    else if constexpr (std::is_same_v<T, dt_bool>)
        return (T)(x != 0);
    else if constexpr (std::is_integral_v<From> || !std::is_integral_v<T>)
        return (T)x;
    else if constexpr (sizeof(T) == 8 ||
                       (std::is_same_v<T, uint8_t> && std::is_same_v<From, double>))
        return (T)(x >= (From)INT64_MIN && x < -(From)INT64_MIN ? (int64_t)x
                                                                : INT64_MIN);
    else if constexpr (std::is_same_v<From, float>)
        return (T)(x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN);
    else
        return (T)(x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN);
}

#endif
