/* Matrix products: floats by cuBLAS, integers by a kernel of our own. */
#ifndef DT_CUDA_KERNELS_MATMUL_H
#define DT_CUDA_KERNELS_MATMUL_H

#include "device/backend.h"

int matmul_gemm(dt_stream stream, const dt_gemm *gemm);
int matmul_integers(dt_stream stream, const dt_gemm *gemm);

/* The version of cuBLAS once a product has been computed; 0 before. */
int matmul_cublas_version(void);

#endif
