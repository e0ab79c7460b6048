/* Simulated cuSOLVER: each function checks its arguments as cuSOLVER does, and queues
 * the CPU's LAPACK on the stream. Workspaces are checked and filled with rubbish,
 * though the CPU's routine has its own. */
#include "sim/solver.h"

#include <string.h>

#include <map>

#include "cuda/runtime/cusolver.h"
#include "sim/core.h"

struct cusolverDnContext {
    cudaStream_t stream;
};
struct cusolverDnParams {
    int unused;
};
struct syevjInfo {
    int unused;
};
struct gesvdjInfo {
    int unused;
};

namespace sim {

/* Copies a matrix from one leading dimension to another. */
static void lay(void *to, int64_t to_ld, const void *from, int64_t from_ld,
                const Matrix &m, size_t item)
{
    for (int64_t j = 0; j < m.columns; j++)
        memcpy((char *)to + (size_t)(j * to_ld) * item,
               (const char *)from + (size_t)(j * from_ld) * item,
               (size_t)m.rows * item);
}

/* The memory from the first element to the end of the last, of all matrices of the batch. */
static Region region_of(const Matrix &m, size_t item, bool writes, int64_t batch = 1)
{
    if (m.table)
        return {m.pointer, (size_t)batch * sizeof(void *), false};
    const bool some = m.pointer && m.rows && m.columns;
    const int64_t last =
        some ? (batch - 1) * m.step + (m.columns - 1) * m.ld + m.rows : 0;
    return {some ? m.pointer : nullptr, (size_t)last * item, writes};
}

/* The memory that tables in device memory lead to, until a call takes them. The library's lock for
 * calls of cuBLAS and cuSOLVER guards it. */
static std::map<const void *, Region> &tables()
{
    static std::map<const void *, Region> all;
    return all;
}

void table_leads_to(const void *table, const void *first, size_t bytes)
{
    tables()[table] = {first, bytes, true};
}

static Region taken(const Matrix &m)
{
    Region region = {nullptr, 0};
    auto found = m.table ? tables().find(m.pointer) : tables().end();
    if (found != tables().end()) {
        region = found->second;
        tables().erase(found);
    }
    return region;
}

/* Where the matrix is that a table names; nullptr, after blaming the device, if that is not
 * where the table may lead. */
static char *follow(int device, const char *name, char *held, size_t bytes,
                    const Region &where)
{
    const size_t before = (size_t)(held - (const char *)where.pointer);
    if (before < where.bytes && bytes <= where.bytes - before)
        return seen_from(held);
    blame(device, cudaErrorIllegalAddress,
          format("a table of %s leads to %p, outside of its matrices", name,
                 (void *)held));
    return nullptr;
}

static void spoil(void *device, const Workspace &work)
{
    if (device)
        memset(device, 0xFF, work.bytes);
    if (work.host)
        memset(work.host, 0xFF, work.host_bytes);
}

template <class T>
static T conjugate(T x)
{
    return x;
}
template <class Part>
static dt_complex<Part> conjugate(dt_complex<Part> z)
{
    return {z.real, -z.imag};
}

template <class T>
static void turn(T *square, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i <= j; i++) {
            const T upper = square[j * n + i];
            square[j * n + i] = conjugate(square[i * n + j]);
            square[i * n + j] = conjugate(upper);
        }
}

static void turn(void *square, int64_t n, dt_dtype dtype)
{
    if (dtype == DT_FLOAT32)
        turn((float *)square, n);
    else if (dtype == DT_FLOAT64)
        turn((double *)square, n);
    else if (dtype == DT_COMPLEX64)
        turn((dt_complex<float> *)square, n);
    else
        turn((dt_complex<double> *)square, n);
}

/* The call for one matrix, whose operands are at `where`. */
static void run_lapack(int device, dt_lapack_call call,
                       const std::vector<Matrix> &matrices,
                       const std::vector<dt_lapack_operand> &kinds,
                       const std::vector<char *> &where)
{
    std::vector<std::vector<char>> packed(kinds.size());
    auto item = [&](size_t i) { return dt_dtype_size(kinds[i].dtype); };
    for (size_t i = 0; i < packed.size(); i++) {
        const Matrix &m = matrices[i];
        packed[i].resize((size_t)kinds[i].size * item(i));
        if (where[i])
            lay(packed[i].data(), m.rows, where[i], m.ld, m, item(i));
        call.operands[i] = packed[i].data();
    }
    stand_in(device, "the CPU's LAPACK in place of cuSOLVER",
             [&] { return sim::core.cpu_lapack({0, nullptr}, &call); });
    for (size_t i = 0; i < packed.size(); i++)
        if (matrices[i].turned && kinds[i].size)
            turn(packed[i].data(), matrices[i].rows, kinds[i].dtype);
    for (size_t i = 0; i < packed.size(); i++)
        if (where[i] && kinds[i].written)
            lay(where[i], matrices[i].ld, packed[i].data(), matrices[i].rows,
                matrices[i], item(i));
}

cudaError_t queue_lapack(cudaStream_t stream, const char *name, dt_lapack_call call,
                         const std::vector<Matrix> &matrices, Workspace work)
{
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    const int64_t batch = call.batch;
    call.batch = 1;
    const int count = dt_lapack_operands(&call, operands);
    Region used[DT_LAPACK_OPERANDS] = {}, led[DT_LAPACK_OPERANDS] = {};
    std::vector<size_t> items;
    for (int i = 0; i < count; i++) {
        const Matrix &m = matrices[(size_t)i];
        items.push_back(dt_dtype_size(operands[i].dtype));
        used[i] = region_of(m, items.back(), operands[i].written, batch);
        led[i] = taken(m);
        led[i].writes = operands[i].written;
    }
    int device = 0;
    cudaGetDevice(&device);
    const std::vector<dt_lapack_operand> kinds(operands, operands + count);
    const std::vector<Region> reach(led, led + count);
    return enqueue(
        stream, name,
        {used[0],
         used[1],
         used[2],
         used[3],
         used[4],
         {work.device, work.bytes},
         led[0],
         led[1],
         led[2],
         led[3],
         led[4]},
        [=](void *const *seen) {
            spoil(seen[DT_LAPACK_OPERANDS], work);
            for (int64_t b = 0; b < batch; b++) {
                std::vector<char *> where;
                for (size_t i = 0; i < kinds.size(); i++) {
                    const Matrix &m = matrices[i];
                    char *at = (char *)seen[i];
                    if (at && m.table)
                        at =
                            follow(device, name, ((char **)seen[i])[b],
                                   (size_t)((m.columns - 1) * m.ld + m.rows) * items[i],
                                   reach[i]);
                    else if (at)
                        at += (size_t)(b * m.step) * items[i];
                    if (m.table && !at)
                        return;
                    where.push_back(at);
                }
                run_lapack(device, call, matrices, kinds, where);
            }
        });
}

} /* namespace sim */

namespace {

using sim::conjugate;
using sim::Matrix;

template <dt_dtype D>
using Part = std::conditional_t<D == DT_FLOAT64 || D == DT_COMPLEX128, double, float>;
template <dt_dtype D>
using Element = std::conditional_t<D == DT_COMPLEX64 || D == DT_COMPLEX128,
                                   dt_complex<Part<D>>, Part<D>>;

int status_of(cudaError_t error)
{
    return error == cudaSuccess ? DT_CUSOLVER_SUCCESS : DT_CUSOLVER_EXECUTION_FAILED;
}

int create(dt_cusolver_handle *handle)
{
    sim::Entry in(sim::Entry::kNothing);
    if (sim::failure("cusolver", cudaErrorMemoryAllocation) || sim::refuse_library())
        return DT_CUSOLVER_NOT_INITIALIZED;
    *handle = new cusolverDnContext{nullptr};
    return DT_CUSOLVER_SUCCESS;
}

int destroy(dt_cusolver_handle handle)
{
    delete handle;
    return DT_CUSOLVER_SUCCESS;
}

int get_version(int *version)
{
    *version = CUDART_VERSION;
    return DT_CUSOLVER_SUCCESS;
}

int set_stream(dt_cusolver_handle handle, cudaStream_t stream)
{
    handle->stream = stream;
    return DT_CUSOLVER_SUCCESS;
}

int create_params(dt_cusolver_params *params)
{
    *params = new cusolverDnParams{0};
    return DT_CUSOLVER_SUCCESS;
}

int destroy_params(dt_cusolver_params params)
{
    delete params;
    return DT_CUSOLVER_SUCCESS;
}

int create_syevj(dt_cusolver_syevj *params)
{
    *params = new syevjInfo{0};
    return DT_CUSOLVER_SUCCESS;
}

int destroy_syevj(dt_cusolver_syevj params)
{
    delete params;
    return DT_CUSOLVER_SUCCESS;
}

int create_gesvdj(dt_cusolver_gesvdj *params)
{
    *params = new gesvdjInfo{0};
    return DT_CUSOLVER_SUCCESS;
}

int destroy_gesvdj(dt_cusolver_gesvdj params)
{
    delete params;
    return DT_CUSOLVER_SUCCESS;
}

/* Whether a matrix's sizes or leading dimension are invalid. */
bool wrong(int64_t rows, int64_t columns, int64_t ld)
{
    return rows < 0 || columns < 0 || ld < (rows > 1 ? rows : 1);
}

/* The elements that each routine asks for; all differ, so that a size taken from
 * another one shows. */
int some(int *size, int m, int n, int more)
{
    *size = m + 2 * n + more;
    return DT_CUSOLVER_SUCCESS;
}
bool too_small(int size, int m, int n, int more)
{
    int least = 0;
    some(&least, m, n, more);
    return size < least;
}
enum { GETRF = 1, POTRF, GEQRF, ORGQR, ORMQR, SYEVD, SYEVJ, GESVD, GESVDJ, GEEV };

sim::Workspace elements(void *work, int size, size_t item)
{
    return {work, (size_t)size * item, nullptr, 0};
}

template <dt_dtype D>
struct Typed {
    typedef Element<D> T;

    static int getrf_size DT_CUSOLVER_GETRF_SIZE
    {
        (void)handle, (void)a;
        return wrong(m, n, lda) ? DT_CUSOLVER_INVALID_VALUE : some(size, m, n, GETRF);
    }
    static int getrf DT_CUSOLVER_GETRF
    {
        if (wrong(m, n, lda))
            return DT_CUSOLVER_INVALID_VALUE;
        int size = 0;
        some(&size, m, n, GETRF);
        const int least = m < n ? m : n;
        return status_of(sim::queue_lapack(
            handle->stream, "cusolverDnXgetrf",
            {DT_LAPACK_getrf, D, 0, 1, m, n, 0, 0, {}},
            {{a, m, n, lda}, {pivots, least, 1, least}, {info, 1, 1, 1}},
            elements(work, size, sizeof(T))));
    }

    static int getrs DT_CUSOLVER_GETRS
    {
        if (wrong(n, n, lda) || wrong(n, k, ldb) || !info || sim::wrong_turn<D>(trans))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = sim::turned<D>(trans);
        return status_of(
            sim::queue_lapack(handle->stream, "cusolverDnXgetrs",
                              {DT_LAPACK_getrs, D, flags, 1, n, n, k, 0, {}},
                              {{a, n, n, lda}, {pivots, n, 1, n}, {b, n, k, ldb}}));
    }

    static int potrf_size DT_CUSOLVER_POTRF_SIZE
    {
        (void)handle, (void)a, (void)uplo;
        return wrong(n, n, lda) ? DT_CUSOLVER_INVALID_VALUE : some(size, n, n, POTRF);
    }
    static int potrf DT_CUSOLVER_POTRF
    {
        if (wrong(n, n, lda) || too_small(size, n, n, POTRF))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0;
        return status_of(sim::queue_lapack(
            handle->stream, "cusolverDnXpotrf",
            {DT_LAPACK_potrf, D, flags, 1, n, n, 0, 0, {}},
            {{a, n, n, lda}, {info, 1, 1, 1}}, elements(work, size, sizeof(T))));
    }

    static int potrf_batched DT_CUSOLVER_POTRF_BATCHED
    {
        if (wrong(n, n, lda) || batch < 1)
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0;
        return status_of(
            sim::queue_lapack(handle->stream, "cusolverDnXpotrfBatched",
                              {DT_LAPACK_potrf, D, flags, batch, n, n, 0, 0, {}},
                              {{a, n, n, lda, 0, true}, {infos, 1, 1, 1, 1}}));
    }

    static int geqrf_size DT_CUSOLVER_GEQRF_SIZE
    {
        (void)handle, (void)a;
        return wrong(m, n, lda) ? DT_CUSOLVER_INVALID_VALUE : some(size, m, n, GEQRF);
    }
    static int geqrf DT_CUSOLVER_GEQRF
    {
        if (wrong(m, n, lda) || too_small(size, m, n, GEQRF) || !info)
            return DT_CUSOLVER_INVALID_VALUE;
        const int least = m < n ? m : n;
        return status_of(sim::queue_lapack(handle->stream, "cusolverDnXgeqrf",
                                           {DT_LAPACK_geqrf, D, 0, 1, m, n, 0, 0, {}},
                                           {{a, m, n, lda}, {tau, least, 1, least}},
                                           elements(work, size, sizeof(T))));
    }

    static int orgqr_size DT_CUSOLVER_ORGQR_SIZE
    {
        (void)handle, (void)a, (void)tau;
        return wrong(m, n, lda) || n > m || k > n ? DT_CUSOLVER_INVALID_VALUE
                                                  : some(size, m, n, ORGQR);
    }
    static int orgqr DT_CUSOLVER_ORGQR
    {
        if (wrong(m, n, lda) || n > m || k > n || k < 0 || !info ||
            too_small(size, m, n, ORGQR))
            return DT_CUSOLVER_INVALID_VALUE;
        return status_of(sim::queue_lapack(handle->stream, "cusolverDnXorgqr",
                                           {DT_LAPACK_orgqr, D, 0, 1, m, n, k, 0, {}},
                                           {{a, m, n, lda}, {tau, k, 1, k}},
                                           elements(work, size, sizeof(T))));
    }

    static int ormqr_size DT_CUSOLVER_ORMQR_SIZE
    {
        (void)handle, (void)side, (void)trans, (void)a, (void)tau, (void)c;
        return wrong(m, k, lda) || wrong(m, n, ldc) || k > m ? DT_CUSOLVER_INVALID_VALUE
                                                             : some(size, m, n, ORMQR);
    }
    /* From the left: C - tau v (v^H C) for each reflector v, in the order of Q^H, whose
     * tau is conjugate, or the other one. */
    static int ormqr DT_CUSOLVER_ORMQR
    {
        if (side != DT_CUBLAS_LEFT || wrong(m, k, lda) || wrong(m, n, ldc) || k > m ||
            !info || too_small(size, m, n, ORMQR) || sim::wrong_turn<D>(trans))
            return DT_CUSOLVER_INVALID_VALUE;
        const sim::Workspace used = elements(work, size, sizeof(T));
        return status_of(sim::enqueue(
            handle->stream, "cusolverDnXormqr",
            {sim::region_of({a, m, k, lda}, sizeof(T), false),
             sim::region_of({tau, k, 1, k}, sizeof(T), false),
             sim::region_of({c, m, n, ldc}, sizeof(T), true),
             {work, used.bytes}},
            [=](void *const *seen) {
                sim::spoil(seen[3], used);
                for (int r = 0; r < k; r++) {
                    const int i = sim::turned<D>(trans) ? r : k - 1 - r;
                    const T *v = (const T *)seen[0] + (size_t)i * (size_t)lda;
                    T tau_i = ((const T *)seen[1])[i];
                    if (sim::turned<D>(trans))
                        tau_i = conjugate(tau_i);
                    for (int j = 0; j < n; j++) {
                        T *column = (T *)seen[2] + (size_t)j * (size_t)ldc;
                        T sum = column[i];
                        for (int row = i + 1; row < m; row++)
                            sum = sum + conjugate(v[row]) * column[row];
                        sum = sum * tau_i;
                        column[i] = column[i] - sum;
                        for (int row = i + 1; row < m; row++)
                            column[row] = column[row] - v[row] * sum;
                    }
                }
            }));
    }

    static int syevd_size DT_CUSOLVER_SYEVD_SIZE
    {
        (void)handle, (void)job, (void)uplo, (void)a, (void)w;
        return wrong(n, n, lda) ? DT_CUSOLVER_INVALID_VALUE : some(size, n, n, SYEVD);
    }
    static int syevd DT_CUSOLVER_SYEVD
    {
        if (wrong(n, n, lda) || too_small(size, n, n, SYEVD))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = (uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0) |
                          (job == DT_CUSOLVER_VECTORS ? DT_LAPACK_VECTORS : 0);
        return status_of(
            sim::queue_lapack(handle->stream, "cusolverDnXsyevd",
                              {DT_LAPACK_syevd, D, flags, 1, n, n, 0, 0, {}},
                              {{a, n, n, lda}, {w, n, 1, n}, {info, 1, 1, 1}},
                              elements(work, size, sizeof(T))));
    }

    static int syevj_size DT_CUSOLVER_SYEVJ_SIZE
    {
        (void)handle, (void)job, (void)uplo, (void)a, (void)w;
        return wrong(n, n, lda) || !params || batch < 1
                   ? DT_CUSOLVER_INVALID_VALUE
                   : some(size, n, n, SYEVJ + batch);
    }
    static int syevj DT_CUSOLVER_SYEVJ
    {
        if (wrong(n, n, lda) || !params || batch < 1 ||
            too_small(size, n, n, SYEVJ + batch))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = (uplo == DT_CUBLAS_UPPER ? DT_LAPACK_UPPER : 0) |
                          (job == DT_CUSOLVER_VECTORS ? DT_LAPACK_VECTORS : 0);
        return status_of(sim::queue_lapack(
            handle->stream, "cusolverDnXsyevjBatched",
            {DT_LAPACK_syevd, D, flags, batch, n, n, 0, 0, {}},
            {{a, n, n, lda, (int64_t)lda * n}, {w, n, 1, n, n}, {infos, 1, 1, 1, 1}},
            elements(work, size, sizeof(T))));
    }

    static int gesvd_size DT_CUSOLVER_GESVD_SIZE
    {
        (void)handle;
        return m < n ? DT_CUSOLVER_INVALID_VALUE : some(size, m, n, GESVD);
    }
    static int gesvd DT_CUSOLVER_GESVD
    {
        const bool vectors = job_u != 'N', full = job_u == 'A';
        if (m < n || wrong(m, n, lda) || wrong(m, n, ldu) || wrong(n, n, ldvt) ||
            job_u != job_vt || too_small(size, m, n, GESVD))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags =
            (vectors ? DT_LAPACK_VECTORS : 0) | (full ? DT_LAPACK_FULL : 0);
        (void)rest;
        return status_of(
            sim::queue_lapack(handle->stream, "cusolverDnXgesvd",
                              {DT_LAPACK_gesdd, D, flags, 1, m, n, 0, 0, {}},
                              {{a, m, n, lda},
                               {u, vectors ? m : 0, full ? m : n, ldu},
                               {s, n, 1, n},
                               {vt, vectors ? n : 0, n, ldvt},
                               {info, 1, 1, 1}},
                              elements(work, size, sizeof(T))));
    }

    /* V is the conjugate transpose of what the CPU's routine gives. */
    static int rotate(cudaStream_t stream, const char *name, int flags, int batch,
                      int m, int n, const sim::Matrix &a, void *s, void *u, int ldu,
                      void *v, int ldv, int *infos, const sim::Workspace &work)
    {
        const bool vectors = flags & DT_LAPACK_VECTORS;
        const int columns = flags & DT_LAPACK_FULL ? m : n;
        Matrix right = {v, vectors ? n : 0, n, ldv, (int64_t)ldv * n};
        right.turned = vectors;
        return status_of(sim::queue_lapack(
            stream, name, {DT_LAPACK_gesdd, D, flags, batch, m, n, 0, 0, {}},
            {a,
             {u, vectors ? m : 0, columns, ldu, (int64_t)ldu * columns},
             {s, n, 1, n, n},
             right,
             {infos, 1, 1, 1, 1}},
            work));
    }
    static bool wrong_shape(int m, int n, int lda, int ldu, int ldv)
    {
        return m < n || wrong(m, n, lda) || wrong(m, n, ldu) || wrong(n, n, ldv);
    }

    static int gesvdj_size DT_CUSOLVER_GESVDJ_SIZE
    {
        (void)handle, (void)job, (void)a, (void)s, (void)u, (void)v;
        return wrong_shape(m, n, lda, ldu, ldv) || !params
                   ? DT_CUSOLVER_INVALID_VALUE
                   : some(size, m, n, GESVDJ + econ);
    }
    static int gesvdj DT_CUSOLVER_GESVDJ
    {
        if (wrong_shape(m, n, lda, ldu, ldv) || !params || !info ||
            too_small(size, m, n, GESVDJ + econ))
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags = (job == DT_CUSOLVER_VECTORS ? DT_LAPACK_VECTORS : 0) |
                          (econ ? 0 : DT_LAPACK_FULL);
        return rotate(handle->stream, "cusolverDnXgesvdj", flags, 1, m, n,
                      {a, m, n, lda}, s, u, ldu, v, ldv, info,
                      elements(work, size, sizeof(T)));
    }

    static int gesvdj_batched_size DT_CUSOLVER_GESVDJ_BATCHED_SIZE
    {
        (void)handle, (void)job, (void)a, (void)s, (void)u, (void)v;
        const bool large = m > 32 || n > 32;
        return wrong_shape(m, n, lda, ldu, ldv) || large || !params || batch < 1
                   ? DT_CUSOLVER_INVALID_VALUE
                   : some(size, m, n, GESVDJ + batch);
    }
    static int gesvdj_batched DT_CUSOLVER_GESVDJ_BATCHED
    {
        int least = 0;
        if (gesvdj_batched_size(handle, job, m, n, a, lda, s, u, ldu, v, ldv, &least,
                                params, batch) ||
            size < least || !infos)
            return DT_CUSOLVER_INVALID_VALUE;
        const int flags =
            job == DT_CUSOLVER_VECTORS ? DT_LAPACK_VECTORS | DT_LAPACK_FULL : 0;
        return rotate(handle->stream, "cusolverDnXgesvdjBatched", flags, batch, m, n,
                      {a, m, n, lda, (int64_t)lda * n}, s, u, ldu, v, ldv, infos,
                      elements(work, size, sizeof(T)));
    }
};

int geev_size DT_CUSOLVER_GEEV_SIZE
{
    (void)handle, (void)job_l, (void)job_r, (void)a, (void)w, (void)l, (void)r;
    const bool alike = w_type == a_type && l_type == a_type && r_type == a_type;
    if (!params || !alike || compute != a_type || wrong(n, n, lda) ||
        wrong(n, 0, ldl) || wrong(n, n, ldr))
        return DT_CUSOLVER_INVALID_VALUE;
    *device_bytes = (size_t)n * 24 + GEEV;
    *host_bytes = (size_t)n * 8 + GEEV;
    return DT_CUSOLVER_SUCCESS;
}

int geev DT_CUSOLVER_GEEV
{
    size_t least = 0, least_host = 0;
    const int status =
        geev_size(handle, params, job_l, job_r, n, a_type, a, lda, w_type, w, l_type, l,
                  ldl, r_type, r, ldr, compute, &least, &least_host);
    if (status || device_bytes < least || host_bytes < least_host ||
        job_l != DT_CUSOLVER_NO_VECTORS)
        return DT_CUSOLVER_INVALID_VALUE;
    const dt_dtype dtype = a_type == DT_CUBLAS_32F   ? DT_FLOAT32
                           : a_type == DT_CUBLAS_64F ? DT_FLOAT64
                           : a_type == DT_CUBLAS_32C ? DT_COMPLEX64
                                                     : DT_COMPLEX128;
    const int64_t imaginaries = dt_dtype_is_complex(dtype) ? 0 : n;
    const bool vectors = job_r == DT_CUSOLVER_VECTORS;
    char *imaginary = (char *)w + (size_t)n * dt_dtype_size(dtype);
    return status_of(sim::queue_lapack(
        handle->stream, "cusolverDnXgeev",
        {DT_LAPACK_geev, dtype, vectors ? DT_LAPACK_VECTORS : 0, 1, n, n, 0, 0, {}},
        {{a, n, n, lda},
         {w, n, 1, n},
         {imaginary, imaginaries, 1, n},
         {r, vectors ? n : 0, n, ldr},
         {info, 1, 1, 1}},
        {device_work, device_bytes, host_work, host_bytes}));
}

} /* namespace */

const dt_cusolver *sim_cusolver(void);

const dt_cusolver *sim_cusolver(void)
{
    typedef Typed<DT_FLOAT32> S;
    typedef Typed<DT_FLOAT64> D;
    typedef Typed<DT_COMPLEX64> C;
    typedef Typed<DT_COMPLEX128> Z;
#define FUNCTION(name, symbol, parameters)  name,
#define TYPED(name, s, d, c, z, parameters) {S::name, D::name, C::name, Z::name},
    static const dt_cusolver functions = {
        DT_CUSOLVER_FUNCTIONS(FUNCTION, TYPED, FUNCTION)};
#undef FUNCTION
#undef TYPED
    /* Without the CPU's LAPACK there is no simulated cuSOLVER; this call does nothing
     * else but look for it. */
    const dt_lapack_call probe = {DT_LAPACK_getrf, DT_FLOAT32, 0, 0, 1, 1, 0, 0, {}};
    return sim::core.cpu_lapack({0, nullptr}, &probe) ? nullptr : &functions;
}
