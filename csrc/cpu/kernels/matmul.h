/* Matrix products of the CPU's backend. */
#ifndef DT_CPU_KERNELS_MATMUL_H
#define DT_CPU_KERNELS_MATMUL_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_gemm(dt_stream stream, const dt_gemm *gemm);

#endif
