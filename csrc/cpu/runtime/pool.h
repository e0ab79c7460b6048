/* The thread pool of large operations. */
#ifndef DT_CPU_RUNTIME_POOL_H
#define DT_CPU_RUNTIME_POOL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs items begin to end-1 of a loop. */
typedef void (*dt_pool_task)(void *context, int64_t begin, int64_t end);

/* Runs task over 0..count-1 in chunks of at most `grain` items, claimed by the
 * caller and by free workers; returns when all are done. Chunks run in any order,
 * but their bounds depend on count and grain alone. Stops if the caller is interrupted
 * (base/interrupt.h), after the chunks that run then: -1 after dt_fail. The caller holds
 * no lock. May be called from any thread, also from inside a task. */
int dt_pool_try(dt_pool_task task, void *context, int64_t count, int64_t grain)
    __attribute__((warn_unused_result));

/* For a task whose chunk takes long: whether the loop is being stopped, so that the task
 * may return at once. */
bool dt_pool_is_stopping(void);

/* Does not stop: for work that must complete, and for callers that hold a lock. */
void dt_pool_run(dt_pool_task task, void *context, int64_t count, int64_t grain);

/* Maximum number of threads, the caller included. */
int dt_pool_threads(void);
void dt_pool_set_threads(int threads);

#ifdef __cplusplus
}
#endif
#endif
