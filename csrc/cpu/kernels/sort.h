/* Rows in order; the contract is dt_backend's. */
#ifndef DT_CPU_KERNELS_SORT_H
#define DT_CPU_KERNELS_SORT_H

#include "device/backend.h"

int dt_cpu_sort(dt_stream stream, const dt_sorting *sorting);
int dt_cpu_search(dt_stream stream, const dt_search *search);

#endif
