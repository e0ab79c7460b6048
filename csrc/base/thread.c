#include "base/thread.h"

#include <pthread.h>

_Thread_local void *dt_thread_slots[DT_NTHREAD_SLOTS];

static void (*releases[DT_NTHREAD_SLOTS])(void *);
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* Slots in order: releasing one may fill those before it. */
static void end(void *slots)
{
    (void)slots;
    for (int i = DT_NTHREAD_SLOTS - 1; i >= 0; i--) {
        void *value = dt_thread_slots[i];
        dt_thread_slots[i] = NULL;
        if (value)
            __atomic_load_n(&releases[i], __ATOMIC_RELAXED)(value);
    }
}

static void make_key(void)
{
    pthread_key_create(&key, end);
}

void dt_thread_keep(dt_thread_slot slot, void *value, void (*release)(void *value))
{
    pthread_once(&key_once, make_key);
    pthread_setspecific(key, dt_thread_slots);
    __atomic_store_n(&releases[slot], release, __ATOMIC_RELAXED);
    dt_thread_slots[slot] = value;
}
