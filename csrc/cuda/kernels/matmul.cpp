#include "cuda/runtime/backend.h"

#include <limits.h>

#include "cuda/runtime/cublas.h"

/* A row-major matrix is a column-major one transposed, so C' = B' A' is computed, and
 * an operand that is row-major goes in as it is. */
static int op_of(int64_t column_stride)
{
    return column_stride == 1 ? DT_CUBLAS_OP_N : DT_CUBLAS_OP_T;
}

/* Of a single row or column any stride is right; cuBLAS wants one of at least a line. */
static int leading(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    int64_t least = column == 1 ? columns : rows;
    int64_t ld = column == 1 ? row : column;
    return (int)(ld > least ? ld : least > 1 ? least : 1);
}

/* Sums of 16-bit elements are in float32. */
static int multiply(const dt_cublas *cublas, dt_cublas_handle handle, const dt_gemm *g)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    const bool wide = g->dtype == DT_FLOAT64;
    int type = g->dtype == DT_FLOAT16    ? DT_CUBLAS_16F
               : g->dtype == DT_BFLOAT16 ? DT_CUBLAS_16BF
               : wide                    ? DT_CUBLAS_64F
                                         : DT_CUBLAS_32F;
    int compute = wide                                ? DT_CUBLAS_COMPUTE_64F
                  : g->tf32 && g->dtype == DT_FLOAT32 ? DT_CUBLAS_COMPUTE_32F_FAST_TF32
                                                      : DT_CUBLAS_COMPUTE_32F;
    const void *one = wide ? (const void *)&g->alpha : &alpha;
    const void *other = wide ? (const void *)&g->beta : &beta;
    return cublas->gemm(handle, op_of(g->b_col), op_of(g->a_col), (int)g->n, (int)g->m,
                        (int)g->k, one, g->b, type,
                        leading(g->k, g->n, g->b_row, g->b_col), g->b_batch, g->a, type,
                        leading(g->m, g->k, g->a_row, g->a_col), g->a_batch, other,
                        g->c, type, leading(g->m, g->n, g->c_row, 1), g->c_batch,
                        (int)g->batch, compute, DT_CUBLAS_GEMM_DEFAULT);
}

static bool fits(const dt_gemm *g)
{
    const int64_t sizes[] = {g->m,     g->n,     g->k,     g->batch, g->a_row,
                             g->a_col, g->b_row, g->b_col, g->c_row};
    for (int64_t size : sizes)
        if (size > INT_MAX)
            return false;
    return true;
}

int dt_cuda_gemm(dt_stream stream, const dt_gemm *g)
{
    if (!dt_dtype_is_float(g->dtype))
        return matmul_integers(stream, g);
    if (!fits(g))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "a matrix is too large for cuBLAS, which takes sizes up to %d; multiply it "
            "in parts",
            INT_MAX);
    if (!g->k && g->beta == 0) {
        /* Rows may lie in a wider matrix, of which nothing else is touched. */
        int64_t size = (int64_t)dt_dtype_size(g->dtype);
        dt_plan zeros = {};
        zeros.ndim = 3;
        zeros.noperands = 2;
        zeros.numel = g->batch * g->m * g->n;
        const int64_t shape[] = {g->batch, g->m, g->n};
        const int64_t strides[] = {g->c_batch * size, g->c_row * size, size};
        for (int d = 0; d < 3; d++) {
            zeros.shape[d] = shape[d];
            zeros.operands[0].strides[d] = strides[d];
        }
        zeros.operands[0].data = g->c;
        zeros.operands[0].dtype = zeros.operands[1].dtype = g->dtype;
        zeros.operands[1].scalar = true;
        return dt_cuda_fill(stream, &zeros);
    }
    const dt_cublas *cublas = cublas_get();
    if (!cublas)
        return -1;
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    CublasHandle blas(cublas, stream);
    if (!blas.handle)
        return -1;
    int status = multiply(cublas, blas.handle, g);
    return status ? library_fail(&cublas_library, status, "multiplying matrices") : 0;
}
