/* A BLAS found at run time; optional, never linked. */
#ifndef DT_CPU_RUNTIME_BLAS_H
#define DT_CPU_RUNTIME_BLAS_H

#include "device/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One product, c = alpha * a @ b + beta * c, on the calling thread. The batch is 1. */
void dt_blas_gemm(const dt_gemm *gemm);

/* Whether a BLAS serves dtype; the first call loads it. PYDEVTENSOR_BLAS: auto, own
 * (none) or the path of a library. */
bool dt_blas_has(dt_dtype dtype);

/* After dt_blas_has: whether it is NumPy's copy, which is multithreaded itself. */
bool dt_blas_has_threads(void);

/* The library's LAPACK routine of that name ("dgetrf"), called as Fortran does, and
 * whether its integers are of 64 bits; NULL where it has none. */
void *dt_lapack_find(const char *name, bool *out_wide);

/* The library's path and its description of itself; "" if there is none. Borrowed. */
const char *dt_blas_path(void);
const char *dt_blas_config(void);
const char *dt_blas_core(void);

#ifdef __cplusplus
}
#endif

#endif
