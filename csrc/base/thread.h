/* What a thread keeps for itself until it ends: slots, and free lists of small structs. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

#include <stdlib.h>

typedef enum dt_thread_slot {
    DT_THREAD_ERROR,     /* the pending error */
    DT_THREAD_STREAMS,   /* the current stream of each GPU */
    DT_THREAD_STORAGES,  /* those it freed, and how many it made */
    DT_THREAD_VARIABLES, /* those it freed */
    DT_NTHREAD_SLOTS
} dt_thread_slot;

/* NULL until the thread keeps something. */
extern _Thread_local void *dt_thread_slots[DT_NTHREAD_SLOTS];

/* Puts a value into an empty slot; release(value) runs when the thread ends, and is the
 * same function for all threads. */
void dt_thread_keep(dt_thread_slot slot, void *value, void (*release)(void *value));

/* Structs of one size that a thread has freed, for the next ones that it makes. */
typedef struct dt_free_list {
    int count;
    void *structs[64];
} dt_free_list;

void dt_free_list_release(dt_free_list *list);

/* A struct of the list, or a new one. NULL: no memory. The list may be NULL. */
static inline void *dt_struct_new(dt_free_list *list, size_t alignment, size_t size)
{
    if (__builtin_expect(list && list->count, 1))
        return list->structs[--list->count];
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

static inline void dt_struct_free(dt_free_list *list, void *memory)
{
    if (list && list->count < (int)(sizeof list->structs / sizeof *list->structs))
        list->structs[list->count++] = memory;
    else
        free(memory);
}

#endif
