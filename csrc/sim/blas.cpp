/* Simulated cuBLAS: each function queues the CPU's matrix product on the stream. */
#include "cuda/runtime/cublas.h"

#include "device/backend.h"
#include "queue.h"

struct cublasContext {
    cudaStream_t stream;
    int device;
};

static int (*cpu_gemm)(dt_stream stream, const dt_gemm *gemm);

void sim_cublas_set_gemm(int (*gemm)(dt_stream stream, const dt_gemm *gemm))
{
    cpu_gemm = gemm;
}

static int create(dt_cublas_handle *handle)
{
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess)
        return 1;
    *handle = new cublasContext{nullptr, device};
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
template <typename T, typename Scale>
static int gemm(const char *name, dt_dtype dtype, dt_cublas_handle handle, int op_a,
                int op_b, int m, int n, int k, const Scale *alpha, const T *a, int lda,
                long long stride_a, const T *b, int ldb, long long stride_b,
                const Scale *beta, T *c, int ldc, long long stride_c, int batch)
{
    dt_gemm g = {};
    bool ta = op_a == DT_CUBLAS_OP_T, tb = op_b == DT_CUBLAS_OP_T;
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (ta ? k : m) ||
        ldb < (tb ? n : k) || ldc < m)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    if (!m || !n || !batch)
        return DT_CUBLAS_SUCCESS;
    g.dtype = dtype;
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
    g.alpha = (double)*alpha;
    g.beta = (double)*beta;
    size_t a_bytes = reach(ta ? k : m, ta ? m : k, lda, stride_a, batch, sizeof(T));
    size_t b_bytes = reach(tb ? n : k, tb ? k : n, ldb, stride_b, batch, sizeof(T));
    size_t c_bytes = reach(m, n, ldc, stride_c, batch, sizeof(T));
    cudaError_t error = sim::enqueue(
        handle->stream, name,
        {{k ? b : nullptr, b_bytes}, {k ? a : nullptr, a_bytes}, {c, c_bytes}},
        [g](void *const *seen) {
            dt_gemm call = g;
            call.a = seen[0];
            call.b = seen[1];
            call.c = seen[2];
            dt_stream host = {0, nullptr};
            cpu_gemm(host, &call);
        });
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

static int sgemm DT_CUBLAS_GEMM(float)
{
    return gemm("cublasSgemm", DT_FLOAT32, handle, op_a, op_b, m, n, k, alpha, a, lda,
                stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}

static int dgemm DT_CUBLAS_GEMM(double)
{
    return gemm("cublasDgemm", DT_FLOAT64, handle, op_a, op_b, m, n, k, alpha, a, lda,
                stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}

static int gemm_ex DT_CUBLAS_GEMM_EX
{
    bool half = a_type == DT_CUBLAS_16F;
    if ((!half && a_type != DT_CUBLAS_16BF) || b_type != a_type || c_type != a_type ||
        compute != DT_CUBLAS_COMPUTE_32F || algorithm != DT_CUBLAS_GEMM_DEFAULT)
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    return gemm("cublasGemmEx", half ? DT_FLOAT16 : DT_BFLOAT16, handle, op_a, op_b, m,
                n, k, (const float *)alpha, (const uint16_t *)a, lda, stride_a,
                (const uint16_t *)b, ldb, stride_b, (const float *)beta, (uint16_t *)c,
                ldc, stride_c, batch);
}

extern const dt_cublas sim_cublas = {create, destroy, get_version, set_stream,
                                     sgemm,  dgemm,   gemm_ex};
