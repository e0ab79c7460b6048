/* Copies of 16 bytes from global to shared memory that a thread starts and awaits later
 * (cp.async, from 8.0 on; before, they are done at once). Others see what a thread has
 * copied after its await and a barrier.
 *
 * A simulated GPU copies when the copies are awaited, and fills the memory with NaN
 * before, so that a use before the wait shows. */
#ifndef DT_CUDA_KERNELS_ASYNC_COPY_H
#define DT_CUDA_KERNELS_ASYNC_COPY_H

#include <cuda_runtime.h>

#include "cuda/kernels/layout.h"
#ifdef SIM_CUDA
#include "sim/warpgroup.h"
#endif

struct AsyncCopies {
#ifdef SIM_CUDA
    static constexpr int most = 64;
    struct {
        void *to;
        const void *from;
    } pending[most];
    int count = 0;
    /* Not by memcpy, which a compiler that checks kernels does not see. */
    typedef long long Bytes __attribute__((vector_size(16), may_alias));
#endif

    /* Both are multiples of 16 bytes. Zeros unless `reads`; `from` is then not read. */
    __device__ __forceinline__ void start(void *to, const void *from, bool reads)
    {
#if defined(SIM_CUDA)
        if (count == most || !is_aligned(to, 16) || (reads && !is_aligned(from, 16)))
            __trap();
        *(Bytes *)to = Bytes{-1, -1};
        pending[count++] = {to, reads ? from : nullptr};
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :
                     : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
                       "r"(reads ? 16 : 0)
                     : "memory");
#else
        *(int4 *)to = reads ? *(const int4 *)from : int4{0, 0, 0, 0};
#endif
    }
    __device__ __forceinline__ void await()
    {
#if defined(SIM_CUDA)
        for (; count; count--) {
            const auto &copy = pending[count - 1];
            *(Bytes *)copy.to = copy.from ? *(const Bytes *)copy.from : Bytes{};
        }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" : : : "memory");
#endif
    }
    /* Arrives at a PhaseBarrier (warpgroup.h) once what was started is done. */
    __device__ __forceinline__ void arrive_at(uint64_t *barrier)
    {
#if defined(SIM_CUDA)
        await();
        sim::phase_arrive(barrier);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                     :
                     : "r"((unsigned)__cvta_generic_to_shared(barrier))
                     : "memory");
#endif
    }
};

#endif
