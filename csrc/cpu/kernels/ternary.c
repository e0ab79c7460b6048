#include "cpu/kernels/ternary.h"

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"

int dt_cpu_ternary(dt_queue queue, dt_ternary_op op, const dt_plan *plan)
{
    static const char *const names[DT_NTERNARY] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc) #name,
#include "ops/ternary.def"
#undef TERNARY
    };
    (void)queue;
    dt_dtype dtype = plan->operands[0].dtype;
    dt_kernel *const *kernels = (*dt_cpu_kernels.ternary)[dtype];
    if (!kernels || !kernels[op])
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: elements of type %s are not supported on the CPU; convert them first, "
            "for example with .float()",
            names[op], dt_dtype_name(dtype));
    dt_loop_run(kernels[op], plan, 1);
    return 0;
}
