/* The kernels of elementwise rows, and one table of them per element type. */
#ifndef DT_CUDA_ELEMENTWISE_H
#define DT_CUDA_ELEMENTWISE_H

#include "device/backend.h"

typedef int (*elementwise_fn)(dt_queue queue, const dt_plan *plan);

/* NULL where a row's class does not take the type. */
typedef struct elementwise_table {
    elementwise_fn unary[DT_NUNARY];
    elementwise_fn binary[DT_NBINARY];
} elementwise_table;

#define DT_DTYPE(ID, name, alias, type, class)                                         \
    extern const elementwise_table elementwise_##ID;
#include "ops/dtype.def"

int elementwise_unary(dt_queue queue, dt_unary_op op, const dt_plan *plan);
int elementwise_binary(dt_queue queue, dt_binary_op op, const dt_plan *plan);

#endif
