/* Shared by the kernels of attention of 16 bits. */
#ifndef DT_CUDA_KERNELS_ATTENTION_HALVES_H
#define DT_CUDA_KERNELS_ATTENTION_HALVES_H

#include "cuda/kernels/attention.h"
#include "cuda/kernels/async_copy.h"
#include "cuda/kernels/compute.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/mma.h"
#include "ops/attention.h"

#define LOG2_E 1.44269504088896340736f
#define LN_2   0.693147180559945309417f

static __device__ __forceinline__ float power_of_2(float exponent)
{
#ifdef __CUDA_ARCH__
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
#else
    return op_exp2(exponent);
#endif
}

/* Over the four lanes that have one row. */
template <class Combine>
static __device__ __forceinline__ float along_row(float value, Combine combine)
{
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return combine(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

#endif
