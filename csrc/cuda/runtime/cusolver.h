/* The part of cuSOLVER that is used, declared as in cublas.h; cusolver_check.cpp compares
 * it with NVIDIA's header. */
#ifndef DT_CUDA_RUNTIME_CUSOLVER_H
#define DT_CUDA_RUNTIME_CUSOLVER_H

#include "cuda/runtime/cublas.h"

typedef struct cusolverDnContext *dt_cusolver_handle;
typedef struct cusolverDnParams *dt_cusolver_params;
typedef struct syevjInfo *dt_cusolver_syevj;
typedef struct gesvdjInfo *dt_cusolver_gesvdj;
enum {
    DT_CUSOLVER_SUCCESS = 0,
    DT_CUSOLVER_NOT_INITIALIZED = 1,
    DT_CUSOLVER_ALLOC_FAILED = 2,
    DT_CUSOLVER_INVALID_VALUE = 3,
    DT_CUSOLVER_EXECUTION_FAILED = 6
};
enum { DT_CUSOLVER_NO_VECTORS = 0, DT_CUSOLVER_VECTORS = 1 };

/* A routine is called with a workspace, whose elements its SIZE says; that of Xgeev is of
 * bytes, on the device and on the host. */
#define DT_CUSOLVER_GETRF_SIZE                                                         \
    (dt_cusolver_handle handle, int m, int n, void *a, int lda, int *size)
#define DT_CUSOLVER_GETRF                                                              \
    (dt_cusolver_handle handle, int m, int n, void *a, int lda, void *work,            \
     int *pivots, int *info)
#define DT_CUSOLVER_GETRS                                                              \
    (dt_cusolver_handle handle, int trans, int n, int k, const void *a, int lda,       \
     const int *pivots, void *b, int ldb, int *info)
#define DT_CUSOLVER_POTRF_SIZE                                                         \
    (dt_cusolver_handle handle, int uplo, int n, void *a, int lda, int *size)
#define DT_CUSOLVER_POTRF                                                              \
    (dt_cusolver_handle handle, int uplo, int n, void *a, int lda, void *work,         \
     int size, int *info)
#define DT_CUSOLVER_GEQRF_SIZE DT_CUSOLVER_GETRF_SIZE
#define DT_CUSOLVER_GEQRF                                                              \
    (dt_cusolver_handle handle, int m, int n, void *a, int lda, void *tau, void *work, \
     int size, int *info)
#define DT_CUSOLVER_ORGQR_SIZE                                                         \
    (dt_cusolver_handle handle, int m, int n, int k, const void *a, int lda,           \
     const void *tau, int *size)
#define DT_CUSOLVER_ORGQR                                                              \
    (dt_cusolver_handle handle, int m, int n, int k, void *a, int lda,                 \
     const void *tau, void *work, int size, int *info)
#define DT_CUSOLVER_ORMQR_SIZE                                                         \
    (dt_cusolver_handle handle, int side, int trans, int m, int n, int k,              \
     const void *a, int lda, const void *tau, const void *c, int ldc, int *size)
#define DT_CUSOLVER_ORMQR                                                              \
    (dt_cusolver_handle handle, int side, int trans, int m, int n, int k,              \
     const void *a, int lda, const void *tau, void *c, int ldc, void *work, int size,  \
     int *info)
#define DT_CUSOLVER_SYEVD_SIZE                                                         \
    (dt_cusolver_handle handle, int job, int uplo, int n, const void *a, int lda,      \
     const void *w, int *size)
#define DT_CUSOLVER_SYEVD                                                              \
    (dt_cusolver_handle handle, int job, int uplo, int n, void *a, int lda, void *w,   \
     void *work, int size, int *info)
#define DT_CUSOLVER_GESVD_SIZE (dt_cusolver_handle handle, int m, int n, int *size)
#define DT_CUSOLVER_GESVD                                                              \
    (dt_cusolver_handle handle, signed char job_u, signed char job_vt, int m, int n,   \
     void *a, int lda, void *s, void *u, int ldu, void *vt, int ldvt, void *work,      \
     int size, void *rest, int *info)
#define DT_CUSOLVER_GESVDJ_SIZE                                                        \
    (dt_cusolver_handle handle, int job, int econ, int m, int n, const void *a,        \
     int lda, const void *s, const void *u, int ldu, const void *v, int ldv,           \
     int *size, dt_cusolver_gesvdj params)
#define DT_CUSOLVER_GESVDJ                                                             \
    (dt_cusolver_handle handle, int job, int econ, int m, int n, void *a, int lda,     \
     void *s, void *u, int ldu, void *v, int ldv, void *work, int size, int *info,     \
     dt_cusolver_gesvdj params)
#define DT_CUSOLVER_GEEV_SIZE                                                          \
    (dt_cusolver_handle handle, dt_cusolver_params params, int job_l, int job_r,       \
     int64_t n, int a_type, const void *a, int64_t lda, int w_type, const void *w,     \
     int l_type, const void *l, int64_t ldl, int r_type, const void *r, int64_t ldr,   \
     int compute, size_t *device_bytes, size_t *host_bytes)
#define DT_CUSOLVER_GEEV                                                               \
    (dt_cusolver_handle handle, dt_cusolver_params params, int job_l, int job_r,       \
     int64_t n, int a_type, void *a, int64_t lda, int w_type, void *w, int l_type,     \
     void *l, int64_t ldl, int r_type, void *r, int64_t ldr, int compute,              \
     void *device_work, size_t device_bytes, void *host_work, size_t host_bytes,       \
     int *info)

/* For many matrices: a table of pointers in device memory, or one after another. */
#define DT_CUSOLVER_POTRF_BATCHED                                                      \
    (dt_cusolver_handle handle, int uplo, int n, void **a, int lda, int *infos,        \
     int batch)
#define DT_CUSOLVER_SYEVJ_SIZE                                                         \
    (dt_cusolver_handle handle, int job, int uplo, int n, const void *a, int lda,      \
     const void *w, int *size, dt_cusolver_syevj params, int batch)
#define DT_CUSOLVER_SYEVJ                                                              \
    (dt_cusolver_handle handle, int job, int uplo, int n, void *a, int lda, void *w,   \
     void *work, int size, int *infos, dt_cusolver_syevj params, int batch)
#define DT_CUSOLVER_GESVDJ_BATCHED_SIZE                                                \
    (dt_cusolver_handle handle, int job, int m, int n, const void *a, int lda,         \
     const void *s, const void *u, int ldu, const void *v, int ldv, int *size,         \
     dt_cusolver_gesvdj params, int batch)
#define DT_CUSOLVER_GESVDJ_BATCHED                                                     \
    (dt_cusolver_handle handle, int job, int m, int n, void *a, int lda, void *s,      \
     void *u, int ldu, void *v, int ldv, void *work, int size, int *infos,             \
     dt_cusolver_gesvdj params, int batch)

/* As in cublas.h; OPTIONAL are functions that old versions lack, then NULL. */
#define DT_CUSOLVER_FUNCTIONS(FUNCTION, TYPED, OPTIONAL)                               \
    FUNCTION(create, cusolverDnCreate, (dt_cusolver_handle * handle))                  \
    FUNCTION(destroy, cusolverDnDestroy, (dt_cusolver_handle handle))                  \
    FUNCTION(get_version, cusolverGetVersion, (int *version))                          \
    FUNCTION(set_stream, cusolverDnSetStream,                                          \
             (dt_cusolver_handle handle, cudaStream_t stream))                         \
    FUNCTION(create_params, cusolverDnCreateParams, (dt_cusolver_params * params))     \
    FUNCTION(destroy_params, cusolverDnDestroyParams, (dt_cusolver_params params))     \
    FUNCTION(create_syevj, cusolverDnCreateSyevjInfo, (dt_cusolver_syevj * params))    \
    FUNCTION(destroy_syevj, cusolverDnDestroySyevjInfo, (dt_cusolver_syevj params))    \
    FUNCTION(create_gesvdj, cusolverDnCreateGesvdjInfo, (dt_cusolver_gesvdj * params)) \
    FUNCTION(destroy_gesvdj, cusolverDnDestroyGesvdjInfo, (dt_cusolver_gesvdj params)) \
    TYPED(getrf_size, cusolverDnSgetrf_bufferSize, cusolverDnDgetrf_bufferSize,        \
          cusolverDnCgetrf_bufferSize, cusolverDnZgetrf_bufferSize,                    \
          DT_CUSOLVER_GETRF_SIZE)                                                      \
    TYPED(getrf, cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnCgetrf,                 \
          cusolverDnZgetrf, DT_CUSOLVER_GETRF)                                         \
    TYPED(getrs, cusolverDnSgetrs, cusolverDnDgetrs, cusolverDnCgetrs,                 \
          cusolverDnZgetrs, DT_CUSOLVER_GETRS)                                         \
    TYPED(potrf_size, cusolverDnSpotrf_bufferSize, cusolverDnDpotrf_bufferSize,        \
          cusolverDnCpotrf_bufferSize, cusolverDnZpotrf_bufferSize,                    \
          DT_CUSOLVER_POTRF_SIZE)                                                      \
    TYPED(potrf, cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf,                 \
          cusolverDnZpotrf, DT_CUSOLVER_POTRF)                                         \
    TYPED(potrf_batched, cusolverDnSpotrfBatched, cusolverDnDpotrfBatched,             \
          cusolverDnCpotrfBatched, cusolverDnZpotrfBatched, DT_CUSOLVER_POTRF_BATCHED) \
    TYPED(geqrf_size, cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize,        \
          cusolverDnCgeqrf_bufferSize, cusolverDnZgeqrf_bufferSize,                    \
          DT_CUSOLVER_GEQRF_SIZE)                                                      \
    TYPED(geqrf, cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf,                 \
          cusolverDnZgeqrf, DT_CUSOLVER_GEQRF)                                         \
    TYPED(orgqr_size, cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize,        \
          cusolverDnCungqr_bufferSize, cusolverDnZungqr_bufferSize,                    \
          DT_CUSOLVER_ORGQR_SIZE)                                                      \
    TYPED(orgqr, cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr,                 \
          cusolverDnZungqr, DT_CUSOLVER_ORGQR)                                         \
    TYPED(ormqr_size, cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize,        \
          cusolverDnCunmqr_bufferSize, cusolverDnZunmqr_bufferSize,                    \
          DT_CUSOLVER_ORMQR_SIZE)                                                      \
    TYPED(ormqr, cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr,                 \
          cusolverDnZunmqr, DT_CUSOLVER_ORMQR)                                         \
    TYPED(syevd_size, cusolverDnSsyevd_bufferSize, cusolverDnDsyevd_bufferSize,        \
          cusolverDnCheevd_bufferSize, cusolverDnZheevd_bufferSize,                    \
          DT_CUSOLVER_SYEVD_SIZE)                                                      \
    TYPED(syevd, cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd,                 \
          cusolverDnZheevd, DT_CUSOLVER_SYEVD)                                         \
    TYPED(syevj_size, cusolverDnSsyevjBatched_bufferSize,                              \
          cusolverDnDsyevjBatched_bufferSize, cusolverDnCheevjBatched_bufferSize,      \
          cusolverDnZheevjBatched_bufferSize, DT_CUSOLVER_SYEVJ_SIZE)                  \
    TYPED(syevj, cusolverDnSsyevjBatched, cusolverDnDsyevjBatched,                     \
          cusolverDnCheevjBatched, cusolverDnZheevjBatched, DT_CUSOLVER_SYEVJ)         \
    TYPED(gesvd_size, cusolverDnSgesvd_bufferSize, cusolverDnDgesvd_bufferSize,        \
          cusolverDnCgesvd_bufferSize, cusolverDnZgesvd_bufferSize,                    \
          DT_CUSOLVER_GESVD_SIZE)                                                      \
    TYPED(gesvd, cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd,                 \
          cusolverDnZgesvd, DT_CUSOLVER_GESVD)                                         \
    TYPED(gesvdj_size, cusolverDnSgesvdj_bufferSize, cusolverDnDgesvdj_bufferSize,     \
          cusolverDnCgesvdj_bufferSize, cusolverDnZgesvdj_bufferSize,                  \
          DT_CUSOLVER_GESVDJ_SIZE)                                                     \
    TYPED(gesvdj, cusolverDnSgesvdj, cusolverDnDgesvdj, cusolverDnCgesvdj,             \
          cusolverDnZgesvdj, DT_CUSOLVER_GESVDJ)                                       \
    TYPED(gesvdj_batched_size, cusolverDnSgesvdjBatched_bufferSize,                    \
          cusolverDnDgesvdjBatched_bufferSize, cusolverDnCgesvdjBatched_bufferSize,    \
          cusolverDnZgesvdjBatched_bufferSize, DT_CUSOLVER_GESVDJ_BATCHED_SIZE)        \
    TYPED(gesvdj_batched, cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched,          \
          cusolverDnCgesvdjBatched, cusolverDnZgesvdjBatched,                          \
          DT_CUSOLVER_GESVDJ_BATCHED)                                                  \
    OPTIONAL(geev_size, cusolverDnXgeev_bufferSize, DT_CUSOLVER_GEEV_SIZE)             \
    OPTIONAL(geev, cusolverDnXgeev, DT_CUSOLVER_GEEV)

typedef struct dt_cusolver {
#define FUNCTION(name, symbol, parameters)  int(*name) parameters;
#define TYPED(name, s, d, c, z, parameters) int(*name[4]) parameters;
    DT_CUSOLVER_FUNCTIONS(FUNCTION, TYPED, FUNCTION)
#undef FUNCTION
#undef TYPED
} dt_cusolver;

extern dt_library cusolver_library;

/* The library's functions, borrowed, opened on first call. NULL after dt_fail, which
 * says what to install. */
const dt_cusolver *cusolver_get(void);

/* See library_handle(). */
dt_cusolver_handle cusolver_handle(const dt_cusolver *cusolver, dt_stream stream);

#endif
