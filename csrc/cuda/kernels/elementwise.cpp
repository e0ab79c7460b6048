#include "cuda/kernels/elementwise.h"

#include "cuda/runtime/device.h"

static const elementwise_kernels *const kernels[DT_NDTYPES] = {
#define DT_DTYPE(ID, name, alias, type, class) &elementwise_##ID,
#define DT_DTYPE_HALF(...)                     &elementwise_FLOAT32,
#include "ops/dtype.def"
};

/* A row, and whether it takes the types of each kind. */
struct Row {
    const char *name;
    bool takes[3];
};
#define ROW(name, class)                                                               \
    {#name,                                                                            \
     {TAKES_##class(DT_KIND_BOOL), TAKES_##class(DT_KIND_INTEGER),                     \
      TAKES_##class(DT_KIND_FLOAT)}},
static_assert(DT_KIND_BOOL == 0 && DT_KIND_INTEGER == 1 && DT_KIND_FLOAT == 2,
              "the order of Row::takes");
static const Row unary_rows[] = {
#define UNARY(name, class, low, high, value, derivative, doc) ROW(name, class)
#include "ops/unary.def"
#undef UNARY
};
static const Row binary_rows[] = {
#define BINARY(name, class, low, high, value, da, db, doc) ROW(name, class)
#include "ops/kernels.def"
#undef BINARY
};

/* The type of the inputs: among floats of 16 bits a number may be a float32. */
static dt_dtype input_type(const dt_plan *plan)
{
    bool second = plan->noperands == 3 && plan->operands[1].immediate;
    return plan->operands[second ? 2 : 1].dtype;
}

/* Makes the queue's device the current one; fails for a row that does not take the
 * plan's inputs. */
static int prepare(dt_queue queue, const Row &row, const dt_plan *plan)
{
    dt_dtype dtype = input_type(plan);
    if (!row.takes[dt_dtype_kind(dtype)])
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: not defined for tensors of type %s on a GPU; convert them first",
            row.name, dt_dtype_name(dtype));
    return device_use(queue.device);
}

static bool gives_other(const dt_plan *plan)
{
    return plan->operands[0].dtype != input_type(plan);
}

int elementwise_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan)
{
    if (prepare(queue, unary_rows[op], plan))
        return -1;
    return kernels[input_type(plan)]->unary[gives_other(plan)](queue, op, plan);
}

int elementwise_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan)
{
    if (prepare(queue, binary_rows[op], plan))
        return -1;
    return kernels[input_type(plan)]->binary[gives_other(plan)](queue, op, plan);
}
