/* The allocator: alignment, reuse, counters, limits, failures, threads. */
#include "cpu_support.h"

#include <pthread.h>

static const dt_backend *cpu;

static void test_sizes(void)
{
    enum { COUNT = 400 };
    static char *blocks[COUNT];
    static size_t bytes[COUNT];
    dt_memory_stats before, after;
    cpu->memory_stats(0, &before);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            bytes[i] = 1 + noise() % ((size_t)1 << noise() % 24);
            CHECK(cpu->allocate(stream, bytes[i], (void **)&blocks[i]) == 0,
                  "%zu bytes", bytes[i]);
            CHECK((uintptr_t)blocks[i] % 64 == 0, "%zu bytes are aligned", bytes[i]);
            memset(blocks[i], i, bytes[i]);
        }
        for (int i = 0; i < COUNT; i++)
            for (size_t at = 0; at < bytes[i]; at += 1 + bytes[i] / 64)
                if (blocks[i][at] != (char)i) {
                    CHECK(false, "blocks overlap");
                    break;
                }
        for (int i = 0; i < COUNT; i++)
            cpu->release(0, blocks[i], bytes[i]);
    }
    cpu->memory_stats(0, &after);
    CHECK(after.allocated_bytes.current == before.allocated_bytes.current,
          "all is given back");
    CHECK(after.requested_bytes.current == 0 && after.allocation.current == 0,
          "none is live");
    CHECK(after.allocation.allocated - before.allocation.allocated == 3 * COUNT,
          "count");
    CHECK(after.allocated_bytes.peak >= after.requested_bytes.peak, "peaks");
    CHECK(after.reserved_bytes.current >= 0, "reserved");
    cpu->empty_cache(0);
    cpu->memory_stats(0, &after);
    CHECK(after.reserved_bytes.current == 0 && after.segment.current == 0,
          "an empty cache holds %lld bytes", (long long)after.reserved_bytes.current);
    cpu->reset_peaks(0);
    cpu->memory_stats(0, &after);
    CHECK(after.allocated_bytes.peak == 0, "peaks start again");
}

static void test_reuse(void)
{
    size_t sizes[] = {1, 100, 5000, (size_t)1 << 20, (size_t)5 << 20, (size_t)40 << 20};
    bool cached = true;
#if defined(__SANITIZE_ADDRESS__)
    cached = false;
#endif
    for (int i = 0; i < 6; i++) {
        void *first, *second;
        cpu->allocate(stream, sizes[i], &first);
        cpu->release(0, first, sizes[i]);
        cpu->allocate(stream, sizes[i], &second);
        CHECK(!cached || first == second, "%zu bytes are reused at once", sizes[i]);
        cpu->release(0, second, sizes[i]);
    }
    /* A slightly smaller request takes a larger block, and returns it whole. */
    void *a, *b;
    cpu->allocate(stream, (size_t)30 << 20, &a);
    cpu->release(0, a, (size_t)30 << 20);
    cpu->allocate(stream, (size_t)25 << 20, &b);
    memset(b, 1, (size_t)25 << 20);
    cpu->release(0, b, (size_t)25 << 20);
    cpu->empty_cache(0);
    dt_memory_stats stats;
    cpu->memory_stats(0, &stats);
    CHECK(stats.reserved_bytes.current == 0, "%lld",
          (long long)stats.reserved_bytes.current);
}

static void test_cap(void)
{
    /* Far more than the cache keeps; none of it is touched. */
    for (int i = 0; i < 64; i++) {
        void *blocks[4];
        for (int j = 0; j < 4; j++)
            CHECK(cpu->allocate(stream, ((size_t)150 + (size_t)i) << 20, &blocks[j]) ==
                      0,
                  "%s", dt_error_slot()->text);
        for (int j = 0; j < 4; j++)
            cpu->release(0, blocks[j], ((size_t)150 + (size_t)i) << 20);
    }
    dt_memory_stats stats;
    cpu->memory_stats(0, &stats);
    CHECK(stats.reserved_bytes.current <= (int64_t)2 << 30,
          "the cache keeps %lld bytes", (long long)stats.reserved_bytes.current);
    cpu->empty_cache(0);
}

static void test_too_much(void)
{
    size_t sizes[] = {(size_t)1 << 60, SIZE_MAX, SIZE_MAX - 100, (size_t)1 << 45};
    for (int i = 0; i < 4; i++) {
        void *data = NULL;
        char text[32];
        snprintf(text, sizeof text, "%zu", sizes[i]);
        CHECK(cpu->allocate(stream, sizes[i], &data) == -1, "%zu bytes cannot be had",
              sizes[i]);
        CHECK(dt_error_slot()->code == DT_ERROR_CPU_TENSOR_MEMORY &&
                  strstr(dt_error_slot()->text, text),
              "the error names the bytes: %s", dt_error_slot()->text);
        dt_error_clear();
    }
    size_t free_bytes = 0, total = 0;
    CHECK(cpu->memory_info(0, &free_bytes, &total) == 0 && total > 0 &&
              free_bytes <= total,
          "memory_info");
}

static void *churn(void *seed)
{
    uint64_t state = (uint64_t)(intptr_t)seed;
    char *blocks[50] = {NULL};
    size_t bytes[50] = {0};
    intptr_t wrong = 0;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (unsigned)(state >> 33) % 50;
        if (blocks[slot]) {
            wrong += blocks[slot][0] != (char)slot ||
                     blocks[slot][bytes[slot] - 1] != (char)slot;
            cpu->release(0, blocks[slot], bytes[slot]);
        }
        bytes[slot] = 1 + (size_t)(state >> 40) % (i % 100 ? 3000 : 3000000);
        cpu->allocate(stream, bytes[slot], (void **)&blocks[slot]);
        blocks[slot][0] = blocks[slot][bytes[slot] - 1] = (char)slot;
    }
    for (int i = 0; i < 50; i++)
        if (blocks[i])
            cpu->release(0, blocks[i], bytes[i]);
    return (void *)wrong;
}

static void test_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(intptr_t)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL, "blocks of threads do not meet");
    }
    dt_memory_stats stats;
    cpu->memory_stats(0, &stats);
    CHECK(stats.allocation.current == 0 && stats.allocated_bytes.current == 0,
          "none is live");
    cpu->empty_cache(0);
}

int main(void)
{
    cpu = dt_cpu_backend();
    test_sizes();
    test_reuse();
    test_cap();
    test_too_much();
    test_threads();
    return failures != 0;
}
