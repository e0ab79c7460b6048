/* Simulated cuBLAS: each function queues the CPU's matrix product on the stream. */
#include "cuda/runtime/cublaslt.h"

#include <string.h>

#include <vector>

#include "base/half.h"
#include "sim/core.h"
#include "sim/internal.h"
#include "sim/solver.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace; /* NULL: cuBLAS would allocate one */
    size_t bytes;
};

static int create(dt_cublas_handle *handle)
{
    sim::Entry in(sim::Entry::kNothing);
    if (sim::failure("cublas", cudaErrorMemoryAllocation) || sim::refuse_library())
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

/* Floats of 16 bits as float32; none where there are no elements. */
static std::vector<float> widened(const void *data, size_t bytes, dt_dtype dtype)
{
    const uint16_t *from = (const uint16_t *)data;
    std::vector<float> wide(data ? bytes / sizeof *from : 0);
    for (size_t i = 0; i < wide.size(); i++)
        wide[i] = dtype == DT_FLOAT16 ? dt_float16_widen(from[i])
                                      : dt_bfloat16_widen(from[i]);
    return wide;
}

/* Queues a product, of one function or the other. bias: NULL, or a vector that is added
 * to each column of C, whose beta is 0. */
static int queue(const char *name, cudaStream_t stream, void *workspace,
                 size_t workspace_bytes, const CublasProduct &p,
                 const long long strides[3], int batch, double alpha, double beta,
                 const void *bias)
{
    dt_gemm g = {};
    const bool ta = p.op_a == DT_CUBLAS_OP_T, tb = p.op_b == DT_CUBLAS_OP_T;
    const bool wide = p.type == DT_CUBLAS_64F;
    if (p.m < 0 || p.n < 0 || p.k < 0 || batch < 0 || p.lda < (ta ? p.k : p.m) ||
        p.ldb < (tb ? p.n : p.k) || p.ldc < p.m)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    switch (p.type) {
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
    const bool tf32 =
        p.compute == DT_CUBLAS_COMPUTE_32F_FAST_TF32 && p.type == DT_CUBLAS_32F;
    if (p.compute != (wide ? DT_CUBLAS_COMPUTE_64F : DT_CUBLAS_COMPUTE_32F) && !tf32)
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    const bool widens = p.c_type != p.type;
    if (widens && (p.c_type != DT_CUBLAS_32F || !dt_dtype_is_half(g.dtype)))
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    /* cuBLAS would allocate one, which the library is not to leave to it. */
    if (!workspace)
        return DT_CUBLAS_ALLOC_FAILED;
    if (!p.m || !p.n || !batch)
        return DT_CUBLAS_SUCCESS;
    /* Column-major C = op(A) op(B) is row-major C' = op(B)' op(A)'. */
    const size_t item = dt_dtype_size(g.dtype);
    g.batch = batch;
    g.m = p.n;
    g.n = p.m;
    g.k = p.k;
    g.a_batch = strides[1];
    g.a_row = tb ? 1 : p.ldb;
    g.a_col = tb ? p.ldb : 1;
    g.b_batch = strides[0];
    g.b_row = ta ? 1 : p.lda;
    g.b_col = ta ? p.lda : 1;
    g.c_batch = strides[2];
    g.c_row = p.ldc;
    g.alpha = alpha;
    g.beta = bias ? 1 : beta;
    size_t a_bytes =
        reach(ta ? p.k : p.m, ta ? p.m : p.k, p.lda, strides[0], batch, item);
    size_t b_bytes =
        reach(tb ? p.n : p.k, tb ? p.k : p.n, p.ldb, strides[1], batch, item);
    size_t c_bytes =
        reach(p.m, p.n, p.ldc, strides[2], batch, widens ? sizeof(float) : item);
    const int device = sim::thread().device;
    cudaError_t error = sim::enqueue(
        stream, name,
        {{p.k ? p.b : nullptr, b_bytes, false},
         {p.k ? p.a : nullptr, a_bytes, false},
         {p.c, c_bytes, true},
         {workspace_bytes ? workspace : nullptr, workspace_bytes, true},
         {bias, (size_t)p.m * item, false}},
        [g, device, workspace_bytes, widens, a_bytes, b_bytes](void *const *seen) {
            dt_gemm call = g;
            std::vector<float> wide_a, wide_b;
            call.a = seen[0];
            call.b = seen[1];
            call.c = seen[2];
            if (widens) {
                wide_a = widened(seen[0], b_bytes, g.dtype);
                wide_b = widened(seen[1], a_bytes, g.dtype);
                call.dtype = DT_FLOAT32;
                call.a = wide_a.data();
                call.b = wide_b.data();
            }
            call.row = seen[4];
            dt_stream host = {0, nullptr};
            if (workspace_bytes) /* the library may leave anything there */
                memset(seen[3], 0xff, workspace_bytes);
            sim::stand_in(device, "the CPU's product in place of cuBLAS",
                          [&] { return sim::core.cpu_gemm(host, &call); });
        },
        sim::product_cost(p.m, p.n, p.k, batch, g.dtype, tf32));
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

static double number_at(const void *factor, int compute)
{
    return compute == DT_CUBLAS_COMPUTE_64F ? *(const double *)factor
                                            : (double)*(const float *)factor;
}

static int gemm DT_CUBLAS_GEMM
{
    if (b_type != a_type || algorithm != DT_CUBLAS_GEMM_DEFAULT)
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    const CublasProduct p = {op_a, op_b,   m,      n,       k, lda, ldb,
                             ldc,  a_type, c_type, compute, a, b,   c};
    const long long strides[] = {stride_a, stride_b, stride_c};
    return queue("cublasGemmStridedBatchedEx", handle->stream, handle->workspace,
                 handle->bytes, p, strides, batch, number_at(alpha, compute),
                 number_at(beta, compute), nullptr);
}

template <dt_dtype D>
static bool is_one(const void *number)
{
    return dt_element_to_scalar(D, number).f == 1 && dt_element_imag(D, number) == 0;
}

template <dt_dtype D>
static int trsm DT_CUBLAS_TRSM
{
    if (side != DT_CUBLAS_LEFT || m < 0 || n < 0 || lda < (m > 1 ? m : 1) ||
        ldb < (m > 1 ? m : 1) || sim::wrong_turn<D>(trans))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    if (!is_one<D>(alpha))
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    const int flags = (uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0) |
                      sim::turned<D>(trans) |
                      (diag == DT_CUBLAS_UNIT ? DT_LAPACK_UNIT : 0);
    cudaError_t error = sim::queue_lapack(handle->stream, "cublasXtrsm",
                                          {DT_LAPACK_trsm, D, flags, 1, m, m, n, 0, {}},
                                          {{a, m, m, lda}, {b, m, n, ldb}});
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

static int result_of(cudaError_t error)
{
    return error == cudaSuccess ? DT_CUBLAS_SUCCESS
                                : 13; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

/* For many matrices, in tables but for pivots and infos. */
template <dt_dtype D>
static int trsm_batched DT_CUBLAS_TRSM_BATCHED
{
    if (side != DT_CUBLAS_LEFT || m < 0 || n < 0 || batch < 1 ||
        lda < (m > 1 ? m : 1) || ldb < (m > 1 ? m : 1) || sim::wrong_turn<D>(trans))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    if (!is_one<D>(alpha))
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    const int flags = (uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0) |
                      sim::turned<D>(trans) |
                      (diag == DT_CUBLAS_UNIT ? DT_LAPACK_UNIT : 0);
    return result_of(
        sim::queue_lapack(handle->stream, "cublasXtrsmBatched",
                          {DT_LAPACK_trsm, D, flags, batch, m, m, n, 0, {}},
                          {{a, m, m, lda, 0, true}, {b, m, n, ldb, 0, true}}));
}

template <dt_dtype D>
static int getrf_batched DT_CUBLAS_GETRF_BATCHED
{
    if (n < 1 || lda < n || batch < 1)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    return result_of(sim::queue_lapack(
        handle->stream, "cublasXgetrfBatched",
        {DT_LAPACK_getrf, D, 0, batch, n, n, 0, 0, {}},
        {{a, n, n, lda, 0, true}, {pivots, n, 1, n, n}, {infos, 1, 1, 1, 1}}));
}

template <dt_dtype D>
static int getrs_batched DT_CUBLAS_GETRS_BATCHED
{
    *info = 0;
    if (n < 1 || k < 0 || lda < n || ldb < n || batch < 1 || sim::wrong_turn<D>(trans))
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    const int flags = sim::turned<D>(trans);
    return result_of(sim::queue_lapack(
        handle->stream, "cublasXgetrsBatched",
        {DT_LAPACK_getrs, D, flags, batch, n, n, k, 0, {}},
        {{a, n, n, lda, 0, true}, {pivots, n, 1, n, n}, {b, n, k, ldb, 0, true}}));
}

template <dt_dtype D>
static int geqrf_batched DT_CUBLAS_GEQRF_BATCHED
{
    const int least = m < n ? m : n;
    *info = 0;
    if (m < 1 || n < 1 || lda < m || batch < 1)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    return result_of(
        sim::queue_lapack(handle->stream, "cublasXgeqrfBatched",
                          {DT_LAPACK_geqrf, D, 0, batch, m, n, 0, 0, {}},
                          {{a, m, n, lda, 0, true}, {taus, least, 1, least, 0, true}}));
}

#define ALL(name)                                                                      \
    {name<DT_FLOAT32>, name<DT_FLOAT64>, name<DT_COMPLEX64>, name<DT_COMPLEX128>}
extern const dt_cublas sim_cublas = {create,
                                     destroy,
                                     get_version,
                                     set_stream,
                                     set_workspace,
                                     gemm,
                                     ALL(trsm),
                                     ALL(getrf_batched),
                                     ALL(getrs_batched),
                                     ALL(trsm_batched),
                                     ALL(geqrf_batched)};
#undef ALL

/* --- cuBLASLt: descriptions are what was set --- */

namespace {
struct Description {
    int compute, op_a, op_b, epilogue;
    const void *bias;
};
struct Layout {
    int type, rows, columns, ld;
};
/* Alignments of A, B, C and D. */
struct Preference {
    uint64_t workspace;
    unsigned alignments[4];
};
} /* namespace */

template <class Made>
static int destroy_of(void *made)
{
    delete (Made *)made;
    return DT_CUBLAS_SUCCESS;
}

static int product_create(void **product, int compute, int scale_type)
{
    const bool wide = compute == DT_CUBLAS_COMPUTE_64F;
    if (scale_type != (wide ? DT_CUBLAS_64F : DT_CUBLAS_32F))
        return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    *product = new Description{compute, DT_CUBLAS_OP_N, DT_CUBLAS_OP_N, 1, nullptr};
    return DT_CUBLAS_SUCCESS;
}

template <class Value>
static int put(Value *to, const void *value, size_t bytes)
{
    if (bytes != sizeof *to)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    memcpy(to, value, bytes);
    return DT_CUBLAS_SUCCESS;
}

static int product_set(void *product, int attribute, const void *value, size_t bytes)
{
    Description *d = (Description *)product;
    return attribute == DT_CUBLASLT_OP_A       ? put(&d->op_a, value, bytes)
           : attribute == DT_CUBLASLT_OP_B     ? put(&d->op_b, value, bytes)
           : attribute == DT_CUBLASLT_EPILOGUE ? put(&d->epilogue, value, bytes)
           : attribute == DT_CUBLASLT_BIAS     ? put(&d->bias, value, bytes)
                                               : 7;
}

static int layout_create(void **layout, int type, uint64_t rows, uint64_t columns,
                         int64_t ld)
{
    *layout = new Layout{type, (int)rows, (int)columns, (int)ld};
    return DT_CUBLAS_SUCCESS;
}

static int preference_create(void **preference)
{
    *preference = new Preference{0, {256, 256, 256, 256}};
    return DT_CUBLAS_SUCCESS;
}

static int preference_set(void *preference, int attribute, const void *value,
                          size_t bytes)
{
    Preference *p = (Preference *)preference;
    if (attribute == DT_CUBLASLT_WORKSPACE)
        return put(&p->workspace, value, bytes);
    const int which = attribute - DT_CUBLASLT_ALIGNMENT_A;
    return which < 0 || which > 3 ? 7 : put(&p->alignments[which], value, bytes);
}

/* Finds no algorithm for misaligned matrices, as the library may not. The algorithm's
 * first word is the workspace that it was found for. */
static int choose DT_CUBLASLT_CHOOSE
{
    const Preference *p = (const Preference *)preference;
    (void)handle, (void)product, (void)a_layout, (void)b_layout, (void)c_layout,
        (void)d_layout;
    *found = 0;
    for (unsigned alignment : p->alignments)
        if (alignment < 16)
            return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    *choices = {{{p->workspace}}, (size_t)p->workspace, DT_CUBLAS_SUCCESS, 1, {}};
    *found = wanted > 0;
    return DT_CUBLAS_SUCCESS;
}

static int matmul DT_CUBLASLT_MATMUL
{
    const Description *of = (const Description *)product;
    const Layout *la = (const Layout *)a_layout, *lb = (const Layout *)b_layout,
                 *lc = (const Layout *)c_layout;
    const bool ta = of->op_a == DT_CUBLAS_OP_T, tb = of->op_b == DT_CUBLAS_OP_T;
    const int k = ta ? la->rows : la->columns;
    (void)handle;
    if (of->epilogue != DT_CUBLASLT_EPILOGUE_BIAS || !of->bias || c != d ||
        c_layout != d_layout || number_at(beta, of->compute) != 0 ||
        (tb ? lb->columns : lb->rows) != k ||
        (ta ? la->columns : la->rows) != lc->rows ||
        (tb ? lb->rows : lb->columns) != lc->columns ||
        algorithm->data[0] > workspace_bytes)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    {
        sim::Entry in(sim::Entry::kNothing);
        if (sim::failure("cublaslt", cudaErrorNotSupported))
            return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */
    }
    const CublasProduct p = {
        of->op_a, of->op_b, lc->rows, lc->columns, k, la->ld, lb->ld,
        lc->ld,   la->type, lc->type, of->compute, a, b,      d};
    const long long strides[] = {0, 0, 0};
    return queue("cublasLtMatmul", stream, workspace, workspace_bytes, p, strides, 1,
                 number_at(alpha, of->compute), 0, of->bias);
}

extern const dt_cublaslt sim_cublaslt = {product_create,
                                         destroy_of<Description>,
                                         product_set,
                                         layout_create,
                                         destroy_of<Layout>,
                                         preference_create,
                                         destroy_of<Preference>,
                                         preference_set,
                                         choose,
                                         matmul};
