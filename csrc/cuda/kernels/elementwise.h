/* The kernels of elementwise rows, by element type. */
#ifndef DT_CUDA_KERNELS_ELEMENTWISE_H
#define DT_CUDA_KERNELS_ELEMENTWISE_H

#include "device/backend.h"

/* Which types a class of the op tables takes. */
#define TAKES_ANY(kind)       true
#define TAKES_PREDICATE(kind) true
#define TAKES_COMPARE(kind)   true
#define TAKES_NUMBER(kind)    ((kind) != DT_KIND_BOOL)
#define TAKES_DIVIDES(kind)   ((kind) != DT_KIND_BOOL)
#define TAKES_FLOAT(kind)     ((kind) == DT_KIND_FLOAT)
#define TAKES_REAL(kind)      ((kind) == DT_KIND_FLOAT)
#define TAKES_BITS(kind)      ((kind) != DT_KIND_FLOAT)

/* Starts the row of number `op`. device_use has been called, and the row takes the type
 * of the plan. */
typedef int (*elementwise_fn)(dt_queue queue, int op, const dt_plan *plan);
/* Of the rows that give the type itself, and of those that give a bool. */
typedef struct elementwise_kernels {
    elementwise_fn unary[2], binary[2];
} elementwise_kernels;

#define DT_DTYPE(ID, name, alias, type, class)                                         \
    extern const elementwise_kernels elementwise_##ID;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"

int elementwise_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan);
int elementwise_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan);

#endif
