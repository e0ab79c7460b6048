/* Folding dimensions: the rows of ops/reduce.def, arguments of extremes, norms. */
#ifndef DT_TENSOR_OPS_REDUCE_H
#define DT_TENSOR_OPS_REDUCE_H

#include "ops/ops.h"
#include "tensor/tensor.h"

extern const char *const dt_reduce_names[DT_NREDUCE];

/* Folds `count` dimensions of x (count 0: all). dtype -1: the row's own result type;
 * else the type to compute in. `parameter` is P of the table. */
int dt_reduce(dt_reduce_op op, dt_tensor *out, const dt_tensor *x, int count,
              const int64_t *dims, bool keepdim, int dtype, double parameter);

/* The row that folds a p-norm. */
dt_reduce_op dt_norm_row(double p);

/* Marks the dimensions that a reduction folds: those named, or all for count 0. */
int dt_reduce_dims(const char *what, const dt_tensor *x, int count, const int64_t *dims,
                   bool *folded);
/* The shape of its result; the number of dimensions. */
int dt_reduce_shape(const dt_tensor *x, const bool *folded, bool keepdim,
                    int64_t *shape);

#endif
