/* Division by a constant that the host has prepared. */
#ifndef DT_CUDA_KERNELS_DIVIDER_H
#define DT_CUDA_KERNELS_DIVIDER_H

#include <cuda_runtime.h>
#include <stdint.h>

/* Divides numbers below 2^31 by a constant (Granlund and Montgomery, 1994): the
 * quotient is the high half of n * magic, plus n, shifted. */
struct Divider {
    unsigned divisor, magic, shift;
};

static inline Divider divider_for(unsigned divisor)
{
    Divider d = {divisor, 0, 0};
    while (((uint64_t)1 << d.shift) < divisor)
        d.shift++;
    d.magic = (unsigned)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - divisor)) /
                             divisor +
                         1);
    return d;
}

static __device__ __forceinline__ unsigned divide(unsigned n, const Divider &d)
{
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

#endif
