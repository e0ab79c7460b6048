/* The elements of a tensor in another order, or several times, in new memory. */
#ifndef DT_TENSOR_OPS_MOVEMENT_H
#define DT_TENSOR_OPS_MOVEMENT_H

#include "tensor/tensor.h"

/* Backwards along each of dims; laid out in memory as t is. */
int dt_flip(dt_tensor *out, const dt_tensor *t, int count, const int64_t *dims);

/* Moved on by shifts[i] along dims[i], what leaves at the end coming in at the front;
 * with ndims 0 by one shift in row-major order. The result is row-major. */
int dt_roll(dt_tensor *out, const dt_tensor *t, int nshifts, const int64_t *shifts,
            int ndims, const int64_t *dims);

/* repeats[d] copies along each dimension, counted from the last one of t; more repeats
 * than dimensions add dimensions in front. */
int dt_repeat(const char *what, dt_tensor *out, const dt_tensor *t, int count,
              const int64_t *repeats);

/* Zeros, and the last dimension of t as a diagonal of the result's dim1 and dim2. */
int dt_diag_embed(const char *what, dt_tensor *out, const dt_tensor *t, int64_t offset,
                  int64_t dim1, int64_t dim2);

/* The number i, repeats[i] times, for each i in turn: int64, on the device of repeats,
 * which are int32 or int64 of at most one dimension. With a row of one repeat (or none)
 * `size` numbers are repeated that often. output_size -1: found by adding up, for which
 * a device is waited. */
int dt_repeat_index(dt_tensor *out, const dt_tensor *repeats, int64_t size,
                    int64_t output_size);

#endif
