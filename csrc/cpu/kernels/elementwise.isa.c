/* The rows of ops/elementwise.def as loops over elements. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/typed.h"
#include "ops/class.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/kernels/elementwise.inc"
#include "cpu/kernels/types.inc"

const dt_elementwise_kernels DT_ISA_NAME(dt_elementwise) = {
#define DT_DTYPE(ID, name, alias, type, class)      [DT_##ID] = elementwise_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class) [DT_##ID] = elementwise_FLOAT32,
#include "ops/dtype.def"
};
