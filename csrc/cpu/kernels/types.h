/* Element types as C++ sees them. */
#ifndef DT_CPU_KERNELS_TYPES_H
#define DT_CPU_KERNELS_TYPES_H

#include <type_traits>

#include "base/dtype.h"

namespace {

template <typename T>
constexpr bool is_half =
    std::is_same_v<T, dt_float16> || std::is_same_v<T, dt_bfloat16>;
/* The type that elements of T are computed in. */
template <typename T>
using Compute = std::conditional_t<is_half<T>, float, T>;

} // namespace

#endif
