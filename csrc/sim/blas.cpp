/* Simulated cuBLAS: each function queues the CPU's matrix product on the stream. */
#include "cuda/runtime/cublas.h"

#include <string.h>

#include "device/backend.h"
#include "sim/internal.h"
#include "sim/solver.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace; /* NULL: cuBLAS would allocate one */
    size_t bytes;
};

static int (*cpu_gemm)(dt_stream stream, const dt_gemm *gemm);

void sim_cublas_set_gemm(int (*gemm)(dt_stream stream, const dt_gemm *gemm))
{
    cpu_gemm = gemm;
}

static int create(dt_cublas_handle *handle)
{
    sim::Entry in(sim::Entry::kNothing);
    if (sim::failure("cublas", cudaErrorMemoryAllocation))
        return DT_CUBLAS_NOT_INITIALIZED;
    *handle = new cublasContext{nullptr, nullptr, 0};
    return DT_CUBLAS_SUCCESS;
}

static int destroy(dt_cublas_handle handle)
{
    delete handle;
    return DT_CUBLAS_SUCCESS;
}

static int get_version(dt_cublas_handle, int *version)
{
    *version = CUDART_VERSION;
    return DT_CUBLAS_SUCCESS;
}

static int set_stream(dt_cublas_handle handle, cudaStream_t stream)
{
    handle->stream = stream;
    handle->workspace = nullptr;
    return DT_CUBLAS_SUCCESS;
}

static int set_workspace(dt_cublas_handle handle, void *workspace, size_t bytes)
{
    if ((uintptr_t)workspace % 256)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    handle->workspace = workspace;
    handle->bytes = bytes;
    return DT_CUBLAS_SUCCESS;
}

/* Bytes from the first element to the end of the last, in a strided batch of column-
 * major matrices with leading dimension ld. */
static size_t reach(int rows, int columns, int ld, long long stride, int batch,
                    size_t item)
{
    if (!rows || !columns)
        return 0;
    long long last =
        (long long)(batch - 1) * stride + (long long)(columns - 1) * ld + rows;
    return (size_t)last * item;
}

/* Column-major C = op(A) op(B) is row-major C' = op(B)' op(A)'. */
static int gemm DT_CUBLAS_GEMM
{
    dt_gemm g = {};
    const bool ta = op_a == DT_CUBLAS_OP_T, tb = op_b == DT_CUBLAS_OP_T;
    const bool wide = a_type == DT_CUBLAS_64F;
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (ta ? k : m) ||
        ldb < (tb ? n : k) || ldc < m)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    switch (a_type) {
    case DT_CUBLAS_32F:
        g.dtype = DT_FLOAT32;
        break;
    case DT_CUBLAS_64F:
        g.dtype = DT_FLOAT64;
        break;
    case DT_CUBLAS_16F:
        g.dtype = DT_FLOAT16;
        break;
    default:
        g.dtype = DT_BFLOAT16;
    }
    const bool full = compute == (wide ? DT_CUBLAS_COMPUTE_64F : DT_CUBLAS_COMPUTE_32F);
    const bool tf32 =
        compute == DT_CUBLAS_COMPUTE_32F_FAST_TF32 && a_type == DT_CUBLAS_32F;
    if (b_type != a_type || c_type != a_type || algorithm != DT_CUBLAS_GEMM_DEFAULT ||
        !(full || tf32))
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    /* cuBLAS would allocate one, which the library is not to leave to it. */
    if (!handle->workspace)
        return DT_CUBLAS_ALLOC_FAILED;
    if (!m || !n || !batch)
        return DT_CUBLAS_SUCCESS;
    const size_t item = dt_dtype_size(g.dtype);
    g.batch = batch;
    g.m = n;
    g.n = m;
    g.k = k;
    g.a_batch = stride_b;
    g.a_row = tb ? 1 : ldb;
    g.a_col = tb ? ldb : 1;
    g.b_batch = stride_a;
    g.b_row = ta ? 1 : lda;
    g.b_col = ta ? lda : 1;
    g.c_batch = stride_c;
    g.c_row = ldc;
    g.alpha = wide ? *(const double *)alpha : (double)*(const float *)alpha;
    g.beta = wide ? *(const double *)beta : (double)*(const float *)beta;
    size_t a_bytes = reach(ta ? k : m, ta ? m : k, lda, stride_a, batch, item);
    size_t b_bytes = reach(tb ? n : k, tb ? k : n, ldb, stride_b, batch, item);
    size_t c_bytes = reach(m, n, ldc, stride_c, batch, item);
    const int device = sim::thread().device;
    const size_t workspace = handle->bytes;
    cudaError_t error = sim::enqueue(
        handle->stream, "cublasGemmStridedBatchedEx",
        {{k ? b : nullptr, b_bytes, false},
         {k ? a : nullptr, a_bytes, false},
         {c, c_bytes, true},
         {workspace ? handle->workspace : nullptr, workspace, true}},
        [g, device, workspace](void *const *seen) {
            dt_gemm call = g;
            call.a = seen[0];
            call.b = seen[1];
            call.c = seen[2];
            dt_stream host = {0, nullptr};
            if (workspace) /* cuBLAS may leave anything there */
                memset(seen[3], 0xff, workspace);
            sim::stand_in(device, "the CPU's product in place of cuBLAS",
                          [&] { return cpu_gemm(host, &call); });
        },
        sim::product_cost(m, n, k, batch, g.dtype, tf32));
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

template <dt_dtype D>
static int trsm DT_CUBLAS_TRSM
{
    if (side != DT_CUBLAS_LEFT || m < 0 || n < 0 || lda < (m > 1 ? m : 1) ||
        ldb < (m > 1 ? m : 1))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    const double one = D == DT_FLOAT64 ? *(const double *)alpha : *(const float *)alpha;
    if (one != 1)
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    const int flags = (uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0) |
                      (trans == DT_CUBLAS_OP_T ? DT_LAPACK_TRANSPOSED : 0) |
                      (diag == DT_CUBLAS_UNIT ? DT_LAPACK_UNIT : 0);
    cudaError_t error = sim::queue_lapack(handle->stream, "cublasXtrsm",
                                          {DT_LAPACK_trsm, D, flags, 1, m, m, n, 0, {}},
                                          {{a, m, m, lda}, {b, m, n, ldb}});
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

extern const dt_cublas sim_cublas = {create,
                                     destroy,
                                     get_version,
                                     set_stream,
                                     set_workspace,
                                     gemm,
                                     {trsm<DT_FLOAT32>, trsm<DT_FLOAT64>}};
