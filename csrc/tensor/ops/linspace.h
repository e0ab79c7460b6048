/* Evenly spaced numbers, and the two triangles of a matrix. */
#ifndef DT_TENSOR_OPS_LINSPACE_H
#define DT_TENSOR_OPS_LINSPACE_H

#include "tensor/tensor.h"

/* `steps` numbers from start to end, both included; where base is not NAN, base to
 * their powers. */
int dt_linspace(const char *what, dt_tensor *out, double start, double end,
                int64_t steps, double base, dt_dtype dtype, dt_device device);

/* Bools, rows x columns: true on the diagonal and below it (lower), or above. Diagonal
 * k is k columns to the right of the main one. */
int dt_triangle(const char *what, dt_tensor *out, int64_t rows, int64_t columns,
                bool lower, int64_t diagonal, dt_device device);

#endif
