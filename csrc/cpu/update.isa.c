/* The rows of ops/update.def as loops over the elements of one tensor. */
#include "cpu/kernels.h"
#include "cpu/math.h"
#include "cpu/typed.h"
#include "ops/formula.h"

#define DT_EACH_TYPE "cpu/update.inc"
#include "cpu/types.inc"

const dt_update_kernels DT_ISA_NAME(dt_update) = {
    .update =
        {
#define DT_DTYPE_FLOAT(ID, name, alias, type, class) [DT_##ID] = update_##ID,
#define DT_DTYPE_HALF(ID, name, alias, type, class)
#include "ops/dtype.def"
        },
};
