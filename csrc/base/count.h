/* Reference counts and free lists, which cost little while one thread uses them. */
#ifndef DT_BASE_COUNT_H
#define DT_BASE_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* How many may use counts and lists beside the thread that holds the GIL: the exports that
 * another library may free in any thread. While there are none (the binding begins with 0),
 * counts are plain numbers: atomic ones would take a third of the time of a view. C
 * programs leave it at 1. */
extern int dt_concurrent;

static inline bool dt_is_concurrent(void)
{
    return __builtin_expect(__atomic_load_n(&dt_concurrent, __ATOMIC_ACQUIRE) != 0, 0);
}
static inline void dt_concurrent_begin(void)
{
    __atomic_fetch_add(&dt_concurrent, 1, __ATOMIC_ACQ_REL);
}
static inline void dt_concurrent_end(void)
{
    __atomic_fetch_sub(&dt_concurrent, 1, __ATOMIC_ACQ_REL);
}

/* Adds to a count; the new value. */
#define DT_COUNT_ADD(count, change)                                                    \
    (dt_is_concurrent()                                                                \
         ? __atomic_add_fetch(count, change, __ATOMIC_ACQ_REL)                         \
         : (__atomic_store_n(count, *(count) + (change), __ATOMIC_RELAXED), *(count)))

static inline void dt_count_up(int *count)
{
    (void)DT_COUNT_ADD(count, 1);
}

/* Whether this was the last reference. */
static inline bool dt_count_down(int *count)
{
    return DT_COUNT_ADD(count, -1) == 0;
}

/* Structs of one size that were freed, for the next ones. */
typedef struct dt_free_list {
    int count;
    void *structs[64];
} dt_free_list;

/* A struct of the list, or a new one. NULL: no memory. */
static inline void *dt_struct_new(dt_free_list *list, size_t alignment, size_t size)
{
    if (!dt_is_concurrent() && list->count)
        return list->structs[--list->count];
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

static inline void dt_struct_free(dt_free_list *list, void *memory)
{
    if (!dt_is_concurrent() &&
        list->count < (int)(sizeof list->structs / sizeof *list->structs))
        list->structs[list->count++] = memory;
    else
        free(memory);
}

#endif
