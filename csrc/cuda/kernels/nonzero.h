/* Where bools are true. */
#ifndef DT_CUDA_KERNELS_NONZERO_H
#define DT_CUDA_KERNELS_NONZERO_H

#include "device/backend.h"

int nonzero_count(dt_stream stream, const dt_nonzero_call *call);
int nonzero_write(dt_stream stream, const dt_nonzero_call *call);

#endif
