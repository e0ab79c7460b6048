/* The rows of ops/unary.def and ops/binary.def as loops over elements. */
#include "cpu/kernels/half.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/typed.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/kernels/elementwise.inc"
#include "cpu/kernels/types.inc"

const dt_elementwise_kernels DT_ISA_NAME(dt_elementwise) = {
    .unary =
        {
#define DT_DTYPE(ID, name, alias, type, class)      [DT_##ID] = unary_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class) [DT_##ID] = dt_half_unary_##ID,
#include "ops/dtype.def"
        },
    .binary =
        {
#define DT_DTYPE(ID, name, alias, type, class)      [DT_##ID] = binary_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class) [DT_##ID] = dt_half_binary_##ID,
#include "ops/dtype.def"
        },
};
