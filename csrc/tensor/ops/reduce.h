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

/* The p-norm: p any number, also 0 and +-infinity. */
int dt_norm(dt_tensor *out, const dt_tensor *x, double p, int count,
            const int64_t *dims, bool keepdim, int dtype);

/* The row that folds a p-norm. */
dt_reduce_op dt_norm_row(double p);

/* The variance over dimensions of a floating tensor, with the divisor max(0, count -
 * correction); root: the standard deviation. Also the mean, unless that is NULL. */
int dt_variance(const char *what, dt_tensor *out, dt_tensor *mean, const dt_tensor *x,
                int count, const int64_t *dims, bool keepdim, double correction,
                bool root);

/* The greatest or least elements along one dimension (has_dim false: of all, index into
 * the flattened tensor) and where they are. values may be NULL. */
int dt_argreduce(const char *what, bool greatest, dt_tensor *values, dt_tensor *indices,
                 const dt_tensor *x, bool has_dim, int64_t dim, bool keepdim);

#endif
