/* Values of a thread's own, freed when it ends. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

typedef enum dt_thread_slot {
    DT_THREAD_ERROR,   /* the pending error */
    DT_THREAD_STREAMS, /* the current stream of each GPU */
    DT_NTHREAD_SLOTS
} dt_thread_slot;

/* NULL until the thread keeps something. */
extern _Thread_local void *dt_thread_slots[DT_NTHREAD_SLOTS];

/* Puts a value into an empty slot; release(value) runs when the thread ends, and is the
 * same function for all threads. */
void dt_thread_keep(dt_thread_slot slot, void *value, void (*release)(void *value));

#endif
