/* Kernel launches, on GPUs and on simulated GPUs.
 *
 *     LAUNCH(kernel, grid, block, shared, stream, arguments...)
 *     LAUNCH_BARRIERS(kernel, ...)
 *     LAUNCH_LARGE(kernel, ...)
 *
 * Use the second for kernels with __syncthreads, shuffles or votes: the simulator runs
 * each of their threads on a fiber, and those of other kernels in a loop. The third is the
 * second where dynamic shared memory may exceed SHARED_OF_BLOCK. All give a cudaError_t.
 * Parenthesize a template name with a comma: LAUNCH((fill<float, 4>), ...). grid and block
 * are integers or dim3; an invalid extent gives cudaErrorInvalidConfiguration.
 *
 * Errors are sticky: call cudaGetLastError() after a failure you intend to ignore (a
 * cudaMalloc to be retried), or the next launch reports it.
 *
 * The simulator checks and translates the pointers that a kernel is passed. For every
 * struct passed to a kernel, say at namespace scope where its pointers are; a launch
 * without this line does not compile for the simulator:
 *
 *     POINTERS_OF(Operands, for (int i = 0; i < s.n; i++) f(s.operand[i].data);)
 *     NO_POINTERS(Extents)
 *
 * s is the struct, and f must be called with each pointer. For a template, write out
 * the function:
 *
 *     template <int N, class F> void each_pointer(Plan<N> &s, F f) { f(s.data); }
 *
 * Pointers stored in device memory cannot be followed: pass them in a struct.
 *
 * GRID_CONSTANT(Layout<3>) layout declares a read-only struct parameter that all
 * threads share, instead of a copy in each thread's local memory.
 *
 * STATIC_SHARED(type, name) declares `name`, shared memory of a kernel, where CUDA's programs say
 * `__shared__ type name`; arrays are types here: STATIC_SHARED(float[32][33], tile).
 *
 * DYNAMIC_SHARED(type, name) declares `type *name`, the dynamic shared memory, aligned
 * to 32 bytes, inside a kernel.
 *
 * A caching allocator announces the blocks that it cuts from a cudaMalloc with
 *
 *     SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream)
 *     SIM_BLOCK_GIVEN_BACK(pointer, rounded)
 *
 * where `bytes` were requested, `rounded` are reserved, and the block is reused in the
 * order of `stream`; and between both, for each other stream whose work it lets end before
 * it hands the block out again,
 *
 *     SIM_BLOCK_AWAITS(pointer, rounded, device, stream)
 *
 * SIM_OWN_WAIT declares that what the function waits for until its block ends, and the
 * host memory that it copies, is the library's own: programs must not rely on such a wait.
 * SIM_STAGED(bytes) declares that the host has copied so much into pinned memory.
 * SIM_TABLE(table, first, bytes) declares where the pointers lead that the library fills a
 * table in device memory with, for the next call of cuBLAS or cuSOLVER that takes it.
 * On a GPU all of them do nothing. */
#ifndef DT_CUDA_RUNTIME_LAUNCH_H
#define DT_CUDA_RUNTIME_LAUNCH_H

#include <cuda_runtime.h>
#include <stdint.h>
#include <type_traits>

/* A dim3, or an integer, of which negative and too large ones become 0, which every
 * launch rejects. */
static inline dim3 launch_extent(dim3 extent)
{
    return extent;
}
template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
dim3 launch_extent(Integer extent)
{
    bool fits = extent > 0 && (unsigned long long)extent <= 0x7fffffff;
    return dim3(fits ? (unsigned)extent : 0u);
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

/* Bytes of dynamic shared memory that each kernel may have without asking: 48 KiB less its
 * own arrays. */
#define SHARED_OF_BLOCK (47 << 10)

#ifdef SIM_CUDA

#define LAUNCH(kernel, grid, block, shared, stream, ...)                               \
    SIM_LAUNCH(false, false, kernel, grid, block, shared, stream, ##__VA_ARGS__)
#define LAUNCH_BARRIERS(kernel, grid, block, shared, stream, ...)                      \
    SIM_LAUNCH(true, false, kernel, grid, block, shared, stream, ##__VA_ARGS__)
#define LAUNCH_LARGE(kernel, grid, block, shared, stream, ...)                         \
    SIM_LAUNCH(true, true, kernel, grid, block, shared, stream, ##__VA_ARGS__)
#define SIM_LAUNCH(barriers, large, kernel, grid, block, shared, stream, ...)          \
    ((void)sim::launch<barriers>({#kernel, barriers, launch_extent(grid),              \
                                  launch_extent(block), (size_t)(shared), (stream),    \
                                  (large)},                                            \
                                 (kernel), ##__VA_ARGS__),                             \
     cudaGetLastError())
#define GRID_CONSTANT(...)        const __VA_ARGS__ &
#define STATIC_SHARED(type, name) SIM_SHARED(type, name)
#define DYNAMIC_SHARED(type, name)                                                     \
    type *name = reinterpret_cast<type *>(sim::dynamic_shared_memory())
#define SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream)                               \
    sim::block_taken((pointer), (bytes), (rounded), (stream))
#define SIM_BLOCK_GIVEN_BACK(pointer, rounded)                                         \
    sim::block_given_back((pointer), (rounded))
#define SIM_BLOCK_AWAITS(pointer, rounded, device, stream)                             \
    sim::race_block_awaits((pointer), (rounded), (device), (stream))
#define SIM_OWN_WAIT                   sim::OwnWait own_wait
#define SIM_STAGED(bytes)              sim::host_staged(bytes)
#define SIM_TABLE(table, first, bytes) sim::table_leads_to((table), (first), (bytes))

#else

#ifdef __CUDACC__
/* clang-format off */
#define LAUNCH(kernel, grid, block, shared, stream, ...)                               \
    ((kernel)<<<launch_extent(grid), launch_extent(block), (size_t)(shared),           \
                (stream)>>>(__VA_ARGS__), cudaGetLastError())
/* clang-format on */
#define LAUNCH_BARRIERS LAUNCH
#define LAUNCH_LARGE(kernel, grid, block, shared, stream, ...)                         \
    ((shared) > SHARED_OF_BLOCK &&                                                     \
             cudaFuncSetAttribute(                                                     \
                 (kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(shared)) \
         ? cudaGetLastError()                                                          \
         : LAUNCH(kernel, grid, block, shared, stream, __VA_ARGS__))
#define GRID_CONSTANT(...)        const __grid_constant__ __VA_ARGS__
template <typename T>
using SharedType = T;
#define STATIC_SHARED(type, name) __shared__ SharedType<type> name
#define DYNAMIC_SHARED(type, name)                                                     \
    extern __shared__ __align__(32) unsigned char dynamic_shared_bytes[];              \
    type *name = reinterpret_cast<type *>(dynamic_shared_bytes)
#endif
#define SIM_BLOCK_TAKEN(pointer, bytes, rounded, stream)   ((void)0)
#define SIM_BLOCK_GIVEN_BACK(pointer, rounded)             ((void)0)
#define SIM_BLOCK_AWAITS(pointer, rounded, device, stream) ((void)0)
#define SIM_OWN_WAIT                                       ((void)0)
#define SIM_STAGED(bytes)                                  ((void)0)
#define SIM_TABLE(table, first, bytes)                     ((void)0)

#endif
#endif
