/* Sorting. */
#ifndef DT_TENSOR_OPS_SORT_H
#define DT_TENSOR_OPS_SORT_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* The first k elements along dim in order (k -1: all of them), and where they were. A
 * stable sort, a NaN greater than all others. values may be NULL. */
int dt_sort(const char *what, dt_tensor *values, dt_tensor *indices, const dt_tensor *x,
            int64_t k, int64_t dim, bool descending);

#endif
