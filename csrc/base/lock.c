#include "base/lock.h"

static dt_lock_table own;
dt_lock_table *dt_locks = &own;

void dt_lock_share(dt_lock_table *table)
{
    dt_locks = table;
}

static void make(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    for (int i = 0; i < DT_NLOCKS; i++)
        pthread_mutex_init(&own.locks[i], &recursive);
    pthread_mutexattr_destroy(&recursive);
}

/* A library that shares the core's table leaves its own alone. */
static void before_fork(void)
{
    for (int i = 0; dt_locks == &own && i < DT_NLOCKS; i++)
        pthread_mutex_lock(&own.locks[i]);
}

static void in_parent(void)
{
    for (int i = DT_NLOCKS - 1; dt_locks == &own && i >= 0; i--)
        pthread_mutex_unlock(&own.locks[i]);
}

/* The owner's thread has another number here, so the locks are made anew. */
static void in_child(void)
{
    make();
    own.forks++;
}

__attribute__((constructor)) static void start_locks(void)
{
    make();
    pthread_atfork(before_fork, in_parent, in_child);
}
