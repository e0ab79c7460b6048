/* The rows of ops/ternary.def as loops over elements. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/typed.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/kernels/ternary.inc"
#include "cpu/kernels/types.inc"

/* Of floats of 16 bits there is none: the core computes those as float32. */
#define DT_DTYPE_HALF(...)
const dt_ternary_kernels DT_ISA_NAME(dt_ternary) = {
#define DT_DTYPE(ID, name, alias, type, class) [DT_##ID] = ternary_##ID,
#include "ops/dtype.def"
};
