/* A BLAS found at run time: none is linked, and none need be there. */
#ifndef DT_CPU_RUNTIME_BLAS_H
#define DT_CPU_RUNTIME_BLAS_H

#include "device/plan.h"

/* One product, c = alpha * a @ b + beta * c, on the calling thread; the plan's batch
 * is 1. */
void dt_blas_gemm(const dt_gemm *gemm);

/* Whether a BLAS has dtype's product, loading it at the first call. PYDEVTENSOR_BLAS:
 * auto, own (none) or the path of a library. */
bool dt_blas_has(dt_dtype dtype);

/* After dt_blas_has: whether it is NumPy's own, which divides the work among threads
 * itself. */
bool dt_blas_has_threads(void);

/* The library's path and its own words on itself; "" where there is none. Lent. */
const char *dt_blas_path(void);
const char *dt_blas_config(void);
const char *dt_blas_core(void);

#endif
