/* The one way to start a kernel, on GPUs and on simulated ones.
 *
 *     LAUNCH(kernel, grid, block, shared, stream, arguments...)
 *     LAUNCH_BARRIERS(kernel, ...)
 *
 * The second is for kernels with __syncthreads, shuffles or votes. Both give a
 * cudaError_t. On a GPU they are the same; simulated, a thread of the second kind
 * becomes a fiber, one of the first a turn of a loop. A template's name with a comma in
 * it goes in parentheses: LAUNCH((fill<float, 4>), ...). grid and block are whole
 * numbers or dim3; a number that is no legal extent gives cudaErrorInvalidConfiguration
 * on both.
 *
 * As the error is cudaGetLastError's, one that nobody has fetched since an earlier call
 * failed shows up here: whoever lives with a failure (a cudaMalloc to be tried again)
 * fetches it.
 *
 * A struct passed to a kernel says where its pointers are, so that simulated launches
 * can check and translate them; without this line a simulated launch of it does not
 * compile:
 *
 *     POINTERS_OF(Operands, for (int i = 0; i < s.n; i++) f(s.operand[i].data);)
 *     NO_POINTERS(Extents)
 *
 * At namespace scope, after the struct; s is the struct, f takes each pointer in turn.
 * Of a template, write the function itself:
 *
 *     template <int N, class F> void each_pointer(Plan<N> &s, F f) { f(s.data); }
 *
 * Pointers that lie in device memory cannot be seen. A kernel that follows some, from a
 * table, takes each through FOLLOW(pointer), and has a parameter of type Followed; its
 * launch names them all there, with FOLLOWED(pointers, count), a list in the host's
 * memory that is used up by the launch. On a GPU both are nothing.
 *
 * A kernel that only reads a struct, larger than a few numbers, takes it as
 * GRID_CONSTANT(Layout<3>) layout: threads share the one that the launch brought,
 * where each would make a copy for itself.
 *
 * Inside a kernel, DYNAMIC_SHARED(type, name) declares `type *name`, the dynamic shared
 * memory, aligned to 16 bytes.
 *
 * A caching allocator that hands out parts of a cudaMalloc says so with
 *
 *     SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream)
 *     SIM_BLOCK_GIVEN_BACK(pointer, rounded)
 *
 * which are nothing on a GPU: `bytes` were asked for, `rounded` are reserved, and
 * `stream` is the one whose order the reuse of the block follows. */
#ifndef DT_CUDA_RUNTIME_LAUNCH_H
#define DT_CUDA_RUNTIME_LAUNCH_H

#include <cuda_runtime.h>
#include <stdint.h>

/* A negative or too large extent becomes one that no launch accepts, not some other
 * number. */
static inline dim3 launch_extent(dim3 extent)
{
    return extent;
}
static inline dim3 launch_extent(long long extent)
{
    return dim3(extent > 0 && extent <= 0x7fffffff ? (unsigned)extent : 0u);
}
static inline dim3 launch_extent(long extent)
{
    return launch_extent((long long)extent);
}
static inline dim3 launch_extent(int extent)
{
    return launch_extent((long long)extent);
}
static inline dim3 launch_extent(unsigned extent)
{
    return launch_extent((long long)extent);
}
static inline dim3 launch_extent(unsigned long extent)
{
    return launch_extent(extent > 0x7fffffff ? -1LL : (long long)extent);
}
static inline dim3 launch_extent(unsigned long long extent)
{
    return launch_extent(extent > 0x7fffffff ? -1LL : (long long)extent);
}

#define POINTERS_OF(type, ...)                                                         \
    template <class F>                                                                 \
    inline void each_pointer(type &s, F f)                                             \
    {                                                                                  \
        (void)s;                                                                       \
        (void)f;                                                                       \
        __VA_ARGS__                                                                    \
    }
#define NO_POINTERS(type) POINTERS_OF(type, )

#ifdef SIM_CUDA

#define LAUNCH(kernel, grid, block, shared, stream, ...)                               \
    SIM_LAUNCH(false, kernel, grid, block, shared, stream, ##__VA_ARGS__)
#define LAUNCH_BARRIERS(kernel, grid, block, shared, stream, ...)                      \
    SIM_LAUNCH(true, kernel, grid, block, shared, stream, ##__VA_ARGS__)
#define SIM_LAUNCH(barriers, kernel, grid, block, shared, stream, ...)                 \
    ((void)sim::launch<barriers>({#kernel, nullptr, barriers, launch_extent(grid),     \
                                  launch_extent(block), (size_t)(shared), (stream)},   \
                                 (kernel), ##__VA_ARGS__),                             \
     cudaGetLastError())
#define GRID_CONSTANT(...) const __VA_ARGS__ &
#define DYNAMIC_SHARED(type, name)                                                     \
    type *name = reinterpret_cast<type *>(sim::dynamic_shared_memory())
struct Followed {
    void **pointers;
    int64_t count;
};
POINTERS_OF(Followed, for (int64_t i = 0; i < s.count; i++) f(s.pointers[i]);)
#define FOLLOWED(pointers, count)                                                      \
    Followed                                                                           \
    {                                                                                  \
        (pointers), (int64_t)(count)                                                   \
    }
#define FOLLOW(pointer) sim::follow(pointer)
#define SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream)                               \
    sim::block_taken((pointer), (bytes), (rounded), (stream))
#define SIM_BLOCK_GIVEN_BACK(pointer, rounded)                                         \
    sim::block_given_back((pointer), (rounded))

#else

#ifdef __CUDACC__
/* clang-format off */
#define LAUNCH(kernel, grid, block, shared, stream, ...)                               \
    ((kernel)<<<launch_extent(grid), launch_extent(block), (size_t)(shared),           \
                (stream)>>>(__VA_ARGS__), cudaGetLastError())
/* clang-format on */
#define LAUNCH_BARRIERS    LAUNCH
#define GRID_CONSTANT(...) const __grid_constant__ __VA_ARGS__
#define DYNAMIC_SHARED(type, name)                                                     \
    extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];              \
    type *name = reinterpret_cast<type *>(dynamic_shared_bytes)
#endif
struct Followed {};
#define FOLLOWED(pointers, count)                        ((void)(pointers), Followed())
#define FOLLOW(pointer)                                  (pointer)
#define SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream) ((void)0)
#define SIM_BLOCK_GIVEN_BACK(pointer, rounded)           ((void)0)

#endif
#endif
