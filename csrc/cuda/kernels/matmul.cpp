#include "cuda/runtime/backend.h"

#include <limits.h>

#include "cuda/runtime/cublas.h"
#include "cuda/runtime/cublaslt.h"

/* A row-major matrix is a column-major one transposed, so C' = B' A' is computed, and
 * an operand that is row-major goes in as it is. */
static int op_of(int64_t column_stride)
{
    return column_stride == 1 ? DT_CUBLAS_OP_N : DT_CUBLAS_OP_T;
}

/* A single row or column has no stride; cuBLAS wants one of at least a line. */
static int leading(int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    int64_t least = column == 1 ? columns : rows;
    int64_t ld = column == 1 ? row : column;
    return (int)(ld > least ? ld : least > 1 ? least : 1);
}

static int cublas_type(dt_dtype dtype)
{
    return dtype == DT_FLOAT16    ? DT_CUBLAS_16F
           : dtype == DT_BFLOAT16 ? DT_CUBLAS_16BF
           : dtype == DT_FLOAT64  ? DT_CUBLAS_64F
                                  : DT_CUBLAS_32F;
}

/* The product as cuBLAS sees it. Sums of 16-bit elements are in float32. */
static CublasProduct product_of(const dt_gemm *g, dt_dtype c_type)
{
    CublasProduct p = {};
    p.op_a = op_of(g->b_col);
    p.op_b = op_of(g->a_col);
    p.m = (int)g->n;
    p.n = (int)g->m;
    p.k = (int)g->k;
    p.a = g->b;
    p.lda = leading(g->k, g->n, g->b_row, g->b_col);
    p.b = g->a;
    p.ldb = leading(g->m, g->k, g->a_row, g->a_col);
    p.c = g->c;
    p.ldc = leading(g->m, g->n, g->c_row, 1);
    p.type = cublas_type(g->dtype);
    p.c_type = cublas_type(c_type);
    p.compute = g->dtype == DT_FLOAT64              ? DT_CUBLAS_COMPUTE_64F
                : g->tf32 && g->dtype == DT_FLOAT32 ? DT_CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : DT_CUBLAS_COMPUTE_32F;
    return p;
}

static int multiply_batch(const dt_cublas *cublas, dt_cublas_handle handle,
                          const CublasProduct &p, const dt_gemm *g)
{
    const CublasScalar alpha(p, g->alpha), beta(p, g->beta);
    int status = cublas->gemm(handle, p.op_a, p.op_b, p.m, p.n, p.k, alpha.at, p.a,
                              p.type, p.lda, g->b_batch, p.b, p.type, p.ldb, g->a_batch,
                              beta.at, p.c, p.c_type, p.ldc, g->c_batch, (int)g->batch,
                              p.compute, DT_CUBLAS_GEMM_DEFAULT);
    return status ? library_fail(&cublas_library, status, "multiplying matrices") : 0;
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

/* A plan over the elements of c, whose rows may be part of a wider matrix: nothing else
 * of that is touched. The other operand is a 0. */
static dt_plan plan_of(const dt_gemm *g)
{
    int64_t size = (int64_t)dt_dtype_size(g->dtype);
    dt_plan plan = {};
    plan.ndim = 3;
    plan.noperands = 2;
    plan.numel = g->batch * g->m * g->n;
    const int64_t shape[] = {g->batch, g->m, g->n};
    const int64_t strides[] = {g->c_batch * size, g->c_row * size, size};
    for (int d = 0; d < 3; d++) {
        plan.shape[d] = shape[d];
        plan.operands[0].strides[d] = strides[d];
    }
    plan.operands[0].data = g->c;
    plan.operands[0].dtype = plan.operands[1].dtype = g->dtype;
    plan.operands[1].scalar = true;
    return plan;
}

/* Copies g->row into each row of c. */
static int put_row(dt_stream stream, const dt_gemm *g)
{
    dt_plan rows = plan_of(g);
    rows.operands[1].scalar = false;
    rows.operands[1].data = (void *)g->row;
    rows.operands[1].strides[2] = rows.operands[0].strides[2];
    return dt_cuda_copy(stream, &rows);
}

int dt_cuda_gemm(dt_stream stream, const dt_gemm *g)
{
    return cuda_gemm_into(stream, g, g->dtype);
}

int cuda_gemm_into(dt_stream stream, const dt_gemm *g, dt_dtype c_type)
{
    if (!dt_dtype_is_float(g->dtype))
        return g->row && put_row(stream, g) ? -1 : matmul_integers(stream, g);
    if (!fits(g))
        return dt_fail(
            DT_ERROR_RUNTIME,
            "a matrix is too large for cuBLAS, which takes sizes up to %d; multiply it "
            "in parts",
            INT_MAX);
    if (!g->k && g->beta == 0) {
        dt_gemm c = *g;
        c.dtype = c_type;
        const dt_plan zeros = plan_of(&c);
        return dt_cuda_fill(stream, &zeros);
    }
    const dt_cublas *cublas = cublas_get();
    if (!cublas)
        return -1;
    const CublasProduct p = product_of(g, c_type);
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    CublasHandle blas(cublas, stream);
    if (!blas.handle)
        return -1;
    if (g->row) {
        int added = cublaslt_add_row(blas, stream, p, g->alpha, g->row);
        if (added)
            return added < 0 ? -1 : 0;
        if (put_row(stream, g))
            return -1;
    }
    return multiply_batch(cublas, blas.handle, p, g);
}
