/* The rows of ops/optim.def as loops over the elements of one tensor. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"
#include "cpu/kernels/typed.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/kernels/optim.inc"
#include "cpu/kernels/types.inc"

const dt_optim_kernels DT_ISA_NAME(dt_optim) = {
    .update =
        {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class) [DT_##ID] = update_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class)
#include "ops/dtype.def"
        },
};
