/* The rows of ops/reduce.def as loops over elements next to each other. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/typed.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/kernels/reduce.inc"
#include "cpu/kernels/types.inc"

const dt_reduce_kernels DT_ISA_NAME(dt_reduce) = {
    .fold =
        {
#define DT_DTYPE(ID, name, alias, type, class)      [DT_##ID] = fold_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class) [DT_##ID] = fold_FLOAT32,
#include "ops/dtype.def"
        },
    .arg =
        {
#define DT_DTYPE(ID, name, alias, type, class)      [DT_##ID] = &arg_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class) [DT_##ID] = &arg_FLOAT32,
#include "ops/dtype.def"
        },
};
