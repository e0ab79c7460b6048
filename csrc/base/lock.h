/* The library's locks, and what becomes of them in a forked process.
 *
 * A fork copies one thread. A lock that another one holds stays locked in the child,
 * and its data stay half changed. So a fork first takes all locks, in the order of
 * this list; both processes release them. A thread that holds one takes only those
 * below it, and never the GIL, which the forking thread may hold. What else a child has
 * to forget, its owner sees by dt_forks. */
#ifndef DT_BASE_LOCK_H
#define DT_BASE_LOCK_H

#include <pthread.h>

#include "base/count.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies of a lock that guards several things; thing i has lock i % DT_LOCK_COPIES.
 * Few, as ThreadSanitizer knows at most 64 locks that a thread holds. */
#define DT_LOCK_COPIES 8

typedef enum dt_lock_id {
    DT_LOCK_OPS,                /* autograd/op.c: parsed schemas */
    DT_LOCK_BACKENDS,           /* device/registry.c: opening the CUDA backend */
    DT_LOCK_DEFAULT_GENERATORS, /* tensor/ops/random.c */
    DT_LOCK_GENERATOR,          /* device/random.h: a whole draw */
    DT_LOCK_STREAMS = DT_LOCK_GENERATOR + DT_LOCK_COPIES, /* device/stream.c, graph.c */
    DT_LOCK_STORAGES,      /* device/storage.c: the list of GPU storages */
    DT_LOCK_LIBRARY_CALLS, /* cuda/runtime/library.h: a whole call of cuBLAS, cuSOLVER */
    DT_LOCK_LIBRARIES,     /* cuda/runtime/library.cpp: loading them */
    DT_LOCK_UPLOADS,       /* cuda/runtime/transfer.cpp: pinned slots of a device */
    DT_LOCK_GPU_HEAP = DT_LOCK_UPLOADS +
        DT_LOCK_COPIES, /* cuda/runtime/allocator.cpp */
    DT_LOCK_REPORTS = DT_LOCK_GPU_HEAP +
        DT_LOCK_COPIES,     /* cuda/runtime/kernel_errors.cpp */
    DT_LOCK_DEVICE_TABLE,   /* cuda/runtime/device.cpp */
    DT_LOCK_SIMULATOR,      /* sim/state.cpp: each call and all work */
    DT_LOCK_BLAS,           /* cpu/runtime/blas.c: loading it; blas_threads.c */
    DT_LOCK_POOL,           /* cpu/runtime/pool.c */
    DT_LOCK_CPU_HEAP,       /* cpu/runtime/allocator.c */
    DT_LOCK_RESERVE,        /* cuda/runtime/operator_new.cpp */
    DT_LOCK_MEMORY_HISTORY, /* device/memory_history.c */
    DT_NLOCKS
} dt_lock_id;

typedef struct dt_lock_table {
    pthread_mutex_t locks[DT_NLOCKS]; /* recursive: a holder may fork */
    unsigned forks;
} dt_lock_table;

extern dt_lock_table *dt_locks;

/* Makes this library use the core's locks (as dt_error_share). */
void dt_lock_share(dt_lock_table *table);

static inline void dt_lock(int id)
{
    pthread_mutex_lock(&dt_locks->locks[id]);
}
static inline void dt_unlock(int id)
{
    if (id != DT_NLOCKS)
        pthread_mutex_unlock(&dt_locks->locks[id]);
}

/* Takes the lock unless only the thread with the GIL can be here (base/count.h).
 * Returns what to unlock. */
static inline int dt_lock_if_concurrent(int id)
{
    if (!dt_is_concurrent())
        return DT_NLOCKS;
    dt_lock(id);
    return id;
}

/* How many forks there are from the process that loaded the library to this one. */
static inline unsigned dt_forks(void)
{
    return dt_locks->forks;
}

#ifdef __cplusplus
}

/* Holds a lock for the rest of a scope. */
struct dt_locked {
    int id;
    explicit dt_locked(int lock) : id(lock) { dt_lock(lock); }
    dt_locked(const dt_locked &) = delete;
    ~dt_locked() { dt_unlock(id); }
};
#endif
#endif
