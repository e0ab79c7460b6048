#include "cpu/kernels/elementwise.h"

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/loop.h"

static const char *const unary_names[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc) [DT_UNARY_##name] = #name,
#include "ops/unary.def"
#undef UNARY
};
static const char *const binary_names[DT_NBINARY] = {
#define BINARY(name, class, low, high, value, da, db, doc) [DT_BINARY_##name] = #name,
#include "ops/kernels.def"
#undef BINARY
};

/* How a row's class weighs: what is computed in floating point mostly calls for a
 * function. */
enum {
    W_ANY = 1,
    W_NUMBER = 1,
    W_BITS = 1,
    W_PREDICATE = 1,
    W_COMPARE = 1,
    W_FLOAT = 4,
    W_REAL = 4,
    W_DIVIDES = 4
};
static const unsigned char unary_weights[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc)                          \
    [DT_UNARY_##name] = W_##class,
#include "ops/unary.def"
#undef UNARY
};
static const unsigned char binary_weights[DT_NBINARY] = {
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    [DT_BINARY_##name] = W_##class,
#include "ops/kernels.def"
#undef BINARY
};
/* Whether a zero divisor among integers is an error. */
enum {
    D_ANY = 0,
    D_NUMBER = 0,
    D_BITS = 0,
    D_PREDICATE = 0,
    D_COMPARE = 0,
    D_FLOAT = 0,
    D_REAL = 0,
    D_DIVIDES = 1
};
static const bool divides[DT_NBINARY] = {
#define BINARY(name, class, low, high, value, da, db, doc)                             \
    [DT_BINARY_##name] = D_##class,
#include "ops/kernels.def"
#undef BINARY
};

static int fail_for_type(const char *name, dt_dtype dtype)
{
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: elements of type %s are not supported on the CPU; convert them first, "
        "for example with .float()",
        name, dt_dtype_name(dtype));
}

int dt_cpu_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan)
{
    (void)queue;
    dt_dtype dtype = plan->operands[1].dtype;
    dt_kernel *kernel = dt_cpu_kernels.elementwise->unary[dtype][op];
    if (!kernel)
        return fail_for_type(unary_names[op], dtype);
    dt_loop_run(kernel, plan, unary_weights[op]);
    return 0;
}

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

int dt_cpu_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan)
{
    (void)queue;
    const dt_operand *divisor = &plan->operands[2];
    dt_dtype dtype = plan->operands[plan->operands[1].immediate ? 2 : 1].dtype;
    dt_kernel *kernel = dt_cpu_kernels.elementwise->binary[dtype][op];
    if (!kernel)
        return fail_for_type(binary_names[op], dtype);
    if (divides[op] && !dt_dtype_is_float(dtype)) {
        size_t size = dt_dtype_size(dtype);
        if (divisor->immediate ? zero_at((const char *)divisor->value.bytes, size)
                               : has_zero(divisor->data, size, plan->ndim, plan->shape,
                                          divisor->strides))
            return dt_fail(
                DT_ERROR_RUNTIME,
                "ZeroDivisionError: %s of integers has a divisor that is 0; take the "
                "zeros out, or convert to a floating type",
                binary_names[op]);
    }
    dt_loop_run(kernel, plan, binary_weights[op]);
    return 0;
}

int dt_cpu_where(dt_queue queue, const dt_plan *plan)
{
    (void)queue;
    size_t size = dt_dtype_size(plan->operands[0].dtype);
    dt_loop_run(dt_cpu_kernels.copy->where[__builtin_ctzll((unsigned long long)size)],
                plan, 1);
    return 0;
}
