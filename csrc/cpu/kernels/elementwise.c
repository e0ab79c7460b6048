#include "cpu/runtime/backend.h"

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"
#include "ops/elementwise.h"

static bool zero_at(const char *p, size_t size)
{
    switch (size) {
    case 1:
        return *p == 0;
    case 2:
        return *(const int16_t *)p == 0;
    case 4:
        return *(const int32_t *)p == 0;
    default:
        return *(const int64_t *)p == 0;
    }
}

static bool has_zero(const char *p, size_t size, int ndim, const int64_t *shape,
                     const int64_t *strides)
{
    if (ndim == 0)
        return zero_at(p, size);
    /* Along a stride of 0 it is always the same element. */
    int64_t n = strides[0] ? shape[0] : 1;
    for (int64_t i = 0; i < n; i++, p += strides[0])
        if (ndim == 1 ? zero_at(p, size)
                      : has_zero(p, size, ndim - 1, shape + 1, strides + 1))
            return true;
    return false;
}

int dt_cpu_elementwise(dt_stream stream, dt_elementwise_op op, const dt_plan *plan)
{
    (void)stream;
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    dt_dtype dtype = dt_plan_type(plan, row->class_.choice);
    dt_kernel *kernel = (*dt_cpu_kernels.elementwise)[dtype][op];
    if (!kernel)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: elements of type %s are not supported on the CPU; convert them first, "
            "for example with .float()",
            row->name, dt_dtype_name(dtype));
    const dt_operand *divisor = &plan->operands[2];
    if (row->class_.rule == DT_RULE_DIVISOR && !dt_dtype_is_float(dtype) &&
        !divisor->scalar &&
        has_zero(divisor->data, dt_dtype_size(dtype), plan->ndim, plan->shape,
                 divisor->strides))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: division of integers by zero (ZeroDivisionError); use true division "
            "or floats, which give inf or nan",
            row->name);
    return dt_loop_run(kernel, plan, row->class_.cost, dt_dtype_is_half(dtype));
}
