/* Keeps the workers of the pool off the core of the thread that wakes them. All functions
 * are called with the pool's lock held. */
#ifndef DT_CPU_RUNTIME_POOL_CORES_H
#define DT_CPU_RUNTIME_POOL_CORES_H

#define DT_POOL_MAX_THREADS 256

/* Call it before the worker starts. */
void dt_pool_cores_add(int worker);

/* Called by a worker before it waits. caller: the core that posted its last job; -1: it has
 * had none. */
void dt_pool_cores_wait(int worker, int caller);

/* Called by a worker that has got a job. */
void dt_pool_cores_work(int worker);

/* Called before a job is posted: moves those of the first `count` workers that wait on the
 * calling thread's core. Returns that core. */
int dt_pool_cores_post(int count);

#endif
