#include "cpu/runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/gil.h"
#include "base/interrupt.h"
#include "base/lock.h"
#include "base/relax.h"
#include "cpu/runtime/cpu.h"
#include "cpu/runtime/pool_cores.h"

/* Nanoseconds that a thread spins before it sleeps. To wake a worker takes 20000 to 80000,
 * as long as a product of two 256 x 256 matrices: so one whose last wait was shorter than
 * SPIN_LONG spins that long in the next. */
#define SPIN_SHORT 20000
#define SPIN_LONG  200000
/* Nanoseconds that a caller sleeps before it asks whether it is interrupted. */
#define PATIENCE 50000000

#define POOL_MUTEX (&dt_locks->locks[DT_LOCK_POOL])

/* A parallel loop, on its caller's stack; listed while it has unclaimed chunks.
 *
 * The caller claims chunks from the first up, workers from the last down. So each core keeps
 * the same part of memory in its cache when several loops go over it. */
typedef struct job {
    dt_pool_task task;
    void *context;
    int64_t count, grain;
    uint64_t chunks;  /* at most 2^31 */
    uint64_t claimed; /* by the caller, and by workers times BY_WORKER; atomic */
    int core;         /* where the caller posted it */
    int helpers;  /* workers in this job; written under the lock, read by the caller */
    bool waiting; /* the caller sleeps until helpers is 0 */
    bool stops;   /* if the caller is interrupted */
    bool stopped; /* it was; atomic */
    pthread_cond_t done;
    struct job *previous, *following;
} job;

static struct {
    pthread_cond_t wake;
    job *jobs;
    unsigned posted; /* counts jobs, so that spinning workers notice a new one;
                        atomic */
    int wanted;      /* threads, the caller included; 0: undecided; atomic */
    int workers;     /* running threads */
    int sleepers;
    bool stopping;
    unsigned forks; /* of the process that has the workers */
    pthread_t threads[DT_POOL_MAX_THREADS];
} pool = {.wake = PTHREAD_COND_INITIALIZER};

/* Whose chunk the thread runs. */
static _Thread_local job *running;

static int cores(void)
{
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) {
        int count = CPU_COUNT(&set);
        if (count > 0)
            return count;
    }
    /* More processors than cpu_set_t holds. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int dt_pool_threads(void)
{
    int wanted = __atomic_load_n(&pool.wanted, __ATOMIC_RELAXED);
    if (wanted)
        return wanted;
    const char *text = getenv("PYDEVTENSOR_NUM_THREADS");
    char *end = NULL;
    long threads = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || threads < 1)
        threads = cores();
    if (threads > DT_POOL_MAX_THREADS)
        threads = DT_POOL_MAX_THREADS;
    /* dt_pool_set_threads may have run meanwhile: the first value wins. */
    int none = 0;
    if (__atomic_compare_exchange_n(&pool.wanted, &none, (int)threads, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return (int)threads;
    return none;
}

void dt_pool_set_threads(int threads)
{
    if (threads < 1)
        threads = 1;
    if (threads > DT_POOL_MAX_THREADS)
        threads = DT_POOL_MAX_THREADS;
    __atomic_store_n(&pool.wanted, threads, __ATOMIC_RELAXED);
}

#define BY_CALLER ((uint64_t)1)
#define BY_WORKER ((uint64_t)1 << 32)

static bool are_left(const job *j, uint64_t claimed)
{
    return claimed / BY_WORKER + claimed % BY_WORKER < j->chunks;
}

/* Whether to stop. A worker is never interrupted itself: it sees that the caller was. */
static bool is_stopping(job *j)
{
    if (!j->stops)
        return false;
    if (__atomic_load_n(&j->stopped, __ATOMIC_RELAXED))
        return true;
    if (dt_interrupt_check_rarely() == 0)
        return false;
    __atomic_store_n(&j->stopped, true, __ATOMIC_RELAXED);
    __atomic_store_n(&j->claimed, j->chunks, __ATOMIC_RELAXED);
    return true;
}

bool dt_pool_is_stopping(void)
{
    return running && is_stopping(running);
}

/* Claims and runs chunks until none is left. who: BY_CALLER or BY_WORKER. */
static void work(job *j, uint64_t who)
{
    job *outer = running;
    running = j;
    for (;;) {
        uint64_t claimed = __atomic_fetch_add(&j->claimed, who, __ATOMIC_RELAXED);
        if (!are_left(j, claimed) || is_stopping(j))
            break;
        uint64_t chunk = who == BY_CALLER ? claimed % BY_WORKER
                                          : j->chunks - 1 - claimed / BY_WORKER;
        int64_t begin = (int64_t)chunk * j->grain;
        int64_t end = j->count - begin > j->grain ? begin + j->grain : j->count;
        j->task(j->context, begin, end);
    }
    running = outer;
}

/* The lock is held. */
static job *find_job(void)
{
    for (job *j = pool.jobs; j; j = j->following)
        if (are_left(j, __atomic_load_n(&j->claimed, __ATOMIC_RELAXED)))
            return j;
    return NULL;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reads the clock now and then, since that takes longer than to look at `value`. */
static void spin_while(const unsigned *value, unsigned seen, int64_t end)
{
    do {
        for (int i = 0; i < 20; i++) {
            if (__atomic_load_n(value, __ATOMIC_RELAXED) != seen)
                return;
            DT_RELAX();
        }
    } while (now() < end);
}

static void *worker(void *number)
{
    int self = (int)(intptr_t)number;
    int caller = -1; /* core of the last job's caller */
    int64_t spin = SPIN_SHORT;
    dt_lock(DT_LOCK_POOL);
    while (!pool.stopping) {
        bool idle = self >= __atomic_load_n(&pool.wanted, __ATOMIC_RELAXED) - 1;
        job *j = idle ? NULL : find_job();
        if (j) {
            __atomic_fetch_add(&j->helpers, 1, __ATOMIC_RELAXED);
            caller = j->core;
            dt_pool_cores_work(self);
            dt_unlock(DT_LOCK_POOL);
            work(j, BY_WORKER);
            dt_lock(DT_LOCK_POOL);
            /* The job may be gone after this, unless its caller sleeps. */
            bool waiting = j->waiting;
            if (__atomic_sub_fetch(&j->helpers, 1, __ATOMIC_RELEASE) == 0 && waiting)
                pthread_cond_signal(&j->done);
            continue;
        }
        dt_pool_cores_wait(self, caller);
        unsigned seen = __atomic_load_n(&pool.posted, __ATOMIC_RELAXED);
        int64_t begin = now();
        if (!idle) {
            dt_unlock(DT_LOCK_POOL);
            spin_while(&pool.posted, seen, begin + spin);
            dt_lock(DT_LOCK_POOL);
        }
        while (__atomic_load_n(&pool.posted, __ATOMIC_RELAXED) == seen &&
               !pool.stopping) {
            pool.sleepers++;
            pthread_cond_wait(&pool.wake, POOL_MUTEX);
            pool.sleepers--;
        }
        spin = now() - begin < SPIN_LONG ? SPIN_LONG : SPIN_SHORT;
    }
    dt_unlock(DT_LOCK_POOL);
    return NULL;
}

/* Takes the lock. A forked child has no workers. */
static void enter(void)
{
    dt_lock(DT_LOCK_POOL);
    if (pool.forks == dt_forks())
        return;
    pool.forks = dt_forks();
    pthread_cond_init(&pool.wake, NULL);
    pool.jobs = NULL;
    pool.workers = 0;
    pool.sleepers = 0;
}

/* Starts the missing workers; the lock is held. */
static void start_workers(int threads)
{
    sigset_t all, old;
    sigfillset(&all);
    /* Signals are for the program's own threads. */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.workers < threads - 1) {
        dt_pool_cores_add(pool.workers);
        if (pthread_create(&pool.threads[pool.workers], NULL, worker,
                           (void *)(intptr_t)pool.workers))
            break;
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Waits until no worker is in the job; the lock is held. */
static void await_workers(job *j)
{
    j->waiting = true;
    while (__atomic_load_n(&j->helpers, __ATOMIC_ACQUIRE)) {
        if (!j->stops) {
            pthread_cond_wait(&j->done, POOL_MUTEX);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PATIENCE;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!pthread_cond_timedwait(&j->done, POOL_MUTEX, &until))
            continue;
        dt_unlock(DT_LOCK_POOL);
        is_stopping(j);
        dt_lock(DT_LOCK_POOL);
    }
}

static int run_chunks(dt_pool_task task, void *context, int64_t count, int64_t grain,
                      bool stops)
{
    if (count <= 0)
        return 0;
    if (grain < 1)
        grain = 1;
    if (count / grain >= 1 << 30)
        grain = count >> 30;
    int threads = dt_pool_threads();
    job j = {.task = task,
             .context = context,
             .count = count,
             .grain = grain,
             .chunks = (uint64_t)((count - 1) / grain + 1),
             .stops = stops,
             .done = PTHREAD_COND_INITIALIZER};
    DT_WITHOUT_GIL(count > grain);
    if (count <= grain || threads == 1) {
        work(&j, BY_CALLER);
        return j.stopped ? -1 : 0;
    }
    enter();
    if (pool.workers < threads - 1 && !pool.stopping)
        start_workers(threads);
    j.core = dt_pool_cores_post(pool.workers);
    j.following = pool.jobs;
    if (pool.jobs)
        pool.jobs->previous = &j;
    pool.jobs = &j;
    __atomic_fetch_add(&pool.posted, 1, __ATOMIC_RELAXED);
    if (pool.sleepers) {
        /* One signal could wake a worker beyond the wanted ones, which sleeps again. */
        if (j.chunks > 2 || pool.workers >= threads)
            pthread_cond_broadcast(&pool.wake);
        else
            pthread_cond_signal(&pool.wake);
    }
    dt_unlock(DT_LOCK_POOL);

    work(&j, BY_CALLER);

    dt_lock(DT_LOCK_POOL);
    if (j.previous)
        j.previous->following = j.following;
    else
        pool.jobs = j.following;
    if (j.following)
        j.following->previous = j.previous;
    if (__atomic_load_n(&j.helpers, __ATOMIC_ACQUIRE)) {
        /* No new worker can join; each one inside finishes its last chunk. */
        dt_unlock(DT_LOCK_POOL);
        int64_t end = now() + SPIN_SHORT;
        do {
            if (!__atomic_load_n(&j.helpers, __ATOMIC_ACQUIRE))
                break;
            DT_RELAX();
        } while (now() < end);
        dt_lock(DT_LOCK_POOL);
        await_workers(&j);
    }
    dt_unlock(DT_LOCK_POOL);
    pthread_cond_destroy(&j.done);
    return j.stopped ? -1 : 0;
}

void dt_pool_run(dt_pool_task task, void *context, int64_t count, int64_t grain)
{
    run_chunks(task, context, count, grain, false);
}

int dt_pool_try(dt_pool_task task, void *context, int64_t count, int64_t grain)
{
    return run_chunks(task, context, count, grain, true);
}

/* Runs before the library is unloaded, at exit or by dlclose. */
__attribute__((destructor)) static void stop(void)
{
    enter();
    pool.stopping = true;
    int workers = pool.workers;
    __atomic_fetch_add(&pool.posted, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&pool.wake);
    dt_unlock(DT_LOCK_POOL);
    for (int i = 0; i < workers; i++)
        pthread_join(pool.threads[i], NULL);
    pool.workers = 0;
}

int dt_cpu_set_num_threads(int threads)
{
    if (threads < 1)
        return dt_fail(DT_ERROR_RUNTIME,
                       "set_num_threads: %d is not a number of threads; give 1 or more",
                       threads);
    dt_pool_set_threads(threads);
    return 0;
}

int dt_cpu_get_num_threads(void)
{
    return dt_pool_threads();
}
