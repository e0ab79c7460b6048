/* CUDA's device functions, on the host. The threads of a block run one at a time, and
 * blocks that change memory by atomics wait for those before them (grid.cpp), so atomics
 * and fences are plain operations; barriers, shuffles and votes switch fibers (fiber.cpp).
 * The kernels of a program are compiled with this file too: they reach the simulator
 * through services.h. */
#ifndef DT_SIM_INTRINSICS_H
#define DT_SIM_INTRINSICS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmath>
#include <type_traits>

#define __host__
#define __global__ __attribute__((unused))
#define __device__ __attribute__((unused))
/* In kernels of the program, and where SIM_SHARED says so: one block runs at a time, so
 * all blocks share one copy. */
#define __shared__      static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

namespace sim {
enum Exchange { kSyncWarp, kShuffle, kBallot, kActive };
/* A bit of `how` (services.h): the atomic orders the threads of its block alone. */
enum : unsigned { kBlockScope = 0x400 };
} // namespace sim

#ifdef SIM_MODULE
#include "services.h"
#else
#include "base/sanitizer.h"
#define SIM_HIDDEN __attribute__((visibility("hidden")))
namespace sim {
struct Indices { /* of the running thread */
    uint3 thread, block;
    dim3 block_dim, grid_dim;
    char *arrays; /* the block's STATIC_SHARED ones */
};
/* The stacks of a runner are in memory of this size, which starts at a multiple of it. Its
 * last words lead to the indices, which is quicker than a variable of each thread of the
 * host. */
enum : uintptr_t {
    kStacks = (uintptr_t)(DT_ASAN ? 512 : 128) << 20,
    kStacksWords = 16
};
inline __attribute__((always_inline)) Indices &indices()
{
    uintptr_t here;
#if defined(__x86_64__)
    __asm__("movq %%rsp, %0" : "=r"(here));
#elif defined(__aarch64__)
    __asm__("mov %0, sp" : "=r"(here));
#else
    here = (uintptr_t)__builtin_frame_address(0);
#endif
    return **(Indices **)((here | (kStacks - 1)) + 1 - kStacksWords);
}
} /* namespace sim */
#ifndef SIM_CHECKED
#define SIM_QUIET inline
#define threadIdx (sim::indices().thread)
#define blockIdx  (sim::indices().block)
#define blockDim  (sim::indices().block_dim)
#define gridDim   (sim::indices().grid_dim)
#else /* `make kernel-check`: tools/kernel_check/hooks.cpp has the functions */
#define SIM_QUIET                                                                      \
    inline __attribute__((noinline, no_sanitize("thread", "bounds", "alignment")))
#define threadIdx (sim::thread_index())
#define blockIdx  (sim::block_index())
#define blockDim  (sim::block_extent())
#define gridDim   (sim::grid_extent())
#endif

namespace sim {
/* Whether blocks of the grid run at the same time; before the running one changes what
 * others may change too, it waits until those before it have ended. */
extern SIM_HIDDEN bool blocks_overlap;
void await_blocks_before(const void *changed);
/* Reserves memory in each block's arrays, and says where. */
size_t array_offset(size_t bytes);
#ifdef SIM_CHECKED
uint3 thread_index() __attribute__((pure));
uint3 block_index() __attribute__((pure));
dim3 block_extent() __attribute__((pure));
dim3 grid_extent() __attribute__((pure));
void set_thread(uint3 index);
void at(int line);
void touch_atomic(const void *address, unsigned how, int line);
void changed();
void fence(bool of_block);
#else
inline void set_thread(uint3 index)
{
    threadIdx = index;
}
#endif
/* Waits for the lanes of mask. Each passes a value and gets the value of lane
 * `source` (kShuffle) or the set of lanes with a non-zero value (kBallot). kActive waits
 * until no other lane of the warp can run, and gives the lanes that have come to the same
 * call. */
uint64_t exchange(Exchange what, unsigned mask, uint64_t value, unsigned source);
unsigned lane();
/* Waits for all threads of the block. */
void barrier();
[[noreturn]] void trap();
} /* namespace sim */

/* SHARED of cuda/runtime/launch.h. */
namespace sim {
template <class T>
using Type = T;
} /* namespace sim */
/* Checks know variables, and need one block at a time. */
#if defined(SIM_CHECKED) || DT_ASAN
#define SIM_ONE_BLOCK          true
#define SIM_SHARED(type, name) static sim::Type<type> name
#else
#define SIM_ONE_BLOCK false
#define SIM_SHARED(type, name)                                                         \
    static const size_t name##_offset = sim::array_offset(sizeof(sim::Type<type>));    \
    sim::Type<type> &name = *(sim::Type<type> *)(sim::indices().arrays + name##_offset)
#endif
#endif

/* Checked kernels: a last parameter, which is the line of the call, and its use. */
#ifdef SIM_CHECKED
#define SIM_LINE      int line = __builtin_LINE()
#define SIM_AND_LINE  , int line = __builtin_LINE()
#define SIM_SAME_LINE , line
#define SIM_OWN_LINE  line
#define SIM_NOTE_LINE sim::at(line)
#else
#define SIM_LINE
#define SIM_AND_LINE
#define SIM_SAME_LINE
#define SIM_OWN_LINE
#define SIM_NOTE_LINE (void)0
#endif

/* --- barriers, shuffles, votes --- */
namespace sim {
template <class T>
constexpr bool can_shuffle = std::is_arithmetic_v<T> && sizeof(T) <= 8;

template <class T>
T shuffle(unsigned mask, T value, unsigned source SIM_AND_LINE)
{
    SIM_NOTE_LINE;
    static_assert(can_shuffle<T>,
                  "a shuffle takes integers, floats, and half and its kin");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = exchange(kShuffle, mask, bits, source);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} /* namespace sim */

inline void __syncthreads(SIM_LINE)
{
    SIM_NOTE_LINE;
    sim::barrier();
}
inline void __syncwarp(unsigned mask = 0xffffffffu SIM_AND_LINE)
{
    SIM_NOTE_LINE;
    sim::exchange(sim::kSyncWarp, mask, 0, 0);
}
inline __attribute__((always_inline)) unsigned __activemask()
{
    return (unsigned)sim::exchange(sim::kActive, 0, 0, 0);
}
inline unsigned __ballot_sync(unsigned mask, int p SIM_AND_LINE)
{
    SIM_NOTE_LINE;
    return (unsigned)sim::exchange(sim::kBallot, mask, p != 0, 0);
}

/* width divides the warp into groups. A lane whose source is outside of its group
 * gets its own value. */
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32 SIM_AND_LINE)
{
    unsigned lane = sim::lane(), w = (unsigned)width;
    return sim::shuffle(mask, value,
                        (lane & ~(w - 1)) | ((unsigned)source & (w - 1)) SIM_SAME_LINE);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32 SIM_AND_LINE)
{
    unsigned lane = sim::lane(), w = (unsigned)width, first = lane & ~(w - 1);
    return sim::shuffle(mask, value,
                        delta <= lane - first ? lane - delta : lane SIM_SAME_LINE);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32 SIM_AND_LINE)
{
    unsigned lane = sim::lane(), w = (unsigned)width, last = lane | (w - 1);
    return sim::shuffle(mask, value,
                        delta <= last - lane ? lane + delta : lane SIM_SAME_LINE);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32 SIM_AND_LINE)
{
    unsigned lane = sim::lane(), w = (unsigned)width, from = lane ^ (unsigned)lanes;
    return sim::shuffle(mask, value,
                        from <= (lane | (w - 1)) ? from : lane SIM_SAME_LINE);
}

#ifndef SIM_CHECKED
namespace sim {
inline void fence(bool) {}
} /* namespace sim */
#endif
inline void __threadfence_system()
{
    sim::fence(false);
}
[[noreturn]] inline void __trap()
{
    sim::trap();
}

/* --- atomics --- */
namespace sim {
template <class T, class... Known>
constexpr bool is_one_of = (std::is_same_v<T, Known> || ...);
/* A type that is not deduced: the counter says which one it is. */
template <class T>
using Given = std::common_type_t<T>;

/* Stores what `change` makes of the old value, and gives that one. */
template <unsigned scope = 0, class T, class F>
SIM_QUIET T exchange_at(T *address, F change SIM_AND_LINE)
{
#ifdef SIM_CHECKED
    touch_atomic(address, sizeof(T) | scope, line);
#elif defined(                                                                         \
    SIM_MODULE) /* whose threads may be interrupted between two instructions */
    if constexpr (sizeof(T) <= 8) {
        T old, next;
        __atomic_load(address, &old, __ATOMIC_RELAXED);
        do
            next = change(old);
        while (!__atomic_compare_exchange(address, &old, &next, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
        return old;
    }
#else
    if (blocks_overlap)
        await_blocks_before(address);
#endif
    const T old = *address;
    const T made = change(old);
    *address = made;
#ifdef SIM_CHECKED
    if (memcmp(&old, &made, sizeof old))
        changed();
#endif
    return old;
}
} /* namespace sim */

/* atomicAdd of one type, which CUDA has for the whole GPU alone. */
#define SIM_ATOMIC_ADD(T, result)                                                      \
    inline T atomicAdd(T *address, T value)                                            \
    {                                                                                  \
        return sim::exchange_at(address, [value](T old) { return result; });           \
    }

/* ATOMIC(name, result, types): of the value `old` in memory and the argument `value`. */
#define SIM_ATOMIC(name, result, ...)                                                  \
    template <unsigned scope = 0, class T>                                             \
    T name(T *address, sim::Given<T> value SIM_AND_LINE)                               \
    {                                                                                  \
        static_assert(sim::is_one_of<T, __VA_ARGS__>,                                  \
                      #name " takes a pointer to " #__VA_ARGS__);                      \
        return sim::exchange_at<scope>(address, [value]([[maybe_unused]] T old) {      \
            return (T)(result);                                                        \
        } SIM_SAME_LINE);                                                              \
    }                                                                                  \
    template <class T>                                                                 \
    T name##_block(T *address, sim::Given<T> value SIM_AND_LINE)                       \
    {                                                                                  \
        return name<sim::kBlockScope>(address, value SIM_SAME_LINE);                   \
    }                                                                                  \
    /* Also of memory that the host reads meanwhile. */                                \
    template <class T>                                                                 \
    T name##_system(T *address, sim::Given<T> value SIM_AND_LINE)                      \
    {                                                                                  \
        return name(address, value SIM_SAME_LINE);                                     \
    }
SIM_ATOMIC(atomicAdd, old + value, int, unsigned, unsigned long long, float, double)
SIM_ATOMIC(atomicSub, old - value, int, unsigned)
SIM_ATOMIC(atomicExch, value, int, unsigned, unsigned long long, float)
SIM_ATOMIC(atomicMin, old < value ? old : value, int, unsigned, long long,
           unsigned long long)
SIM_ATOMIC(atomicMax, old < value ? value : old, int, unsigned, long long,
           unsigned long long)
SIM_ATOMIC(atomicInc, old >= value ? 0 : old + 1, unsigned)
SIM_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1, unsigned)
SIM_ATOMIC(atomicAnd, old &value, int, unsigned, unsigned long long)
SIM_ATOMIC(atomicOr, old | value, int, unsigned, unsigned long long)
SIM_ATOMIC(atomicXor, old ^ value, int, unsigned, unsigned long long)
#undef SIM_ATOMIC

template <unsigned scope = 0, class T>
T atomicCAS(T *address, sim::Given<T> compare, sim::Given<T> value SIM_AND_LINE)
{
    static_assert(sim::is_one_of<T, int, unsigned, unsigned short, unsigned long long>,
                  "atomicCAS takes a pointer to int, unsigned, unsigned short, "
                  "unsigned long long");
    return sim::exchange_at<scope>(
        address, [=](T old) { return old == compare ? value : old; } SIM_SAME_LINE);
}
#define atomicCAS_block  atomicCAS<sim::kBlockScope>
#define atomicCAS_system atomicCAS

inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}

#endif
