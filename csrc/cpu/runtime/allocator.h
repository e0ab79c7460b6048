/* The CPU's caching allocator. */
#ifndef DT_CPU_RUNTIME_ALLOCATOR_H
#define DT_CPU_RUNTIME_ALLOCATOR_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_allocate(dt_stream stream, size_t bytes, void **out);
void dt_cpu_release(int device, void *data, size_t bytes);
void dt_cpu_memory_stats(int device, dt_memory_stats *out);
void dt_cpu_reset_peaks(int device);
int dt_cpu_empty_cache(int device);
int dt_cpu_memory_info(int device, size_t *out_free, size_t *out_total);

/* Maximum number of bytes cached for reuse. */
size_t dt_cpu_cache_limit(void);

#endif
