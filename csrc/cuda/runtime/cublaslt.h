/* The part of cuBLASLt that is used: products that add a row of biases to what they
 * write. It comes with cuBLAS and takes cuBLAS's handles; where it is not found, or
 * knows no way to compute a product, cuBLAS does. Declared here as in cublas.h. */
#ifndef DT_CUDA_RUNTIME_CUBLASLT_H
#define DT_CUDA_RUNTIME_CUBLASLT_H

#include "cuda/runtime/cublas.h"

enum { DT_CUBLASLT_NOT_SUPPORTED = 15 };
/* Attributes of a product. */
enum {
    DT_CUBLASLT_OP_A = 3,
    DT_CUBLASLT_OP_B = 4,
    DT_CUBLASLT_EPILOGUE = 7,
    DT_CUBLASLT_BIAS = 8
};
enum { DT_CUBLASLT_EPILOGUE_BIAS = 4 };
/* Limits of an algorithm. */
enum {
    DT_CUBLASLT_WORKSPACE = 1,
    DT_CUBLASLT_ALIGNMENT_A = 5,
    DT_CUBLASLT_ALIGNMENT_B = 6,
    DT_CUBLASLT_ALIGNMENT_C = 7,
    DT_CUBLASLT_ALIGNMENT_D = 8
};

typedef struct dt_cublaslt_algorithm {
    uint64_t data[8];
} dt_cublaslt_algorithm;

typedef struct dt_cublaslt_choice {
    dt_cublaslt_algorithm algorithm;
    size_t workspace; /* bytes that it needs */
    int status;
    float waves;
    int reserved[4];
} dt_cublaslt_choice;

/* Descriptions, layouts and preferences are void here. */
#define DT_CUBLASLT_MATMUL                                                             \
    (dt_cublas_handle handle, void *product, const void *alpha, const void *a,         \
     void *a_layout, const void *b, void *b_layout, const void *beta, const void *c,   \
     void *c_layout, void *d, void *d_layout, const dt_cublaslt_algorithm *algorithm,  \
     void *workspace, size_t workspace_bytes, cudaStream_t stream)
#define DT_CUBLASLT_CHOOSE                                                             \
    (dt_cublas_handle handle, void *product, void *a_layout, void *b_layout,           \
     void *c_layout, void *d_layout, void *preference, int wanted,                     \
     dt_cublaslt_choice choices[], int *found)
#define DT_CUBLASLT_FUNCTIONS(FUNCTION)                                                \
    FUNCTION(product_create, cublasLtMatmulDescCreate,                                 \
             (void **product, int compute, int scale_type))                            \
    FUNCTION(product_destroy, cublasLtMatmulDescDestroy, (void *product))              \
    FUNCTION(product_set, cublasLtMatmulDescSetAttribute,                              \
             (void *product, int attribute, const void *value, size_t bytes))          \
    FUNCTION(layout_create, cublasLtMatrixLayoutCreate,                                \
             (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))   \
    FUNCTION(layout_destroy, cublasLtMatrixLayoutDestroy, (void *layout))              \
    FUNCTION(preference_create, cublasLtMatmulPreferenceCreate, (void **preference))   \
    FUNCTION(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *preference))  \
    FUNCTION(preference_set, cublasLtMatmulPreferenceSetAttribute,                     \
             (void *preference, int attribute, const void *value, size_t bytes))       \
    FUNCTION(choose, cublasLtMatmulAlgoGetHeuristic, DT_CUBLASLT_CHOOSE)               \
    FUNCTION(matmul, cublasLtMatmul, DT_CUBLASLT_MATMUL)

typedef struct dt_cublaslt {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_CUBLASLT_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_cublaslt;

/* C = alpha op(A) op(B), with bias[i] added to row i of the column-major C. 1 when it
 * is queued, 0 if cuBLASLt cannot, -1 after dt_fail. DT_LOCK_LIBRARY_CALLS is held. */
int cublaslt_add_row(const CublasHandle &blas, dt_stream stream,
                     const CublasProduct &product, double alpha, const void *bias);

#endif
