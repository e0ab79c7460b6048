/* A BLAS and LAPACK that compute nothing, for tests/test_blas_threads.py. The number of
 * threads is kept as that of OPENBLAS, OPENMP (OpenBLAS built with it), MKL or BLIS is. */
#include <stdint.h>

#define FAKE __attribute__((visibility("default")))

FAKE void (*hook)(void); /* runs in each call */
static int most;         /* threads that a call since most_used() could use */

#if defined(OPENBLAS)
static int number = 4;
FAKE int openblas_get_num_threads(void)
{
    return number;
}
FAKE void openblas_set_num_threads(int n)
{
    number = n;
}
FAKE int get(void)
{
    return number;
}
FAKE void set(int n)
{
    number = n;
}
#elif defined(OPENMP)
static __thread int number = 4;
FAKE int openblas_get_parallel(void)
{
    return 2;
}
FAKE int openblas_get_num_threads(void)
{
    return number;
}
FAKE void openblas_set_num_threads(int n)
{
    number = -n;
} /* is not to be called */
FAKE int omp_get_max_threads(void)
{
    return number;
}
FAKE void omp_set_num_threads(int n)
{
    number = n;
}
FAKE int get(void)
{
    return number;
}
FAKE void set(int n)
{
    number = n;
}
#elif defined(MKL)
static int all = 4;
static __thread int local; /* 0: as `all` */
FAKE int MKL_Get_Max_Threads(void)
{
    return local ? local : all;
}
FAKE int MKL_Set_Num_Threads_Local(int n)
{
    int before = local;
    local = n;
    return before;
}
FAKE int get(void)
{
    return MKL_Get_Max_Threads();
}
FAKE void set(int n)
{
    all = n;
}
#else
static int64_t number = 4;
FAKE int64_t bli_thread_get_num_threads(void)
{
    return number;
}
FAKE void bli_thread_set_num_threads(int64_t n)
{
    number = n;
}
FAKE int get(void)
{
    return (int)number;
}
FAKE void set(int n)
{
    number = n;
}
#endif

static void called(void)
{
    int now = get(), before = __atomic_load_n(&most, __ATOMIC_RELAXED);
    while (before < now &&
           !__atomic_compare_exchange_n(&most, &before, now, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {}
    if (hook)
        hook();
}

FAKE int most_used(void)
{
    return __atomic_exchange_n(&most, 0, __ATOMIC_RELAXED);
}

FAKE void cblas_sgemm(void)
{
    called();
}
FAKE void cblas_dgemm(void)
{
    called();
}
FAKE void spotrf_(const char *uplo, int *n, float *a, int *lda, int *info)
{
    (void)uplo, (void)n, (void)a, (void)lda;
    called();
    *info = 0;
}
FAKE void sgeqrf_(int *m, int *n, float *a, int *lda, float *tau, float *work,
                  int *size, int *info)
{
    (void)m, (void)a, (void)lda, (void)tau;
    if (*size == -1)
        *work = (float)*n;
    else
        called();
    *info = 0;
}
