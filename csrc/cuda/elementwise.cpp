#include "cuda/elementwise.h"

static const elementwise_table *const tables[DT_NDTYPES] = {
#define DT_DTYPE(ID, name, alias, type, class) &elementwise_##ID,
#include "ops/dtype.def"
};

static int missing(const char *what, dt_dtype dtype)
{
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: not defined for tensors of type %s on a GPU; convert them first", what,
        dt_dtype_name(dtype));
}

int elementwise_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan)
{
    static const char *const names[] = {
#define UNARY(name, class, low, high, value, derivative, doc) #name,
#include "ops/unary.def"
#undef UNARY
    };
    dt_dtype dtype = plan->operands[1].dtype;
    elementwise_fn run = tables[dtype]->unary[op];
    return run ? run(queue, plan) : missing(names[op], dtype);
}

int elementwise_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan)
{
    static const char *const names[] = {
#define BINARY(name, class, low, high, value, da, db, doc) #name,
#include "ops/kernels.def"
#undef BINARY
    };
    dt_dtype dtype = plan->operands[1].dtype;
    elementwise_fn run = tables[dtype]->binary[op];
    return run ? run(queue, plan) : missing(names[op], dtype);
}
