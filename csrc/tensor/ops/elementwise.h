/* Functions of elements: the rows of ops/unary.def, binary.def and ternary.def on whole
 * tensors. */
#ifndef DT_TENSOR_OPS_ELEMENTWISE_H
#define DT_TENSOR_OPS_ELEMENTWISE_H

#include "ops/ops.h"
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

/* Names as Python has them. */
extern const char *const dt_unary_names[DT_NUNARY];
extern const char *const dt_binary_names[DT_NBINARY];
extern const char *const dt_ternary_names[DT_NTERNARY];

int dt_unary(dt_unary_op op, dt_tensor *out, const dt_tensor *x);
int dt_unary_into(dt_unary_op op, dt_tensor *target, const dt_tensor *x);

/* At least one of a and b is a tensor. On two devices: DT_ERROR_RUNTIME, but a CPU
 * tensor without dimensions goes with any device. */
int dt_binary(dt_binary_op op, dt_tensor *out, dt_arg a, dt_arg b);
int dt_binary_into(dt_binary_op op, dt_tensor *target, dt_arg a, dt_arg b);

/* The first is a tensor. */
int dt_ternary(dt_ternary_op op, dt_tensor *out, dt_arg a, dt_arg b, dt_arg c);
int dt_ternary_into(dt_ternary_op op, dt_tensor *target, dt_arg a, dt_arg b, dt_arg c);

/* a where condition, a tensor of bools (or of uint8, where 0 is false), holds, else b;
 * broadcasting, in the type in which a and b meet. */
int dt_where(dt_tensor *out, const dt_tensor *condition, dt_arg a, dt_arg b);
/* The same in place: a and b promote to target's type. */
int dt_where_into(const char *what, dt_tensor *target, const dt_tensor *condition,
                  dt_arg a, dt_arg b);

/* The type in which a and b meet: tensors with dimensions first, then those without,
 * then numbers; a later group only counts where its kind is higher. */
dt_dtype dt_result_type(const dt_arg *args, int count);

/* The floating type of results of integers: float32, or what set_default_dtype says. */
dt_dtype dt_default_dtype(void);
void dt_set_default_dtype(dt_dtype dtype);

/* 0 when a result of type `from` may be written into a tensor of type `to`; else -1
 * after dt_fail(DT_ERROR_RUNTIME). */
int dt_check_cast(const char *what, dt_dtype from, dt_dtype to);

/* Fails with the operands' names, shapes and devices where two tensors live apart. */
int dt_check_same_device(const char *what, const char *aname, const dt_tensor *a,
                         const char *bname, const dt_tensor *b);

#endif
