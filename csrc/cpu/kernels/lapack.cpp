/* Factorizations and solvers, by the LAPACK that comes with the BLAS found at run time. */
#include "device/lapack.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tuple>

#include "base/gil.h"
#include "cpu/runtime/backend.h"
#include "cpu/runtime/blas.h"
#include "cpu/runtime/pool.h"

namespace {

/* The routine of each operation; orgqr and trsm are looked up like the others. */
const char *const names[DT_NLAPACK] = {
#define LAPACK_OP(name, ...) #name,
#include "ops/lapack.def"
};

const char *name_of(dt_lapack_op op, dt_dtype dtype)
{
    const bool complex = dt_dtype_is_complex(dtype);
    return complex && op == DT_LAPACK_orgqr   ? "ungqr"
           : complex && op == DT_LAPACK_syevd ? "heevd"
                                              : names[op];
}

struct Routine {
    void *function; /* NULL: not looked up yet */
    bool wide;      /* integers of 64 bits */
};
Routine routines[DT_NLAPACK][DT_LAPACK_TYPES];

constexpr double SERIAL = 1e5; /* operations that are not worth another thread */
constexpr double MANY = 5e8; /* those of a matrix that are worth LAPACK's own threads */
constexpr double LONG = 2e4; /* operations that are worth releasing the GIL */

int find(dt_lapack_op op, dt_dtype dtype, Routine *out)
{
    Routine *kept = &routines[op][dtype - DT_FLOAT32];
    /* Threads that look at once find the same. */
    void *function = __atomic_load_n(&kept->function, __ATOMIC_ACQUIRE);
    if (!function) {
        char name[16];
        snprintf(name, sizeof name, "%c%s", "sdcz"[dtype - DT_FLOAT32],
                 name_of(op, dtype));
        function = dt_lapack_find(name, &out->wide);
        if (!function)
            return dt_fail(DT_ERROR_RUNTIME,
                           "this needs LAPACK, and %s%s has no %s; install one with "
                           "pip install scipy-openblas64, or name an OpenBLAS in "
                           "PYDEVTENSOR_BLAS",
                           *dt_blas_path() ? "the BLAS at "
                                           : "there is no library that",
                           dt_blas_path(), name);
        __atomic_store_n(&kept->wide, out->wide, __ATOMIC_RELAXED);
        __atomic_store_n(&kept->function, function, __ATOMIC_RELEASE);
    }
    out->function = function;
    out->wide = __atomic_load_n(&kept->wide, __ATOMIC_RELAXED);
    return 0;
}

struct Memory { /* freed at the end of the block */
    void *data = nullptr;
    Memory() = default;
    Memory(const Memory &) = delete;
    ~Memory() { free(data); }
    bool get(int64_t count, size_t size)
    {
        free(data);
        data = malloc((size_t)(count > 0 ? count : 1) * size);
        return data != nullptr;
    }
};

/* The operands that a routine reads or writes are there: dt_lapack() has checked them.
 * NOLINTBEGIN(clang-analyzer-core.NullDereference) */
template <class T>
struct PartOf {
    typedef T type;
};
template <class Part>
struct PartOf<dt_complex<Part>> {
    typedef Part type;
};

template <class T>
bool is_finite(const T *x, int64_t n)
{
    typedef typename PartOf<T>::type Part;
    const Part *parts = (const Part *)x;
    Part sum = 0; /* NaN where an element is not finite */
    for (int64_t i = 0; i < n * (int64_t)(sizeof(T) / sizeof(Part)); i++)
        sum += parts[i] * 0;
    return sum == 0;
}

/* A number of elements that a routine gives as one of type T, which may have been rounded
 * down. */
template <class T>
int64_t room(T asked)
{
    typedef typename PartOf<T>::type Part;
    const Part number = *(const Part *)&asked;
    return (int64_t)((double)number * (sizeof(Part) == 4 ? 1.000001 : 1)) + 1;
}

/* Calls a Fortran routine: it takes addresses, then the length of each text argument, here
 * always 1. A routine with fewer texts ignores the lengths left over. */
template <class... A>
void fortran(void *routine, A... arguments)
{
    using Function = void (*)(A..., size_t, size_t, size_t);
    reinterpret_cast<Function>(routine)(arguments..., 1, 1, 1);
}

/* One matrix after another; workspaces are kept between them. False: no memory is left. */
template <class T, class Int>
struct Solver {
    typedef typename PartOf<T>::type Part;
    const dt_lapack_call *c;
    void *routine;
    Memory work_memory, parts_memory, ints_memory, pivots_memory;
    T *work = nullptr;
    Part *parts = nullptr; /* real numbers, which complex routines work with too */
    Int *ints = nullptr, *pivots = nullptr;
    Int work_size = 0, parts_size = 0, ints_size = 0, info = 0;

    bool flag(int which) const { return (c->flags & which) != 0; }
    char triangle() const { return flag(DT_LAPACK_UPPER) ? 'U' : 'L'; }
    char turn() const
    {
        return !flag(DT_LAPACK_TRANSPOSED) ? 'N' : is_complex<T> ? 'C' : 'T';
    }

    bool take_pivots(int64_t count)
    {
        if (!pivots && pivots_memory.get(count, sizeof(Int)))
            pivots = (Int *)pivots_memory.data;
        return pivots != nullptr;
    }
    bool take_ints(int64_t count)
    {
        if (!ints && ints_memory.get(count, sizeof(Int)))
            ints = (Int *)ints_memory.data;
        ints_size = (Int)count;
        return ints != nullptr;
    }
    bool take_parts(int64_t count)
    {
        if (is_complex<T> && !parts && parts_memory.get(count, sizeof(Part)))
            parts = (Part *)parts_memory.data;
        parts_size = (Int)count;
        return parts || !is_complex<T>;
    }
    bool take_work(T asked)
    {
        work_size = (Int)room(asked);
        if (!work && work_memory.get(work_size, sizeof(T)))
            work = (T *)work_memory.data;
        return work != nullptr;
    }

    /* call(work, size, ints, ints_size), once to ask for the sizes (-1). */
    template <class Call>
    bool with_workspace(Call call)
    {
        if (!work) {
            T asked(0);
            Part asked_parts = 0;
            Int some[2] = {0, 0}, query = -1;
            const bool has_parts = parts;
            const Int kept = parts_size;
            parts = has_parts ? parts : &asked_parts;
            parts_size = -1;
            call(&asked, &query, ints ? ints : some, &query);
            parts = has_parts ? parts : nullptr;
            parts_size = kept;
            if ((!ints && !take_ints(some[0] > 1 ? some[0] : 1)) ||
                (!has_parts && !take_parts(room(asked_parts))) || !take_work(asked))
                return false;
        }
        call(work, &work_size, ints, &ints_size);
        return true;
    }

    /* A routine that takes, of complex matrices, `parts` after the first arguments. */
    template <class... A, class... B>
    void with_parts(std::tuple<A...> first, std::tuple<B...> rest)
    {
        std::apply(
            [&](A... a) {
                std::apply(
                    [&](B... b) {
                        if constexpr (is_complex<T>)
                            fortran(routine, a..., parts, b...);
                        else
                            fortran(routine, a..., b...);
                    },
                    rest);
            },
            first);
    }

    bool solve_least_squares(T *a, Int *m, Int *n, void *const *at)
    {
        Int k = (Int)c->k, ldb = *m > *n ? *m : *n, rank = 0;
        T *b = (T *)at[1];
        Part *s = (Part *)at[2], condition = (Part)c->number;
        int32_t *out_rank = (int32_t *)at[3];
        char trans = turn();
        bool done = false;
        switch (c->op) {
        case DT_LAPACK_gels:
            done = with_workspace([&](T *w, Int *size, Int *, Int *) {
                fortran(routine, &trans, m, n, &k, a, m, b, &ldb, w, size, &info);
            });
            break;
        case DT_LAPACK_gelsy:
            done = take_pivots(*n) && take_parts(2 * c->n);
            if (done)
                memset(pivots, 0, (size_t)*n * sizeof(Int));
            done = done && with_workspace([&](T *w, Int *size, Int *, Int *) {
                       with_parts(std::tuple(m, n, &k, a, m, b, &ldb, pivots,
                                             &condition, &rank, w, size),
                                  std::tuple(&info));
                   });
            break;
        case DT_LAPACK_gelsd:
            done = with_workspace([&](T *w, Int *size, Int *i, Int *) {
                with_parts(
                    std::tuple(m, n, &k, a, m, b, &ldb, s, &condition, &rank, w, size),
                    std::tuple(i, &info));
            });
            break;
        default:
            done = take_parts(5 * (int64_t)(*m < *n ? *m : *n)) &&
                   with_workspace([&](T *w, Int *size, Int *, Int *) {
                       with_parts(std::tuple(m, n, &k, a, m, b, &ldb, s, &condition,
                                             &rank, w, size),
                                  std::tuple(&info));
                   });
        }
        *out_rank = (int32_t)rank;
        return done;
    }

    bool run(void *const *at)
    {
        Int m = (Int)c->m, n = (Int)c->n, k = (Int)c->k;
        const int64_t least = c->m < c->n ? c->m : c->n;
        T *a = (T *)at[0], one(1);
        char uplo = triangle(), trans = turn(), left = 'L',
             unit = flag(DT_LAPACK_UNIT) ? 'U' : 'N',
             job = flag(DT_LAPACK_VECTORS) ? 'V' : 'N';
        int32_t *out_info = nullptr;
        bool done = true;
        info = 0;
        switch (c->op) {
        case DT_LAPACK_getrf:
            out_info = (int32_t *)at[2];
            if (!take_pivots(least))
                return false;
            fortran(routine, &m, &n, a, &m, pivots, &info);
            for (int64_t i = 0; i < least; i++)
                ((int32_t *)at[1])[i] = (int32_t)pivots[i];
            break;
        case DT_LAPACK_getrs:
            if (!take_pivots(n))
                return false;
            for (int64_t i = 0; i < n; i++) {
                int32_t p = ((int32_t *)at[1])[i]; /* the program may have made it */
                pivots[i] = p < 1 ? 1 : p > n ? n : p;
            }
            fortran(routine, &trans, &n, &k, a, &n, pivots, (T *)at[2], &n, &info);
            break;
        case DT_LAPACK_potrf:
            out_info = (int32_t *)at[1];
            fortran(routine, &uplo, &n, a, &n, &info);
            break;
        case DT_LAPACK_trsm:
            fortran(routine, &left, &uplo, &trans, &unit, &n, &k, &one, a, &n,
                    (T *)at[1], &n);
            break;
        case DT_LAPACK_geqrf:
            done = with_workspace([&](T *w, Int *size, Int *, Int *) {
                fortran(routine, &m, &n, a, &m, (T *)at[1], w, size, &info);
            });
            break;
        case DT_LAPACK_orgqr:
            done = with_workspace([&](T *w, Int *size, Int *, Int *) {
                fortran(routine, &m, &n, &k, a, &m, (T *)at[1], w, size, &info);
            });
            break;
        case DT_LAPACK_gesdd: {
            out_info = (int32_t *)at[4];
            T *u = (T *)at[1], *vh = (T *)at[3];
            Int ldv = flag(DT_LAPACK_FULL) ? n : (Int)least;
            const int64_t most = c->m < c->n ? c->n : c->m;
            job = !flag(DT_LAPACK_VECTORS) ? 'N' : flag(DT_LAPACK_FULL) ? 'A' : 'S';
            if (!is_finite(a, c->m * c->n))
                info = DT_LAPACK_NOT_FINITE;
            else
                done = take_ints(8 * least) &&
                       take_parts(least * (2 * most + 7 * least + 7)) &&
                       with_workspace([&](T *w, Int *size, Int *i, Int *) {
                           with_parts(std::tuple(&job, &m, &n, a, &m, (Part *)at[2],
                                                 u ? u : w, &m, vh ? vh : w, &ldv, w,
                                                 size),
                                      std::tuple(i, &info));
                       });
            break;
        }
        case DT_LAPACK_syevd:
            out_info = (int32_t *)at[2];
            if (!is_finite(a, c->n * c->n))
                info = DT_LAPACK_NOT_FINITE;
            else
                done = with_workspace([&](T *w, Int *size, Int *i, Int *isize) {
                    Part *values = (Part *)at[1];
                    if constexpr (is_complex<T>)
                        fortran(routine, &job, &uplo, &n, a, &n, values, w, size, parts,
                                &parts_size, i, isize, &info);
                    else
                        fortran(routine, &job, &uplo, &n, a, &n, values, w, size, i,
                                isize, &info);
                });
            break;
        case DT_LAPACK_geev: {
            out_info = (int32_t *)at[4];
            T *right = (T *)at[3];
            char none = 'N';
            if (!is_finite(a, c->n * c->n))
                info = DT_LAPACK_NOT_FINITE;
            else
                done = take_parts(2 * c->n) &&
                       with_workspace([&](T *w, Int *size, Int *, Int *) {
                           T *values = (T *)at[1], *imag = (T *)at[2];
                           if constexpr (is_complex<T>)
                               fortran(routine, &none, &job, &n, a, &n, values, w, &n,
                                       right ? right : w, &n, w, size, parts, &info);
                           else
                               fortran(routine, &none, &job, &n, a, &n, values, imag, w,
                                       &n, right ? right : w, &n, w, size, &info);
                           (void)imag;
                       });
            break;
        }
        default:
            out_info = (int32_t *)at[4];
            if (!is_finite(a, c->m * c->n) ||
                !is_finite((T *)at[1], (c->m > c->n ? c->m : c->n) * c->k))
                info = DT_LAPACK_NOT_FINITE;
            else
                done = solve_least_squares(a, &m, &n, at);
        }
        if (out_info)
            *out_info = (int32_t)info;
        return done;
    }
};
/* NOLINTEND(clang-analyzer-core.NullDereference) */

struct Batch {
    const dt_lapack_call *call;
    Routine routine;
    dt_lapack_operand operands[DT_LAPACK_OPERANDS];
    int count;
    int threads; /* of LAPACK, for each matrix */
    bool failed;
};

template <class T, class Int>
void run_some(Batch *b, int64_t begin, int64_t end)
{
    Solver<T, Int> solver;
    solver.c = b->call;
    solver.routine = b->routine.function;
    for (int64_t i = begin; i < end; i++) {
        void *at[DT_LAPACK_OPERANDS] = {};
        for (int o = 0; o < b->count; o++) {
            const dt_lapack_operand *each = &b->operands[o];
            size_t size = dt_dtype_size(each->dtype);
            if (each->size)
                at[o] = (char *)b->call->operands[o] + (size_t)(i * each->size) * size;
        }
        if (!solver.run(at)) {
            __atomic_store_n(&b->failed, true, __ATOMIC_RELAXED);
            return;
        }
    }
}

bool is_solve(const dt_lapack_call *call)
{
    return call->op == DT_LAPACK_getrs || call->op == DT_LAPACK_trsm;
}

/* The operations of one matrix, roughly. */
double work_of(const dt_lapack_call *call)
{
    double m = (double)call->m, n = (double)call->n;
    if (call->op == DT_LAPACK_potrf)
        return n * n * n / 3;
    return is_solve(call) ? n * n * (double)call->k : m * n * (m < n ? m : n);
}

/* How many threads LAPACK may use for one matrix. In LU, Cholesky and the solves they wait
 * for each other once per block: with two free cores instead of one, an inverse of 800 x 800
 * takes 0.6 of the time, Cholesky of 1200 x 1200 0.7; where other processes compute, 2 to 5
 * times as long. In the other routines they wait in each column: a QR of 800 x 800 takes 0.9
 * of the time, or 30 times as long. */
int threads_for(const dt_lapack_call *call)
{
    bool blocked =
        is_solve(call) || call->op == DT_LAPACK_getrf || call->op == DT_LAPACK_potrf;
    return blocked && call->batch == 1 && work_of(call) >= MANY ? dt_pool_threads() : 1;
}

void compute_matrices(void *context, int64_t begin, int64_t end)
{
    Batch *b = (Batch *)context;
    bool wide = b->routine.wide;
    int before = dt_blas_begin(b->threads);
    static void (*const by_type[])(Batch *, int64_t, int64_t) = {
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    run_some<type, int32_t>, run_some<type, int64_t>,
#define DT_DTYPE_COMPLEX DT_DTYPE_FLOAT
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
    };
    by_type[2 * (b->call->dtype - DT_FLOAT32) + wide](b, begin, end);
    dt_blas_end(before);
}

} // namespace

int dt_cpu_lapack(dt_stream, const dt_lapack_call *call)
{
    Batch b = {call, {}, {}, 0, threads_for(call), false};
    if (find(call->op, call->dtype, &b.routine))
        return -1;
    const int64_t sizes[] = {call->m, call->n, call->k};
    for (int64_t size : sizes)
        if (size > INT_MAX / 64) /* workspaces are some times the size */
            return dt_fail(DT_ERROR_RUNTIME,
                           "a matrix has a size of %lld; LAPACK takes sizes up to %d",
                           (long long)size, INT_MAX / 64);
    b.count = dt_lapack_operands(call, b.operands);
    double work = work_of(call);
    int64_t grain = work < SERIAL ? (int64_t)(SERIAL / (work + 1)) + 1 : 1;
    DT_WITHOUT_GIL(work * (double)call->batch > LONG);
    if (dt_pool_try(compute_matrices, &b, call->batch, grain) < 0)
        return -1;
    return b.failed ? dt_fail(DT_ERROR_HOST_MEMORY,
                              "no memory is left for LAPACK to work in; delete some "
                              "tensors first")
                    : 0;
}
