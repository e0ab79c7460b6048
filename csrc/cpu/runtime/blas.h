/* A BLAS found at run time; optional, never linked. */
#ifndef DT_CPU_RUNTIME_BLAS_H
#define DT_CPU_RUNTIME_BLAS_H

#include "device/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One product, c = alpha * a @ b + beta * c. The batch is 1. */
void dt_blas_gemm(const dt_gemm *gemm);

/* Whether a BLAS serves dtype; the first call loads it. PYDEVTENSOR_BLAS: auto, own
 * (none) or the path of a library. */
bool dt_blas_has(dt_dtype dtype);

/* Around calls of the library, in the thread that makes them: they use `most` threads at
 * most, 1 or more, and not more than the library would without this. The end takes what
 * the beginning returned; it does nothing for DT_BLAS_UNCHANGED. (blas_threads.c) */
#define DT_BLAS_UNCHANGED (-1)
int dt_blas_begin(int most);
void dt_blas_end(int before);

/* The library's LAPACK routine of that name ("dgetrf"), called as Fortran does, and
 * whether its integers are of 64 bits; NULL where it has none. */
void *dt_lapack_find(const char *name, bool *out_wide);

/* The library's path and its description of itself; "" if there is none. Borrowed. */
const char *dt_blas_path(void);
const char *dt_blas_config(void);
const char *dt_blas_core(void);

/* For blas.c and blas_threads.c. The library's C function: its name is decorated as that
 * of cblas_sgemm is, or not at all. NULL where there is none. */
void *dt_blas_symbol(const char *name);
/* Sets a function pointer; ISO C has no cast to one. */
#define DT_BLAS_FUNCTION(target, name)                                                 \
    do {                                                                               \
        void *address_ = dt_blas_symbol(name);                                         \
        memcpy(&(target), &address_, sizeof(target));                                  \
    } while (0)
/* alone: nobody else uses the library. */
void dt_blas_find_threads(bool alone);

#ifdef __cplusplus
}
#endif

#endif
