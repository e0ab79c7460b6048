/* Matrix products. */
#ifndef DT_TENSOR_OPS_MATMUL_H
#define DT_TENSOR_OPS_MATMUL_H

#include "tensor/tensor.h"

/* a @ b with PyTorch's rules: vectors, matrices, and batches that broadcast. */
int dt_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);

#endif
