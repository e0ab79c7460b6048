/* What a thread keeps for itself until it ends: slots, and free lists of small structs. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

#include <stdlib.h>

typedef enum dt_thread_slot {
    DT_THREAD_ERROR,     /* the pending error */
    DT_THREAD_STREAMS,   /* the current stream of each GPU */
    DT_THREAD_ALIVE,     /* how many storages it made, less those it freed */
    DT_THREAD_STORAGES,  /* a free list */
    DT_THREAD_VARIABLES, /* a free list */
    DT_NTHREAD_SLOTS
} dt_thread_slot;

/* NULL until the thread keeps something. */
extern _Thread_local void *dt_thread_slots[DT_NTHREAD_SLOTS];

/* Puts a value into an empty slot; release(value) runs when the thread ends, and is the
 * same function for all threads. */
void dt_thread_keep(dt_thread_slot slot, void *value, void (*release)(void *value));

typedef struct dt_free_list {
    int count;
    void *structs[64];
} dt_free_list;

/* The thread's free list of structs of one size, or NULL where there is no memory. */
dt_free_list *dt_free_list_new(dt_thread_slot slot);

/* A struct of the free list in the slot, or a new one. NULL: no memory. */
static inline void *dt_struct_new(dt_thread_slot slot, size_t alignment, size_t size)
{
    dt_free_list *list = dt_thread_slots[slot];
    if (__builtin_expect(list && list->count, 1))
        return list->structs[--list->count];
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

static inline void dt_struct_free(dt_thread_slot slot, void *memory)
{
    dt_free_list *list = dt_thread_slots[slot];
    if (__builtin_expect(!list, 0))
        list = dt_free_list_new(slot);
    if (list && list->count < (int)(sizeof list->structs / sizeof *list->structs))
        list->structs[list->count++] = memory;
    else
        free(memory);
}

#endif
