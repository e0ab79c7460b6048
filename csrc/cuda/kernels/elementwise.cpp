#include "cuda/kernels/elementwise.h"

#include "cuda/runtime/backend.h"
#include "ops/elementwise.h"

static const elementwise_kernels *const kernels[DT_NDTYPES] = {
#define DT_DTYPE(ID, name, alias, type) &elementwise_##ID,
#define DT_DTYPE_HALF(...)              &elementwise_FLOAT32,
#include "ops/dtype.def"
};

int dt_cuda_elementwise(dt_stream stream, dt_elementwise_op op, const dt_plan *plan)
{
    const dt_elementwise_row &row = dt_elementwise_rows[op];
    const dt_class &columns = row.class_;
    dt_dtype dtype = dt_plan_type(plan, columns.choice);
    const elementwise_kernels *k = !(row.flags & DT_OWN_KERNEL) ? kernels[dtype]
                                   : dtype == DT_FLOAT64 ? &elementwise_special_float64
                                                         : &elementwise_special_float32;
    elementwise_fn run =
        columns.choice ? k->choice : k->fn[columns.truth][row.arity - 1];
    if (!columns.takes[dt_dtype_kind(dtype)] || !run)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: not defined for tensors of type %s on a GPU; convert them first",
            row.name, dt_dtype_name(dtype));
    return run(stream, op, plan);
}
