/* Matrix products. */
#ifndef DT_TENSOR_OPS_MATMUL_H
#define DT_TENSOR_OPS_MATMUL_H

#include "tensor/tensor.h"

/* a @ b with PyTorch's rules: vectors, matrices, and batches that broadcast. */
int dt_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);

/* The strict forms: matrices; matrix and vector; vectors; batches of equal size. */
int dt_mm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);
int dt_mv(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);
int dt_dot(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);
int dt_bmm(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);

/* beta * input + alpha * (a @ b); input broadcasts to the product's shape. */
int dt_addmm(dt_tensor *out, const dt_tensor *input, const dt_tensor *a,
             const dt_tensor *b, dt_scalar beta, dt_scalar alpha);

#endif
