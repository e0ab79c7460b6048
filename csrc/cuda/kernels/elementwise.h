/* The kernels of ops/elementwise.def, by element type. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_H
#define DT_CUDA_KERNELS_ELEMENTWISE_H

#include "device/backend.h"

/* Starts the row `op`. The row takes the plan's type. */
typedef int (*elementwise_fn)(dt_stream stream, int op, const dt_plan *plan);
typedef struct elementwise_kernels {
    elementwise_fn fn[2][4]; /* [whether the result is of bool][arity - 1] */
    elementwise_fn choice;   /* for DT_RULE_CHOICE */
} elementwise_kernels;

#define DT_DTYPE(ID, name, alias, type)                                                \
    extern const elementwise_kernels elementwise_##ID;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"

/* The kernels of the rows with DT_OWN_KERNEL. */
extern const elementwise_kernels elementwise_special_float32,
    elementwise_special_float64;

#endif
