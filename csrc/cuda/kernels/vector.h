/* Elements that a kernel loads, computes with and stores together. */
#ifndef DT_CUDA_KERNELS_VECTOR_H
#define DT_CUDA_KERNELS_VECTOR_H

#include <cuda_runtime.h>
#include <stdint.h>

/* UNROLL is for loops over a vector, ROLLED for short loops over dimensions, so that a
 * wheel has room for sixteen copies of a kernel. UNROLL_HERE unrolls on the host, too,
 * which keeps elements in registers: in a loop gcc stores four of them one by one and
 * loads them as one vector, which has to wait for the stores. */
#ifdef __CUDACC__
#define UNROLL      _Pragma("unroll")
#define UNROLL_HERE _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")
#define ROLLED      _Pragma("unroll 1")
#else
#define UNROLL
#define UNROLL_HERE _Pragma("GCC unroll 4")
#define UNROLL_BY_4
#define ROLLED
#endif

/* Loads and stores of N elements at once: up to 16 bytes, and 8 elements, since a
 * kernel holds its row that many times. */
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
    T v[N];
};
template <typename T>
constexpr int vector_size = sizeof(T) == 1 ? 8 : (int)(16 / sizeof(T));

static inline __host__ __device__ bool is_aligned(const void *p, size_t bytes)
{
    return (uintptr_t)p % bytes == 0;
}

#endif
