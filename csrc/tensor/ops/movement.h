/* Elements repeated: the index behind repeat_interleave. The other functions of this family
 * are rows of ops/functions/movement.def. */
#ifndef DT_TENSOR_OPS_MOVEMENT_H
#define DT_TENSOR_OPS_MOVEMENT_H

#include "tensor/tensor.h"

/* The number i, repeats[i] times, for each i in turn: int64, on the device of repeats,
 * which are int32 or int64 of at most one dimension. One repeat counts for each of `size`
 * numbers. output_size -1: the sum of the repeats, which synchronizes with a GPU. */
int dt_repeat_index(dt_tensor *out, const dt_tensor *repeats, int64_t size,
                    int64_t output_size);

#endif
