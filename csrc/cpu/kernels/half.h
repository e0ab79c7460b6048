/* Kernels of the types of 16 bits: those of float32 between conversions of a block of
 * elements that stays in the first cache. They are the same for every instruction set,
 * and call the set's own. */
#ifndef DT_CPU_KERNELS_HALF_H
#define DT_CPU_KERNELS_HALF_H

#include "cpu/kernels/kernels.h"

extern dt_kernel *const dt_half_unary_FLOAT16[DT_NUNARY];
extern dt_kernel *const dt_half_unary_BFLOAT16[DT_NUNARY];
extern dt_kernel *const dt_half_binary_FLOAT16[DT_NBINARY];
extern dt_kernel *const dt_half_binary_BFLOAT16[DT_NBINARY];

/* dt_half_from_SOURCE_TARGET: conversions in which one of the two is of 16 bits and
 * none is float32. */
#define DT_DTYPE(ID, name, alias, type, class)                                         \
    dt_kernel dt_half_from_##ID##_FLOAT16, dt_half_from_##ID##_BFLOAT16,               \
        dt_half_from_FLOAT16_##ID, dt_half_from_BFLOAT16_##ID;
#include "ops/dtype.def"

#endif
