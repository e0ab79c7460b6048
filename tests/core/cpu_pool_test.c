/* The pool runs every item once: with many callers, nested, after forks, at any
 * number of threads. An interrupted caller stops. */
#include "cpu_support.h"
#include "base/interrupt.h"
#include "cpu/runtime/pool.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 10007 };

static void mark(void *context, int64_t begin, int64_t end)
{
    unsigned char *seen = context;
    for (int64_t i = begin; i < end; i++)
        seen[i]++;
}

static int run_once(int64_t count, int64_t grain)
{
    unsigned char *seen = calloc((size_t)count + 1, 1);
    dt_pool_run(mark, seen, count, grain);
    int wrong = seen[count] != 0;
    for (int64_t i = 0; i < count; i++)
        wrong += seen[i] != 1;
    free(seen);
    return wrong;
}

static void *many_runs(void *unused)
{
    (void)unused;
    intptr_t wrong = 0;
    for (int i = 0; i < 300; i++)
        wrong += run_once(1 + i * 7 % 300, 1 + i % 5);
    return (void *)wrong;
}

static void nested(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        if (run_once(100, 3))
            __atomic_store_n((int *)context, 1, __ATOMIC_RELAXED);
}

static void test_callers(void)
{
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, many_runs, NULL);
    CHECK(many_runs(NULL) == NULL, "each item once, from the first thread");
    for (int i = 0; i < 6; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL, "each item once, from six threads at once");
    }
}

static void *fork_often(void *unused)
{
    (void)unused;
    intptr_t wrong = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(run_once(COUNT, 10) || run_once(COUNT, 7));
        int status = -1;
        waitpid(child, &status, 0);
        wrong += status != 0;
    }
    return (void *)wrong;
}

/* --- interrupts --- */

static pthread_t caller;
static bool wanted; /* an interrupt of the caller; atomic */
static int ran, started;

static bool is_requested(void)
{
    return pthread_equal(pthread_self(), caller) &&
           __atomic_load_n(&wanted, __ATOMIC_RELAXED);
}

/* The first chunk asks for the interrupt. */
static void short_chunks(void *context, int64_t begin, int64_t end)
{
    (void)context, (void)begin, (void)end;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&wanted, true, __ATOMIC_RELAXED);
    while (!pthread_equal(pthread_self(), caller) && !dt_pool_is_stopping())
        sched_yield();
}

/* The caller's chunk ends when a worker has begun the other one, which goes on until the
 * caller, which waits by then, is interrupted. */
static void one_long_chunk(void *context, int64_t begin, int64_t end)
{
    (void)context, (void)begin, (void)end;
    __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&started, __ATOMIC_RELAXED) < 2)
        sched_yield();
    if (pthread_equal(pthread_self(), caller))
        return;
    __atomic_store_n(&wanted, true, __ATOMIC_RELAXED);
    while (!dt_pool_is_stopping())
        sched_yield();
}

/* The next check of this thread is due at once. */
static int run_interrupted(dt_pool_task task, int64_t count)
{
    dt_interrupt_set_due(1);
    int status = dt_pool_try(task, NULL, count, 1);
    wanted = false;
    dt_error_clear();
    return status;
}

static void test_interrupts(void)
{
    caller = pthread_self();
    dt_interrupt_start(is_requested);
    for (int threads = 1; threads <= 4; threads++) {
        dt_pool_set_threads(threads);
        wanted = true;
        ran = 0;
        CHECK(run_interrupted(short_chunks, 1) == -1 && ran == 0, "before one chunk");
        CHECK(run_interrupted(short_chunks, INT64_MAX / 2) == -1, "between chunks");
    }
    /* A worker takes one of two chunks, also where more workers were started than wanted. */
    for (int threads = 2; threads <= 5; threads++) {
        dt_pool_set_threads(threads);
        started = 0;
        CHECK(run_interrupted(one_long_chunk, 2) == -1, "while the caller waits");
    }
    dt_interrupt_set_due(DT_INTERRUPT_LATER);
    int status = 0;
    for (int64_t i = 0; i < INT64_C(10000000000) && !status; i++)
        status = dt_pool_try(short_chunks, NULL, 1, 1);
    CHECK(status == -1, "between short loops");
    dt_error_clear();
    wanted = true;
    ran = 0;
    dt_interrupt_set_due(1);
    dt_pool_run(short_chunks, NULL, 1, 1);
    dt_interrupt_set_due(DT_INTERRUPT_LATER);
    CHECK(ran == 1 && dt_pool_try(short_chunks, NULL, 1, 1) == 0, "a short call");
    dt_interrupt_set_due(DT_INTERRUPT_NEVER);
    dt_interrupt_start(NULL);
}

/* --- cores --- */

static pthread_t posting;
static int begun; /* threads that have an item; atomic */
static cpu_set_t worker_cores, worker_wants;

/* An item for each of two threads: each waits for the other. */
static void meet(void *context, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 20000 && __atomic_load_n(&begun, __ATOMIC_RELAXED) < 2; i++)
        usleep(100);
    if (pthread_equal(pthread_self(), posting))
        return;
    sched_getaffinity(0, sizeof worker_cores, &worker_cores);
    if (context)
        sched_setaffinity(0, sizeof worker_wants, &worker_wants);
}

/* Posts jobs from the core; how many others the worker may run on at last. */
static int post_from(int core, int jobs, bool worker_chooses)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(core, &here);
    sched_setaffinity(0, sizeof here, &here);
    for (int i = 0; i < jobs; i++) {
        begun = 0;
        CPU_ZERO(&worker_cores);
        dt_pool_run(meet, worker_chooses ? &begun : NULL, 2, 1);
        usleep(1000); /* the worker goes to sleep */
    }
    int others = CPU_COUNT(&worker_cores);
    return CPU_ISSET(core, &worker_cores) ? -1 : others;
}

/* --- which thread has which part --- */

enum { PARTS = 40 };
static bool by_caller[PARTS];

static void note_thread(void *posted_by, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        by_caller[i] = pthread_equal(*(pthread_t *)posted_by, pthread_self());
    usleep(100);
}

static void test_parts(void)
{
    pthread_t self = pthread_self();
    dt_cpu_set_num_threads(2);
    dt_pool_run(note_thread, &self, PARTS, 1);
    int changes = 0;
    for (int i = 1; i < PARTS; i++)
        changes += by_caller[i] != by_caller[i - 1];
    CHECK(by_caller[0] && changes <= 1, "the caller has the first parts");
}

static void test_cores(void)
{
    cpu_set_t all;
    int cores[2], found = 0;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &all))
            cores[found++] = i;
    if (found < 2)
        return;
    posting = pthread_self();
    dt_cpu_set_num_threads(2);
    run_once(COUNT, 10); /* the worker starts with all cores */
    int others = CPU_COUNT(&all) - 1;
    CHECK(post_from(cores[0], 3, false) == others, "the worker leaves the first core");
    CHECK(post_from(cores[1], 3, false) == others, "and the second, and may return");
    CPU_ZERO(&worker_wants);
    CPU_SET(cores[1], &worker_wants);
    post_from(cores[1], 1, true);
    CHECK(post_from(cores[1], 3, false) == -1,
          "it stays where the program wants it, on the caller's core");
    CHECK(post_from(cores[0], 3, false) == 1, "and elsewhere");
    worker_wants = all;
    post_from(cores[1], 1, true);
    CHECK(post_from(cores[1], 3, false) == others, "until the program wants else");
    sched_setaffinity(0, sizeof all, &all);
}

int main(void)
{
    test_cores();
    test_parts();
    for (int threads = 1; threads <= 5; threads++) {
        CHECK(dt_cpu_set_num_threads(threads) == 0, "%d threads", threads);
        CHECK(dt_cpu_get_num_threads() == threads, "%d threads", threads);
        for (int64_t grain = 1; grain < 20000; grain *= 7)
            CHECK(run_once(COUNT, grain) == 0, "%d threads, grain %d", threads,
                  (int)grain);
        CHECK(run_once(0, 5) == 0 && run_once(1, 5) == 0, "next to nothing");
        int failed = 0;
        dt_pool_run(nested, &failed, 40, 1);
        CHECK(!failed, "work inside of work");
    }
    CHECK(dt_cpu_set_num_threads(0) == -1, "no threads at all");
    dt_error_clear();
    test_callers();
    test_interrupts();
    /* ThreadSanitizer does not follow into children of a threaded process. */
#if !defined(__SANITIZE_THREAD__)
    CHECK(fork_often(NULL) == NULL, "children work on their own");
    pthread_t busy, forking;
    pthread_create(&busy, NULL, many_runs, NULL);
    pthread_create(&forking, NULL, fork_often, NULL);
    void *wrong;
    pthread_join(busy, &wrong);
    CHECK(wrong == NULL, "work while another thread forks");
    pthread_join(forking, &wrong);
    CHECK(wrong == NULL, "children of a busy process");
#endif
    return failures != 0;
}
