/* Copies whose innermost dimension is one thing in the source and another in the
 * result. */
#ifndef DT_CUDA_KERNELS_TRANSPOSE_H
#define DT_CUDA_KERNELS_TRANSPOSE_H

#include "device/backend.h"

/* The dimension of a copy without a change of type along which the elements of the source
 * follow each other, where those of the result do so along the innermost one, and both
 * are long enough for tiles; else -1. */
int transposed_dim(const dt_plan *plan);

/* Starts such a copy. */
int start_transpose(dt_stream stream, const dt_plan *plan, int dim);

#endif
