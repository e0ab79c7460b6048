/* The header that the host's compiler compiles kernels of the program with.
 *
 * tools/build/products.py expands its includes into one file, which is installed.
 * pydevtensor/cuda/_kernel_compiler.py includes that before the program's source, again
 * where the source includes a header of CUDA's that not all kernels need (SIM_HALVES,
 * SIM_GROUPS, SIM_COMPLEX), and SIM_MODULE_KERNELS after it. The library has the kernels' descriptions
 * (dt_module_kernels) and gets the simulator's functions (dt_module_services). */
#ifndef DT_SIM_MODULE_H
#define DT_SIM_MODULE_H

#define SIM_MODULE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <limits>
#include <type_traits>
#include "device/module.h"
#include "intrinsics.h"
#include "vectors.h"
#include "functions.h"
#include "device/describe.h"

enum : int { warpSize = 32 };
#define __constant__
#define __noinline__ __attribute__((noinline))
#define __inline__   inline
#define __grid_constant__
#define __restrict__ __restrict
#undef assert
#define SIM_TEXT_OF(number) #number
#define SIM_TEXT(number)    SIM_TEXT_OF(number)
#define assert(condition)                                                              \
    ((condition)                                                                       \
         ? (void)0                                                                     \
         : sim::fail("line " SIM_TEXT(__LINE__) ": assert(" #condition ") failed"))

namespace sim {

/* `extern __shared__ T name[]` outside of a function. */
template <class T>
struct DynamicShared {
    operator T *() const { return (T *)dynamic_shared_memory(); }
    template <class U>
    explicit operator U *() const
    {
        return (U *)dynamic_shared_memory();
    }
};

template <class P>
constexpr dt_module_parameter describe()
{
    static_assert(!std::is_reference_v<P>,
                  "a kernel has no parameter that is a reference: pass a pointer");
    static_assert(__is_trivially_copyable(typename dt::Bare<P>::type),
                  "a parameter of a kernel is copied byte by byte");
    return dt_module_parameter_of(dt::Row<P>::value);
}

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct IndicesTo : IndicesTo<N - 1, N - 1, I...> {};
template <size_t... I>
struct IndicesTo<0, I...> {
    using type = Indices<I...>;
};

template <class F>
struct Launcher;
template <class... P>
struct Launcher<void (*)(P...)> {
    static_assert(sizeof...(P) <= DT_MODULE_PARAMETERS,
                  "a kernel has too many parameters");
    static constexpr int count = sizeof...(P);
    static constexpr dt_module_parameter parameters[] = {describe<P>()..., {}};

    template <size_t... I>
    static SIM_QUIET void call(void (*kernel)(P...), void *const *values, Indices<I...>)
    {
        kernel(*(P *)values[I]...);
    }
    template <void (*kernel)(P...)>
    static void run(void *const *values)
    {
        call(kernel, values, typename IndicesTo<sizeof...(P)>::type());
    }
};

/* Picks the kernel among functions of one name: C has functions that programs
 * call kernels by. */
template <class... P>
constexpr auto returning_void(void (*kernel)(P...))
{
    return kernel;
}

template <auto kernel>
dt_module_kernel kernel_named(const char *name, bool barriers, bool apart = false)
{
    using L = Launcher<decltype(kernel)>;
    return {name,         (void *)&L::template run<kernel>, barriers, apart, L::count,
            L::parameters};
}

} /* namespace sim */

/* The kernels that can be launched, each
 * sim::kernel_named<sim::returning_void(&NAME)>("NAME", barriers, apart). */
#define SIM_MODULE_KERNELS(...)                                                        \
    extern "C" __attribute__((visibility("default")))                                  \
    const dt_module_kernel dt_module_kernels[] = {__VA_ARGS__, {}};

/* The variables that the program can read and write: SIM_VARIABLE(NAME) of each. */
#define SIM_MODULE_VARIABLES(...)                                                      \
    extern "C" __attribute__((visibility("default")))                                  \
    const sim::Variable dt_module_variables[] = {__VA_ARGS__{}};
#define SIM_VARIABLE(name) {#name, (void *)&name, sizeof(name)},

#endif

#ifdef SIM_HALVES
#include "halves.h"
#endif
#ifdef SIM_GROUPS
#include "groups.h"
#endif
#ifdef SIM_COMPLEX
#include "complex.h"
#endif
