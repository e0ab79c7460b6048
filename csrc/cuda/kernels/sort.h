/* Rows in order, and searching in them; the contracts are dt_backend's. */
#ifndef DT_CUDA_KERNELS_SORT_H
#define DT_CUDA_KERNELS_SORT_H

#include "device/backend.h"

int sort_run(dt_stream stream, const dt_sorting *sorting);
int search_run(dt_stream stream, const dt_search *search);

#endif
