/* The pool runs every item once: with many callers, nested, after forks, at any
 * number of threads. */
#include "cpu_support.h"
#include "cpu/runtime/pool.h"

#include <pthread.h>
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

int main(void)
{
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
