/* Running sums, products and extremes, and moments; the contracts are dt_backend's. */
#ifndef DT_CUDA_KERNELS_SCAN_H
#define DT_CUDA_KERNELS_SCAN_H

#include "device/backend.h"

int scan_run(dt_stream stream, dt_scan_op op, const dt_scan *scan);
int moments_run(dt_stream stream, void *mean, const dt_reduction *reduction);

#endif
