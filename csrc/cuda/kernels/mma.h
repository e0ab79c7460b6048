/* Products of matrices of 16 bits, or of float32 in part, by the tensor cores of a warp.
 *
 * mma: c += a @ b, where a has 16 rows and 16 columns and b has 16 and 8. Each lane holds
 * a fragment of each; with group = lane / 4 and t = lane % 4 (PTX ISA, "Matrix Fragments
 * for mma.m16n8k16"):
 *
 *     a[0]  row group,      columns 2t, 2t + 1        the lower half is the first of both
 *     a[1]  row group + 8,  columns 2t, 2t + 1
 *     a[2]  row group,      columns 2t + 8, 2t + 9
 *     a[3]  row group + 8,  columns 2t + 8, 2t + 9
 *     b[0]  column group,   rows 2t, 2t + 1
 *     b[1]  column group,   rows 2t + 8, 2t + 9
 *     c[0], c[1]  row group,      columns 2t, 2t + 1
 *     c[2], c[3]  row group + 8,  columns 2t, 2t + 1
 *
 * So c of two products side by side is, rounded in pairs, a of the next product. Products
 * are exact and sums are float32, whose order and rounding the hardware chooses.
 *
 * mma<float>: a has 8 columns and b 8 rows, an element in a register, of which the first 19
 * bits count ("TF32": 11 bits of a number); t in place of 2t, 2t + 1, and t + 4 in place of
 * 2t + 8, 2t + 9. c is as above.
 *
 * WarpProducts: of up to MOST fragments. c has the sums after run(), for which the lanes of a
 * simulated warp meet; a GPU has added each product before.
 *
 * load_matrices: four matrices of 8 by 8 from shared memory (ldmatrix). at(8 * m + r) is
 * the address of row r of matrix m, a multiple of 16 bytes, and each lane gets of each
 * matrix row group, columns 2t and 2t + 1, or column t of float32; or with TRANSPOSED
 * column group, rows 2t and 2t + 1.
 *
 * All lanes of the warp call them. Simulated GPUs have the instructions in
 * sim/tensor_core.h. */
#ifndef DT_CUDA_KERNELS_MMA_H
#define DT_CUDA_KERNELS_MMA_H

#include <cuda_runtime.h>
#include <type_traits>

#include "base/half.h"
#ifdef SIM_CUDA
#include "sim/tensor_core.h"
#endif

/* Whether the architecture that is compiled for multiplies elements of type T: float16
 * from 7.5 on, bfloat16 and float32 from 8.0 on. */
#if defined(__CUDA_ARCH__)
template <typename T>
constexpr bool has_mma =
    __CUDA_ARCH__ >= 800 || (__CUDA_ARCH__ >= 750 && std::is_same_v<T, dt_float16>);
#else
template <typename T>
constexpr bool has_mma = true;
#endif

/* Two elements in a register, each rounded to nearest even. */
template <typename T>
static __device__ __forceinline__ unsigned half_pair(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned pair;
    if constexpr (std::is_same_v<T, dt_float16>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return T(low).bits | (unsigned)T(high).bits << 16;
#endif
}

#ifdef SIM_CUDA
using sim::WarpProducts;
#else
template <typename T>
static __device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4],
                                           const unsigned (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MMA(k, type)                                                                   \
    asm("mma.sync.aligned.m16n8k" k ".row.col.f32." type "." type                      \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                          \
        "{%0, %1, %2, %3};"                                                            \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                               \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if constexpr (std::is_same_v<T, float>)
        MMA("8", "tf32");
    else if constexpr (std::is_same_v<T, dt_float16>)
        MMA("16", "f16");
    else
        MMA("16", "bf16");
#undef MMA
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    /* The first 8 columns of a and rows of b, then the others. */
    for (int k = 0; k < 2; k++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
#endif
}

template <typename T, unsigned MOST>
struct WarpProducts {
    __device__ __forceinline__ void add(float (&c)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2])
    {
        mma<T>(c, a, b);
    }
    __device__ __forceinline__ void run() {}
};
#endif

template <bool TRANSPOSED, class At>
static __device__ __forceinline__ void load_matrices(unsigned (&to)[4], At at)
{
    const int lane = (int)threadIdx.x % 32;
#if defined(SIM_CUDA)
    sim::load_matrices<TRANSPOSED>(to, at, lane);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
    unsigned address = (unsigned)__cvta_generic_to_shared(at(lane));
#define LOAD(how)                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" how                                   \
                 ".shared.b16 {%0, %1, %2, %3}, [%4];"                                 \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                  \
                 : "r"(address))
    if constexpr (TRANSPOSED)
        LOAD(".trans");
    else
        LOAD("");
#undef LOAD
#endif
}

#endif
