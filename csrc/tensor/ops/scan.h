/* Cumulative sums, products, maxima and minima along a dimension. */
#ifndef DT_TENSOR_OPS_SCAN_H
#define DT_TENSOR_OPS_SCAN_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* Element i of out is what elements 0 to i along dim give (backward: i to the last).
 * dtype -1: int64 for sums and products of integers and bools, else x's own type; else
 * the type to compute in. indices: int64, of the maxima or minima; NULL for the other
 * operations. */
int dt_cumulative(dt_scan_op op, dt_tensor *out, dt_tensor *indices, const dt_tensor *x,
                  int64_t dim, int dtype, bool backward);

#endif
