/* Running sums, products and extremes; the contract is dt_backend's. */
#ifndef DT_CPU_KERNELS_SCAN_H
#define DT_CPU_KERNELS_SCAN_H

#include "device/backend.h"

int dt_cpu_scan(dt_stream stream, dt_scan_op op, const dt_scan *scan);

#endif
