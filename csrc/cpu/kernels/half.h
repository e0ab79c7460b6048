/* Kernels of the types of 16 bits: those of float32 between conversions of a block of
 * elements that stays in the first cache. They are the same for every instruction set,
 * and call the set's own. */
#ifndef DT_CPU_KERNELS_HALF_H
#define DT_CPU_KERNELS_HALF_H

#include "cpu/kernels/kernels.h"

/* A kernel, and which operands (bits) are of 16 bits where the kernel has float32. */
typedef struct dt_half_kernel {
    dt_kernel *kernel;
    int noperands;
    unsigned halves;
    dt_dtype half;
} dt_half_kernel;

/* As a dt_kernel. A result may lie over an input: a block is read before it is written.
 */
void dt_half_run(const dt_half_kernel *k, int64_t n, char *const *data,
                 const int64_t *strides);

/* dt_half_from_SOURCE_TARGET: conversions in which one of the two is of 16 bits and
 * none is float32. */
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    dt_kernel dt_half_from_##ID##_FLOAT16, dt_half_from_##ID##_BFLOAT16,               \
        dt_half_from_FLOAT16_##ID, dt_half_from_BFLOAT16_##ID;
#include "ops/dtype.def"

#endif
