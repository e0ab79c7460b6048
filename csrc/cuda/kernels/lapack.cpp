/* Factorizations and solvers by cuSOLVER and cuBLAS. Their matrices are column-major as ours
 * are. Small matrices of a batch are factorized by one call, others one after another. */
#include "device/lapack.h"

#include <limits.h>
#include <stdlib.h>

#include "cuda/runtime/cusolver.h"

namespace {

/* Up to this order the batch is one call, in which a block has a matrix; a larger matrix
 * fills the GPU by itself. On an H100 a call for one matrix takes 10 to 20 us whatever its
 * size up to there, so a thousand matrices of 8 x 8 take 10 to 20 ms one by one and, at two
 * launches, 10 us together. One of 512 has 89 MFLOP: 1 ms of a multiprocessor, of which
 * there are 132, against about 1.5 ms alone. */
enum { MOST_IN_BATCH = 512 };
/* The same for eigenvalues and singular values: the library's bound for rotations in
 * shared memory. */
enum { MOST_ROTATED = 32 };

struct Solver {
    const dt_lapack_call *c;
    dt_stream stream;
    const dt_cusolver *lib;
    dt_cusolver_handle handle;
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    int32_t *infos; /* scratch for a routine's, one for each matrix */
    int m, n, k;

    /* The index of a routine's function. */
    int type() const { return c->dtype - DT_FLOAT32; }
    bool is_complex() const { return dt_dtype_is_complex(c->dtype); }
    size_t item() const { return dt_dtype_size(c->dtype); }
    bool flag(int which) const { return (c->flags & which) != 0; }
    int uplo() const
    {
        return flag(DT_LAPACK_UPPER) ? DT_CUBLAS_UPPER : DT_CUBLAS_LOWER;
    }
    int job() const
    {
        return flag(DT_LAPACK_VECTORS) ? DT_CUSOLVER_VECTORS : DT_CUSOLVER_NO_VECTORS;
    }
    int turned(int flags) const
    {
        return !(flags & DT_LAPACK_TRANSPOSED) ? DT_CUBLAS_OP_N
               : is_complex()                  ? DT_CUBLAS_OP_C
                                               : DT_CUBLAS_OP_T;
    }
    int fail(int status) const
    {
        return library_fail(&cusolver_library, status, "factorizing matrices");
    }

    /* An operand of matrix i. */
    void *at(int operand, int64_t i) const
    {
        size_t size = dt_dtype_size(operands[operand].dtype);
        return (char *)c->operands[operand] +
               (size_t)(i * operands[operand].size) * size;
    }
    int32_t *info(int operand) const { return (int32_t *)c->operands[operand]; }

    /* run(i, workspace, its size) for each matrix. ask(&size) says how many elements
     * the workspace has, which is the same for all. */
    template <class Ask, class Run>
    int each(Ask ask, Run run) const
    {
        int size = 0, status = ask(&size);
        if (status)
            return fail(status);
        Scratch work(stream, (size_t)(size > 0 ? size : 1) * item());
        if (!work.data)
            return -1;
        for (int64_t i = 0; i < c->batch && !status; i++)
            status = run(i, work.data, size);
        return status ? fail(status) : 0;
    }

    bool in_batch(int most) const
    {
        return c->batch > 1 && m <= most && n <= most && c->batch <= INT_MAX;
    }
    int count() const { return (int)c->batch; }

    /* The matrices of an operand as a table. */
    struct Table {
        Scratch memory;
        void **data;
        Table(const Solver &s, const void *first, int64_t elements)
            : memory(s.stream, (size_t)s.c->batch * sizeof(void *)),
              data((void **)memory.data)
        {
            if (data && lapack_table(s.stream, data, first,
                                     elements * (int64_t)s.item(), s.c->batch))
                data = nullptr; /* after dt_fail */
        }
        Table(const Solver &s, int operand)
            : Table(s, s.c->operands[operand], s.operands[operand].size)
        {
        }
    };
    /* run(cuBLAS, its handle) */
    template <class Run>
    int with_cublas(const char *doing, Run run) const
    {
        const dt_cublas *cublas = cublas_get();
        if (!cublas)
            return -1;
        CublasHandle blas(cublas, stream);
        if (!blas.handle)
            return -1;
        const int status = run(cublas, blas.handle);
        return status ? library_fail(&cublas_library, status, doing) : 0;
    }

    int getrf() const
    {
        if (in_batch(MOST_IN_BATCH) && m == n) {
            Table a(*this, 0);
            return !a.data
                       ? -1
                       : with_cublas("factorizing matrices", [&](auto *blas, auto on) {
                             return blas->getrf_batched[type()](
                                 on, n, a.data, n, info(1), info(2), count());
                         });
        }
        return each(
            [&](int *size) {
                return lib->getrf_size[type()](handle, m, n, at(0, 0), m, size);
            },
            [&](int64_t i, void *work, int) {
                return lib->getrf[type()](handle, m, n, at(0, i), m, work,
                                          (int *)at(1, i), info(2) + i);
            });
    }

    int getrs() const
    {
        const int turn = turned(c->flags);
        int status = 0;
        if (in_batch(MOST_IN_BATCH)) {
            Table a(*this, 0), b(*this, 2);
            return !a.data || !b.data
                       ? -1
                       : with_cublas("solving equations", [&](auto *blas, auto on) {
                             return blas->getrs_batched[type()](on, turn, n, k, a.data,
                                                                n, info(1), b.data, n,
                                                                &status, count());
                         });
        }
        for (int64_t i = 0; i < c->batch && !status; i++)
            status = lib->getrs[type()](handle, turn, n, k, at(0, i), n,
                                        (const int *)at(1, i), at(2, i), n, infos + i);
        return status ? fail(status) : 0;
    }

    int potrf() const
    {
        if (in_batch(MOST_IN_BATCH)) {
            Table a(*this, 0);
            const int status =
                a.data ? lib->potrf_batched[type()](handle, uplo(), n, a.data, n,
                                                    info(1), count())
                       : 0;
            return !a.data ? -1 : status ? fail(status) : 0;
        }
        return each(
            [&](int *size) {
                return lib->potrf_size[type()](handle, uplo(), n, at(0, 0), n, size);
            },
            [&](int64_t i, void *work, int size) {
                return lib->potrf[type()](handle, uplo(), n, at(0, i), n, work, size,
                                          info(1) + i);
            });
    }

    /* B's leading dimension is ldb. */
    int trsm(int lda, int operand, int ldb, int flags) const
    {
        static const char doing[] = "solving triangular systems";
        const float one[] = {1, 0};
        const double one_wide[] = {1, 0};
        const void *alpha =
            dt_dtype_part(c->dtype) == DT_FLOAT64 ? (const void *)one_wide : one;
        const int upper = flags & DT_LAPACK_UPPER ? DT_CUBLAS_UPPER : DT_CUBLAS_LOWER;
        const int turn = turned(flags);
        const int unit = flags & DT_LAPACK_UNIT ? DT_CUBLAS_UNIT : DT_CUBLAS_NON_UNIT;
        if (in_batch(MOST_IN_BATCH)) {
            Table a(*this, 0), b(*this, operand);
            return !a.data || !b.data
                       ? -1
                       : with_cublas(doing, [&](auto *blas, auto on) {
                             return blas->trsm_batched[type()](
                                 on, DT_CUBLAS_LEFT, upper, turn, unit, n, k, alpha,
                                 a.data, lda, b.data, ldb, count());
                         });
        }
        return with_cublas(doing, [&](auto *blas, auto on) {
            int status = 0;
            for (int64_t i = 0; i < c->batch && !status; i++)
                status = blas->trsm[type()](on, DT_CUBLAS_LEFT, upper, turn, unit, n, k,
                                            alpha, at(0, i), lda, at(operand, i), ldb);
            return status;
        });
    }

    /* Each tau has LEAST elements. */
    int geqrf(void *taus) const
    {
        const int least = m < n ? m : n;
        const size_t step = (size_t)least * item();
        if (in_batch(MOST_IN_BATCH)) {
            Table a(*this, 0), t(*this, taus, least);
            int found = 0;
            return !a.data || !t.data
                       ? -1
                       : with_cublas("factorizing matrices", [&](auto *blas, auto on) {
                             return blas->geqrf_batched[type()](
                                 on, m, n, a.data, m, t.data, &found, count());
                         });
        }
        return each(
            [&](int *size) {
                return lib->geqrf_size[type()](handle, m, n, at(0, 0), m, size);
            },
            [&](int64_t i, void *work, int size) {
                return lib->geqrf[type()](handle, m, n, at(0, i), m,
                                          (char *)taus + (size_t)i * step, work, size,
                                          infos + i);
            });
    }

    int orgqr() const
    {
        return each(
            [&](int *size) {
                return lib->orgqr_size[type()](handle, m, n, k, at(0, 0), m, at(1, 0),
                                               size);
            },
            [&](int64_t i, void *work, int size) {
                return lib->orgqr[type()](handle, m, n, k, at(0, i), m, at(1, i), work,
                                          size, infos + i);
            });
    }

    /* Multiplies B (m, k) by Q, or by its conjugate transpose, of n reflectors. */
    int ormqr(int turn, const void *taus) const
    {
        const size_t step = (size_t)n * item();
        return each(
            [&](int *size) {
                return lib->ormqr_size[type()](handle, DT_CUBLAS_LEFT, turn, m, k, n,
                                               at(0, 0), m, taus, at(1, 0), m, size);
            },
            [&](int64_t i, void *work, int size) {
                return lib->ormqr[type()](handle, DT_CUBLAS_LEFT, turn, m, k, n,
                                          at(0, i), m,
                                          (const char *)taus + (size_t)i * step,
                                          at(1, i), m, work, size, infos + i);
            });
    }

    /* Sets the infos of matrices that are not finite, and of the others to 0. */
    int refuse(int operand, bool more = false) const
    {
        int32_t *out = info(operand);
        const size_t bytes = (size_t)c->batch * sizeof(int32_t);
        CUDA_TRY("factorizing matrices",
                 cudaMemsetAsync(out, 0, bytes, (cudaStream_t)stream.handle));
        for (int o = 0; o <= more; o++)
            if (lapack_refuse(stream, c->dtype, c->operands[o], operands[o].size,
                              c->batch, out))
                return -1;
        return 0;
    }
    int join(int operand) const
    {
        return lapack_join(stream, info(operand), infos, c->batch);
    }

    int gesvd() const
    {
        const char want = !flag(DT_LAPACK_VECTORS) ? 'N'
                          : flag(DT_LAPACK_FULL)   ? 'A'
                                                   : 'S';
        return each(
            [&](int *size) { return lib->gesvd_size[type()](handle, m, n, size); },
            [&](int64_t i, void *work, int size) {
                return lib->gesvd[type()](handle, want, want, m, n, at(0, i), m,
                                          at(2, i), at(1, i), m, at(3, i), n, work,
                                          size, nullptr, infos + i);
            });
    }

    int gesvdj_each(dt_cusolver_gesvdj params) const
    {
        const int econ = !flag(DT_LAPACK_FULL);
        return each(
            [&](int *size) {
                return lib->gesvdj_size[type()](handle, job(), econ, m, n, at(0, 0), m,
                                                at(2, 0), at(1, 0), m, at(3, 0), n,
                                                size, params);
            },
            [&](int64_t i, void *work, int size) {
                return lib->gesvdj[type()](handle, job(), econ, m, n, at(0, i), m,
                                           at(2, i), at(1, i), m, at(3, i), n, work,
                                           size, infos + i, params);
            });
    }

    /* The call for all gives square U's, of which n columns may be wanted. */
    int gesvdj_batch(dt_cusolver_gesvdj params) const
    {
        const bool cut = flag(DT_LAPACK_VECTORS) && !flag(DT_LAPACK_FULL) && m > n;
        const size_t square = (size_t)m * (size_t)m * item();
        const size_t wanted = (size_t)m * (size_t)n * item();
        Scratch squares(stream, cut ? (size_t)c->batch * square : 1);
        void *u = cut ? squares.data : at(1, 0);
        int size = 0;
        int status =
            lib->gesvdj_batched_size[type()](handle, job(), m, n, at(0, 0), m, at(2, 0),
                                             u, m, at(3, 0), n, &size, params, count());
        Scratch work(stream, (size_t)(size > 0 ? size : 1) * item());
        if (!squares.data || !work.data)
            return -1;
        if (!status)
            status = lib->gesvdj_batched[type()](handle, job(), m, n, at(0, 0), m,
                                                 at(2, 0), u, m, at(3, 0), n, work.data,
                                                 size, infos, params, count());
        if (status)
            return fail(status);
        if (cut)
            CUDA_TRY("factorizing matrices",
                     cudaMemcpy2DAsync(at(1, 0), wanted, u, square, wanted,
                                       (size_t)c->batch, cudaMemcpyDeviceToDevice,
                                       (cudaStream_t)stream.handle));
        return 0;
    }

    int gesvdj() const
    {
        dt_cusolver_gesvdj params = nullptr;
        int status = lib->create_gesvdj(&params);
        if (status)
            return fail(status);
        status = in_batch(MOST_ROTATED) ? gesvdj_batch(params) : gesvdj_each(params);
        lib->destroy_gesvdj(params);
        return status;
    }

    int gesdd() const
    {
        if (refuse(4) || (flag(DT_LAPACK_ROTATIONS) ? gesvdj() : gesvd()))
            return -1;
        return join(4);
    }

    int syevj() const
    {
        dt_cusolver_syevj params = nullptr;
        int size = 0, status = lib->create_syevj(&params);
        if (status)
            return fail(status);
        status = lib->syevj_size[type()](handle, job(), uplo(), n, at(0, 0), n,
                                         at(1, 0), &size, params, count());
        Scratch work(stream, (size_t)(size > 0 ? size : 1) * item());
        if (work.data && !status)
            status = lib->syevj[type()](handle, job(), uplo(), n, at(0, 0), n, at(1, 0),
                                        work.data, size, infos, params, count());
        lib->destroy_syevj(params);
        return !work.data ? -1 : status ? fail(status) : 0;
    }

    int syevd() const
    {
        if (refuse(2))
            return -1;
        if (in_batch(MOST_ROTATED))
            return syevj() ? -1 : join(2);
        return each(
                   [&](int *size) {
                       return lib->syevd_size[type()](handle, job(), uplo(), n,
                                                      at(0, 0), n, at(1, 0), size);
                   },
                   [&](int64_t i, void *work, int size) {
                       return lib->syevd[type()](handle, job(), uplo(), n, at(0, i), n,
                                                 at(1, i), work, size, infos + i);
                   })
                   ? -1
                   : join(2);
    }

    /* Real parts w come before the imaginary ones. */
    int geev_each(dt_cusolver_params params, char *w) const
    {
        static const int types[] = {DT_CUBLAS_32F, DT_CUBLAS_64F, DT_CUBLAS_32C,
                                    DT_CUBLAS_64C};
        const int type = types[this->type()], none = 0, parts = is_complex() ? 1 : 2;
        const size_t bytes = (size_t)n * item();
        size_t device_bytes = 0, host_bytes = 0;
        int status = lib->geev_size(handle, params, none, job(), n, type, at(0, 0), n,
                                    type, w, type, nullptr, n, type, at(3, 0), n, type,
                                    &device_bytes, &host_bytes);
        if (status)
            return fail(status);
        Scratch work(stream, device_bytes + 1);
        if (!work.data)
            return -1;
        void *host = malloc(host_bytes + 1);
        if (!host)
            return dt_fail(DT_ERROR_HOST_MEMORY,
                           "no memory is left for cuSOLVER to work in; delete some "
                           "tensors first");
        cudaError_t error = cudaSuccess;
        cudaStream_t on = (cudaStream_t)stream.handle;
        for (int64_t i = 0; i < c->batch && !status && error == cudaSuccess; i++) {
            status = lib->geev(handle, params, none, job(), n, type, at(0, i), n, type,
                               w, type, nullptr, n, type, at(3, i), n, type, work.data,
                               device_bytes, host, host_bytes, infos + i);
            for (int part = 0; part < parts && !status && error == cudaSuccess; part++)
                error = cudaMemcpyAsync(at(1 + part, i), w + part * bytes, bytes,
                                        cudaMemcpyDeviceToDevice, on);
        }
        /* Queued work may still use the host's workspace. */
        cudaError_t end = cudaStreamSynchronize(on);
        free(host);
        if (status)
            return fail(status);
        CUDA_TRY("factorizing matrices", error != cudaSuccess ? error : end);
        return 0;
    }

    int geev() const
    {
        if (!lib->geev || !lib->geev_size)
            return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                           "eigenvalues of matrices that are not symmetric need a "
                           "cuSOLVER of CUDA 12.6.2 or newer, and the one at %s is "
                           "older; install it, or bring the matrix to the CPU with "
                           ".cpu()",
                           cusolver_library.path);
        Scratch w(stream, 2 * (size_t)n * item());
        if (!w.data || refuse(4))
            return -1;
        dt_cusolver_params params = nullptr;
        int status = lib->create_params(&params);
        if (status)
            return fail(status);
        status = geev_each(params, (char *)w.data);
        lib->destroy_params(params);
        return status ? -1 : join(4);
    }

    /* For full rank: A = Q R, X = R^-1 Q^H B; TRANSPOSED, X = Q R^-H B, whose lower
     * rows are 0 before Q. */
    int gels() const
    {
        Scratch taus(stream, (size_t)c->batch * (size_t)n * item());
        if (!taus.data || refuse(4, true) || geqrf(taus.data))
            return -1;
        if (!flag(DT_LAPACK_TRANSPOSED))
            return ormqr(turned(DT_LAPACK_TRANSPOSED), taus.data)
                       ? -1
                       : trsm(m, 1, m, DT_LAPACK_UPPER);
        return trsm(m, 1, m, DT_LAPACK_UPPER | DT_LAPACK_TRANSPOSED)
                   ? -1
                   : ormqr(DT_CUBLAS_OP_N, taus.data);
    }

    int run() const
    {
        switch (c->op) {
        case DT_LAPACK_getrf:
            return getrf();
        case DT_LAPACK_getrs:
            return getrs();
        case DT_LAPACK_potrf:
            return potrf();
        case DT_LAPACK_trsm:
            return trsm(n, 1, n, c->flags);
        case DT_LAPACK_geqrf:
            return geqrf(c->operands[1]);
        case DT_LAPACK_orgqr:
            return orgqr();
        case DT_LAPACK_gesdd:
            return gesdd();
        case DT_LAPACK_syevd:
            return syevd();
        case DT_LAPACK_geev:
            return geev();
        default:
            return gels();
        }
    }
};

} // namespace

int dt_cuda_lapack(dt_stream stream, const dt_lapack_call *c)
{
    if (c->op == DT_LAPACK_gelsy || c->op == DT_LAPACK_gelsd ||
        c->op == DT_LAPACK_gelss)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "GPUs have least squares of matrices of full rank only: take "
                       "gels, or bring the matrices to the CPU with .cpu()");
    if ((c->op == DT_LAPACK_gesdd || c->op == DT_LAPACK_gels) && c->m < c->n)
        return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                       "cuSOLVER takes no matrix of more columns than rows here; "
                       "transpose it");
    if (c->m * c->n > INT_MAX || c->m * c->k > INT_MAX || c->n * c->k > INT_MAX)
        return dt_fail(DT_ERROR_RUNTIME,
                       "a matrix is too large for cuSOLVER, which takes up to %d "
                       "elements",
                       INT_MAX);
    Scratch infos(stream, (size_t)c->batch * sizeof(int32_t));
    const dt_cusolver *lib = infos.data ? cusolver_get() : nullptr;
    if (!lib)
        return -1;
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    Solver solver = {c,         stream,
                     lib,       cusolver_handle(lib, stream),
                     {},        (int32_t *)infos.data,
                     (int)c->m, (int)c->n,
                     (int)c->k};
    dt_lapack_operands(c, solver.operands);
    return solver.handle ? solver.run() : -1;
}
