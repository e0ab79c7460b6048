/* The part of cuBLAS that is used, declared here because many installations of nvcc
 * lack its headers; cublas_check.cpp compares it with NVIDIA's where they exist. The
 * library is opened on first use. */
#ifndef DT_CUDA_RUNTIME_CUBLAS_H
#define DT_CUDA_RUNTIME_CUBLAS_H

#include <cuda_runtime.h>

#include "cuda/runtime/library.h"
#include "device/plan.h"

typedef struct cublasContext *dt_cublas_handle;
enum {
    DT_CUBLAS_SUCCESS = 0,
    DT_CUBLAS_NOT_INITIALIZED = 1, /* of create: mostly, no memory */
    DT_CUBLAS_ALLOC_FAILED = 3
};
enum { DT_CUBLAS_OP_N = 0, DT_CUBLAS_OP_T = 1, DT_CUBLAS_OP_C = 2 };
enum { DT_CUBLAS_LOWER = 0, DT_CUBLAS_UPPER = 1 };
enum { DT_CUBLAS_LEFT = 0, DT_CUBLAS_RIGHT = 1 };
enum { DT_CUBLAS_NON_UNIT = 0, DT_CUBLAS_UNIT = 1 };
/* Element types, compute types and algorithms. */
enum {
    DT_CUBLAS_32F = 0,
    DT_CUBLAS_64F = 1,
    DT_CUBLAS_16F = 2,
    DT_CUBLAS_32C = 4,
    DT_CUBLAS_64C = 5,
    DT_CUBLAS_16BF = 14
};
enum {
    DT_CUBLAS_COMPUTE_32F = 68,
    DT_CUBLAS_COMPUTE_64F = 70,
    DT_CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum { DT_CUBLAS_GEMM_DEFAULT = -1 };

/* FUNCTION(name, symbol, parameters); TYPED has the symbols for float32 and float64, whose
 * elements are void here. */
#define DT_CUBLAS_GEMM                                                                 \
    (dt_cublas_handle handle, int op_a, int op_b, int m, int n, int k,                 \
     const void *alpha, const void *a, int a_type, int lda, long long stride_a,        \
     const void *b, int b_type, int ldb, long long stride_b, const void *beta,         \
     void *c, int c_type, int ldc, long long stride_c, int batch, int compute,         \
     int algorithm)
#define DT_CUBLAS_TRSM                                                                 \
    (dt_cublas_handle handle, int side, int uplo, int trans, int diag, int m, int n,   \
     const void *alpha, const void *a, int lda, void *b, int ldb)
/* For many matrices: tables of pointers in device memory, infos of matrices there too; an
 * info of the arguments on the host. */
#define DT_CUBLAS_GETRF_BATCHED                                                        \
    (dt_cublas_handle handle, int n, void *const *a, int lda, int *pivots, int *infos, \
     int batch)
#define DT_CUBLAS_GETRS_BATCHED                                                        \
    (dt_cublas_handle handle, int trans, int n, int k, const void *const *a, int lda,  \
     const int *pivots, void *const *b, int ldb, int *info, int batch)
#define DT_CUBLAS_TRSM_BATCHED                                                         \
    (dt_cublas_handle handle, int side, int uplo, int trans, int diag, int m, int n,   \
     const void *alpha, const void *const *a, int lda, void *const *b, int ldb,        \
     int batch)
#define DT_CUBLAS_GEQRF_BATCHED                                                        \
    (dt_cublas_handle handle, int m, int n, void *const *a, int lda,                   \
     void *const *taus, int *info, int batch)
#define DT_CUBLAS_FUNCTIONS(FUNCTION, TYPED)                                           \
    FUNCTION(create, cublasCreate_v2, (dt_cublas_handle * handle))                     \
    FUNCTION(destroy, cublasDestroy_v2, (dt_cublas_handle handle))                     \
    FUNCTION(get_version, cublasGetVersion_v2,                                         \
             (dt_cublas_handle handle, int *version))                                  \
    FUNCTION(set_stream, cublasSetStream_v2,                                           \
             (dt_cublas_handle handle, cudaStream_t stream))                           \
    FUNCTION(set_workspace, cublasSetWorkspace_v2,                                     \
             (dt_cublas_handle handle, void *workspace, size_t bytes))                 \
    FUNCTION(gemm, cublasGemmStridedBatchedEx, DT_CUBLAS_GEMM)                         \
    TYPED(trsm, cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2, cublasZtrsm_v2,        \
          DT_CUBLAS_TRSM)                                                              \
    TYPED(getrf_batched, cublasSgetrfBatched, cublasDgetrfBatched,                     \
          cublasCgetrfBatched, cublasZgetrfBatched, DT_CUBLAS_GETRF_BATCHED)           \
    TYPED(getrs_batched, cublasSgetrsBatched, cublasDgetrsBatched,                     \
          cublasCgetrsBatched, cublasZgetrsBatched, DT_CUBLAS_GETRS_BATCHED)           \
    TYPED(trsm_batched, cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched,    \
          cublasZtrsmBatched, DT_CUBLAS_TRSM_BATCHED)                                  \
    TYPED(geqrf_batched, cublasSgeqrfBatched, cublasDgeqrfBatched,                     \
          cublasCgeqrfBatched, cublasZgeqrfBatched, DT_CUBLAS_GEQRF_BATCHED)

typedef struct dt_cublas {
#define FUNCTION(name, symbol, parameters)  int(*name) parameters;
#define TYPED(name, s, d, c, z, parameters) int(*name[4]) parameters;
    DT_CUBLAS_FUNCTIONS(FUNCTION, TYPED)
#undef FUNCTION
#undef TYPED
} dt_cublas;

extern dt_library cublas_library;

/* The library's functions, borrowed, opened on first call. NULL after dt_fail, which
 * says what to install. */
const dt_cublas *cublas_get(void);

/* Starts cuBLAS for the stream's device, if it is installed: a capture cannot. */
void cublas_prepare(dt_stream stream);

/* The library's handle for the stream (see library_handle()), and a workspace for its
 * calls while this lives. The memory is the allocator's: so the library allocates none, it is
 * counted, and a graph that captures the calls has it in its pool. */
class CublasHandle {
  public:
    CublasHandle(const dt_cublas *cublas, dt_stream stream);
    dt_cublas_handle handle; /* NULL after dt_fail */
    size_t bytes;
    Scratch workspace;
};

/* C = op(A) op(B) of column-major matrices, whose leading dimensions are ld. */
struct CublasProduct {
    int op_a, op_b, m, n, k;
    int lda, ldb, ldc;
    int type, c_type, compute; /* of elements of A and B, of C; of sums */
    const void *a, *b;
    void *c;
};

/* dt_cuda_gemm() with a c of this type: the product's, or float32 where that has 16 bits. */
int cuda_gemm_into(dt_stream stream, const dt_gemm *gemm, dt_dtype c_type);

struct CublasScalar : LibraryScalar {
    CublasScalar(const CublasProduct &p, double number)
        : LibraryScalar(p.compute == DT_CUBLAS_COMPUTE_64F, number)
    {
    }
};

#endif
