/* Factorizations and solvers on tensors in LAPACK's layout. */
#ifndef DT_TENSOR_OPS_LAPACK_H
#define DT_TENSOR_OPS_LAPACK_H

#include "device/lapack.h"
#include "tensor/tensor.h"

/* The operation of the name; -1 after dt_fail. */
int dt_lapack_op_of(const char *op_name, const char *name);

/* Runs `call`, of which op, flags, m, n, k and number are set, on contiguous tensors: the
 * operands in order, each with one column-major matrix after another. Writes those that
 * the operation writes. Sees no history. */
int dt_lapack(const char *op_name, dt_lapack_call *call, int count,
              const dt_tensor *const *tensors);

#endif
