/* How many threads the BLAS that was found uses.
 *
 * MKL and OpenMP have a number per thread: a call lowers that of its own thread. OpenBLAS
 * with threads of its own and BLIS have one per process, and NumPy may use the same
 * library: of our concurrent calls the first saves the number, each lowers it to its own
 * limit, the last restores it. If the number changed meanwhile, the program set it (by
 * threadpoolctl, say), and it stays.
 *
 * A library that nobody else uses gets 1 for good: OpenBLAS stops its threads when the
 * process forks, and a call that used them then never returns. */
#include <string.h>

#include "base/lock.h"
#include "cpu/runtime/blas.h"

static struct {
    int (*get)(void);
    void (*set)(int);
    int (*exchange)(int);     /* the thread's number; NULL: the process has one */
    int64_t (*get_dim)(void); /* BLIS's */
    void (*set_dim)(int64_t);
    /* For libraries with one number of threads for the process: */
    int calls;     /* that run now */
    int kept, now; /* before them, and for them */
    unsigned forks;
} threads;

static int blis_get(void)
{
    return (int)threads.get_dim();
}

static void blis_set(int number)
{
    threads.set_dim(number);
}

static int openmp_exchange(int number)
{
    int before = threads.get();
    threads.set(number);
    return before;
}

void dt_blas_find_threads(bool alone)
{
    int (*parallel)(void) = NULL;
    DT_BLAS_FUNCTION(parallel, "openblas_get_parallel");
    DT_BLAS_FUNCTION(threads.exchange, "MKL_Set_Num_Threads_Local");
    DT_BLAS_FUNCTION(threads.set_dim, "bli_thread_set_num_threads");
    if (threads.exchange) {
        DT_BLAS_FUNCTION(threads.get, "MKL_Get_Max_Threads");
    } else if (threads.set_dim) {
        DT_BLAS_FUNCTION(threads.get_dim, "bli_thread_get_num_threads");
        threads.get = blis_get;
        threads.set = blis_set;
    } else if (parallel && parallel() == 2) {
        /* openblas_set_num_threads would free buffers that calls of NumPy's use. */
        DT_BLAS_FUNCTION(threads.get, "omp_get_max_threads");
        DT_BLAS_FUNCTION(threads.set, "omp_set_num_threads");
        threads.exchange = threads.set ? openmp_exchange : NULL;
    } else {
        DT_BLAS_FUNCTION(threads.get, "openblas_get_num_threads");
        DT_BLAS_FUNCTION(threads.set, "openblas_set_num_threads");
    }
    if (!threads.get)
        threads.set = NULL;
    if (alone && threads.set && !threads.exchange) {
        threads.set(1);
        threads.set = NULL;
    }
}

int dt_blas_begin(int most)
{
    if (threads.exchange) {
        int now = threads.get();
        return threads.exchange(most < now ? most : now);
    }
    if (!threads.set)
        return DT_BLAS_UNCHANGED;
    dt_lock(DT_LOCK_BLAS);
    if (threads.forks != dt_forks()) { /* the parent's calls are not this process's */
        threads.forks = dt_forks();
        if (threads.calls && threads.get() == threads.now)
            threads.set(threads.kept);
        threads.calls = 0;
    }
    int found = threads.get();
    if (!threads.calls++ || found != threads.now)
        threads.kept = threads.now = found;
    if (most < found) {
        threads.now = most;
        threads.set(most);
    }
    dt_unlock(DT_LOCK_BLAS);
    return 0;
}

void dt_blas_end(int before)
{
    if (before == DT_BLAS_UNCHANGED)
        return;
    if (threads.exchange) {
        threads.exchange(before);
        return;
    }
    dt_lock(DT_LOCK_BLAS);
    if (!--threads.calls && threads.now != threads.kept && threads.get() == threads.now)
        threads.set(threads.kept);
    dt_unlock(DT_LOCK_BLAS);
}
