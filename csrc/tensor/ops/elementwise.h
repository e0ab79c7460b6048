/* Functions of elements: the rows of ops/elementwise.def on whole tensors. */
#ifndef DT_TENSOR_OPS_ELEMENTWISE_H
#define DT_TENSOR_OPS_ELEMENTWISE_H

#include "ops/elementwise.h"
#include "tensor/tensor.h"

/* A tensor, or a Python number. */
typedef struct dt_arg {
    const dt_tensor *tensor; /* NULL: the scalar */
    dt_scalar scalar;
} dt_arg;

static inline dt_arg dt_arg_tensor(const dt_tensor *t)
{
    dt_arg arg;
    arg.tensor = t;
    arg.scalar.kind = DT_KIND_BOOL;
    arg.scalar.i = 0;
    return arg;
}
static inline dt_arg dt_arg_scalar(dt_scalar scalar)
{
    dt_arg arg;
    arg.tensor = NULL;
    arg.scalar = scalar;
    return arg;
}

/* Operands of a call that are made for it: DT_ARGS(dt_arg_tensor(x), y). */
#define DT_ARGS(...) ((dt_arg[]){__VA_ARGS__})

/* A new tensor of op's function of args: as many as the row has inputs, at least one of
 * them a tensor. They broadcast, in the type that they promote to. On two devices:
 * DT_ERROR_RUNTIME, but a CPU tensor without dimensions goes with any device. */
int dt_elementwise(dt_elementwise_op op, dt_tensor *out, const dt_arg *args);
/* Into target, whose shape args broadcast to, and whose type can hold the result. */
int dt_elementwise_into(dt_elementwise_op op, dt_tensor *target, const dt_arg *args);

/* Both, where the quick way (elementwise_quick.c) will not do. target NULL: *out, which
 * holds nothing, is made, and cleared on failure. Else out is the target, which is left
 * as it is on failure. */
int dt_elementwise_whole(dt_elementwise_op op, dt_tensor *out, dt_tensor *target,
                         const dt_arg *args);
/* The operation that computes a power whose exponent is a number. PyTorch has some by
 * other means as well, so that (-inf) ** 0.5 is NaN, and pow() takes many times as
 * long. */
dt_elementwise_op dt_elementwise_power(const dt_arg *args);

/* The type that args promote to: tensors with dimensions first, then those without,
 * then numbers; a later group only counts where its kind is higher. */
dt_dtype dt_result_type(const dt_arg *args, int count);

/* The floating type of results of integers: float32, or what set_default_dtype says. */
dt_dtype dt_default_dtype(void);
void dt_set_default_dtype(dt_dtype dtype);

/* 0 when a result of type `from` may be written into a tensor of type `to`; else -1
 * after dt_fail(DT_ERROR_RUNTIME). */
int dt_check_cast(const char *op_name, dt_dtype from, dt_dtype to);

/* Fails with the operands' names, shapes and devices where two tensors live apart. */
int dt_check_same_device(const char *op_name, const char *aname, const dt_tensor *a,
                         const char *bname, const dt_tensor *b);

#endif
