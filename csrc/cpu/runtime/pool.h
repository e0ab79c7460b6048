/* Threads that share the work of large operations. */
#ifndef DT_CPU_RUNTIME_POOL_H
#define DT_CPU_RUNTIME_POOL_H

#include <stdint.h>

/* Does items begin to end-1 of a piece of work. */
typedef void (*dt_pool_task)(void *context, int64_t begin, int64_t end);

/* Runs task over 0..count-1 in pieces of at most `grain` items, which the caller and
 * whoever of the pool is free claim one after another; returns when all are done. The
 * pieces may run in any order, but which items belong to one piece depends on count and
 * grain alone. Cannot fail: without threads the caller does it all. Callable from any
 * thread, also from inside a task. */
void dt_pool_run(dt_pool_task task, void *context, int64_t count, int64_t grain);

/* How many threads work at most, the caller included. */
int dt_pool_threads(void);
void dt_pool_set_threads(int threads);

#endif
