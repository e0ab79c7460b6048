#include "cpu/runtime/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "base/lock.h"
#include "base/sanitizer.h"

/* Sizes are rounded up to size classes, four per power of two, so at most a fifth is
 * wasted. Small blocks come from malloc. Larger ones are mapped with huge pages,
 * since page faults dominate the cost of a fresh result. */
#define ALIGNMENT 64
#define LARGE     ((size_t)1 << 20)
#define HUGE_PAGE ((size_t)2 << 20)
#define CLASSES   256

/* A cached block holds its own links. The oldest large block is evicted first. */
typedef struct block {
    struct block *next, *previous; /* in the bin */
    struct block *newer, *older;   /* large blocks by age */
    size_t size;
} block;

static struct {
    bool ready, bypass;
    size_t limit, cached, memory;
    block *bins[CLASSES];
    block *newest, *oldest;
    dt_memory_stats stats;
} heap;

/* Parses bytes with an optional suffix K, M, G or T. -1 if malformed. */
static int64_t parse_bytes(const char *text)
{
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || !(number >= 0))
        return -1;
    static const char suffixes[] = "KMGT";
    if (*end) {
        const char *found = strchr(suffixes, *end & ~0x20);
        if (!found || !(*end & ~0x20))
            return -1;
        for (const char *s = suffixes; s <= found; s++)
            number *= 1024;
        end++;
        if (*end == 'i')
            end++;
        if (*end == 'B' || *end == 'b')
            end++;
        if (*end)
            return -1;
    }
    return number < 9e18 ? (int64_t)number : INT64_MAX;
}

/* Reads a number of bytes from a kernel file; 0 if it holds none ("max"). */
static size_t read_limit(const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long value = 0;
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &value) != 1)
        value = 0;
    fclose(file);
    return (size_t)value;
}

static void start_allocator(void)
{
    struct sysinfo info;
    size_t memory = (size_t)1 << 32, swap = 0;
    if (!sysinfo(&info)) {
        memory = (size_t)info.totalram * info.mem_unit;
        swap = (size_t)info.totalswap * info.mem_unit;
    }
    size_t group = read_limit("/sys/fs/cgroup/memory.max");
    heap.memory = memory + swap;
    if (group && group < memory)
        memory = group;
    size_t limit = memory / 8;
    if (limit > (size_t)1 << 30)
        limit = (size_t)1 << 30;
    const char *text = getenv("PYDEVTENSOR_CPU_CACHE");
    int64_t chosen = text && *text ? parse_bytes(text) : -1;
    if (chosen >= 0)
        limit = (size_t)chosen;
    heap.limit = limit;
    /* A sanitizer must see every allocation and release at its own size. */
    heap.bypass = DT_ASAN || limit == 0;
}

static void ensure_started(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!__atomic_load_n(&heap.ready, __ATOMIC_ACQUIRE)) {
        pthread_once(&once, start_allocator);
        __atomic_store_n(&heap.ready, true, __ATOMIC_RELEASE);
    }
}

size_t dt_cpu_cache_limit(void)
{
    ensure_started();
    return heap.bypass ? 0 : heap.limit;
}

/* The size class of a request and, in *size, the rounded size. */
static int class_of(size_t bytes, size_t *size)
{
    if (bytes <= ALIGNMENT) {
        *size = ALIGNMENT;
        return 0;
    }
    size_t last = bytes - 1;
    int top = 63 - __builtin_clzll((unsigned long long)last);
    int shift = top - 2;
    size_t rounded = ((last >> shift) + 1) << shift;
    *size = (rounded + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return 4 * (top - 5) + (int)((last >> shift) & 3);
}

/* Length of a large block's mapping. */
static size_t mapped(size_t size)
{
    return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

static void *from_system(size_t size)
{
    if (size < LARGE || heap.bypass) {
        void *data = NULL;
        return posix_memalign(&data, ALIGNMENT, size) ? NULL : data;
    }
    size_t length = mapped(size);
    char *start_of = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start_of == MAP_FAILED)
        return NULL;
    char *data = (char *)(((uintptr_t)start_of + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    size_t before = (size_t)(data - start_of), after = HUGE_PAGE - before;
    if (before)
        munmap(start_of, before);
    if (after)
        munmap(data + length, after);
    madvise(data, length, MADV_HUGEPAGE); /* a hint */
    return data;
}

static void to_system(void *data, size_t size)
{
    if (size < LARGE || heap.bypass)
        free(data);
    else
        munmap(data, mapped(size));
}

/* Removes a block from the cache; the lock is held. */
static void take_out(block *b, int bin)
{
    if (b->previous)
        b->previous->next = b->next;
    else
        heap.bins[bin] = b->next;
    if (b->next)
        b->next->previous = b->previous;
    if (b->size >= LARGE) {
        *(b->newer ? &b->newer->older : &heap.newest) = b->older;
        *(b->older ? &b->older->newer : &heap.oldest) = b->newer;
    }
    heap.cached -= b->size;
}

/* Counts memory taken from or returned to the system; the lock is held. */
static void count_segment(int64_t change, size_t size)
{
    dt_memory_count(&heap.stats.reserved_bytes, change * (int64_t)size);
    dt_memory_count(&heap.stats.segment, change);
}

/* Takes a block out of the cache, to be given back by release_all; the lock is held. */
static void evict(block *b, int bin, block **unwanted)
{
    take_out(b, bin);
    count_segment(-1, b->size);
    b->next = *unwanted;
    *unwanted = b;
}

static void release_all(block *unwanted)
{
    while (unwanted) {
        block *next = unwanted->next;
        to_system(unwanted, unwanted->size);
        unwanted = next;
    }
}

static void put_in(block *b, int bin, size_t size)
{
    b->size = size;
    b->previous = NULL;
    b->next = heap.bins[bin];
    if (b->next)
        b->next->previous = b;
    heap.bins[bin] = b;
    if (size >= LARGE) {
        b->newer = NULL;
        b->older = heap.newest;
        *(heap.newest ? &heap.newest->newer : &heap.oldest) = b;
        heap.newest = b;
    }
    heap.cached += size;
}

static int fail_for_memory(size_t bytes)
{
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    heap.stats.num_ooms++;
    size_t used = (size_t)heap.stats.allocated_bytes.current;
    dt_unlock(lock);
    return dt_fail(
        DT_ERROR_CPU_TENSOR_MEMORY,
        "no memory on the CPU for %zu bytes (%.2f GiB): this machine has %.2f GiB, of "
        "which tensors use %.2f GiB; use smaller tensors or delete some first",
        bytes, (double)bytes / (1 << 30), (double)heap.memory / (1 << 30),
        (double)used / (1 << 30));
}

int dt_cpu_allocate(dt_stream stream, size_t bytes, void **out)
{
    (void)stream;
    ensure_started();
    if (bytes == 0)
        bytes = 1;
    /* Linux overcommits and would kill the process on use. */
    if (bytes > heap.memory)
        return fail_for_memory(bytes);
    size_t size = bytes;
    int bin = heap.bypass ? 0 : class_of(bytes, &size);
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    block *b = heap.bypass ? NULL : heap.bins[bin];
    /* A slightly larger block also fits, and its pages are already mapped. */
    for (int more = 1; !b && more <= 2 && size >= LARGE && bin + more < CLASSES; more++)
        if ((b = heap.bins[bin + more]) != NULL)
            bin += more;
    if (b) {
        take_out(b, bin);
        /* Release only knows the requested size, so trim the block to its own class. */
        if (b->size != size) {
            dt_memory_count(&heap.stats.reserved_bytes,
                            (int64_t)size - (int64_t)b->size);
            size_t had = mapped(b->size), needs = mapped(size);
            dt_unlock(lock);
            if (had > needs)
                munmap((char *)b + needs, had - needs);
            lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
        }
    }
    if (!b) {
        dt_unlock(lock);
        b = from_system(size);
        if (!b && heap.cached) {
            dt_cpu_empty_cache(0);
            b = from_system(size);
            lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
            heap.stats.num_alloc_retries++;
            dt_unlock(lock);
        }
        if (!b)
            return fail_for_memory(bytes);
        lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
        count_segment(1, size);
    }
    dt_memory_count(&heap.stats.allocated_bytes, (int64_t)size);
    dt_memory_count(&heap.stats.requested_bytes, (int64_t)bytes);
    dt_memory_count(&heap.stats.allocation, 1);
    dt_unlock(lock);
    *out = b;
    return 0;
}

void dt_cpu_release(int device, void *data, size_t bytes)
{
    (void)device;
    if (!data)
        return;
    if (bytes == 0)
        bytes = 1;
    size_t size = bytes;
    int bin = heap.bypass ? 0 : class_of(bytes, &size);
    bool keep = !heap.bypass && size <= heap.limit;
    block *unwanted = NULL;
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    dt_memory_count(&heap.stats.allocated_bytes, -(int64_t)size);
    dt_memory_count(&heap.stats.requested_bytes, -(int64_t)bytes);
    dt_memory_count(&heap.stats.allocation, -1);
    while (keep && heap.cached + size > heap.limit && heap.oldest) {
        block *old = heap.oldest;
        size_t ignored;
        evict(old, class_of(old->size, &ignored), &unwanted);
    }
    keep = keep && heap.cached + size <= heap.limit;
    if (keep)
        put_in(data, bin, size);
    else
        count_segment(-1, size);
    dt_unlock(lock);
    if (!keep)
        to_system(data, size);
    release_all(unwanted);
}

int dt_cpu_empty_cache(int device)
{
    (void)device;
    block *unwanted = NULL;
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    for (int bin = 0; bin < CLASSES; bin++)
        while (heap.bins[bin])
            evict(heap.bins[bin], bin, &unwanted);
    dt_unlock(lock);
    release_all(unwanted);
    return 0;
}

void dt_cpu_memory_stats(int device, dt_memory_stats *out)
{
    (void)device;
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    *out = heap.stats;
    dt_unlock(lock);
}

void dt_cpu_reset_peaks(int device)
{
    (void)device;
    int lock = dt_lock_if_concurrent(DT_LOCK_CPU_HEAP);
    dt_memory_reset_peaks(&heap.stats);
    dt_unlock(lock);
}

int dt_cpu_memory_info(int device, size_t *out_free, size_t *out_total)
{
    (void)device;
    unsigned long long total = 0, available = 0;
    char line[256];
    FILE *file = fopen("/proc/meminfo", "r");
    if (file) {
        while (fgets(line, sizeof line, file)) {
            sscanf(line, "MemTotal: %llu", &total);
            sscanf(line, "MemAvailable: %llu", &available);
        }
        fclose(file);
    }
    if (!total) {
        struct sysinfo info;
        if (sysinfo(&info))
            return dt_fail(DT_ERROR_RUNTIME,
                           "memory_info: the system does not say how much "
                           "memory it has; mount /proc");
        *out_free = (size_t)info.freeram * info.mem_unit;
        *out_total = (size_t)info.totalram * info.mem_unit;
        return 0;
    }
    *out_free = (size_t)available << 10;
    *out_total = (size_t)total << 10;
    return 0;
}
