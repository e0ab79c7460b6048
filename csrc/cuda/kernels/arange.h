/* Arithmetic progressions. */
#ifndef DT_CUDA_KERNELS_ARANGE_H
#define DT_CUDA_KERNELS_ARANGE_H

#include "device/backend.h"

int arange_run(dt_stream stream, const dt_arange_call *progression);

#endif
