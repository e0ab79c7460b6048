/* The CUDA caching allocator: tensors get blocks of cached segments of device
 * memory. */
#ifndef DT_CUDA_RUNTIME_ALLOCATOR_H
#define DT_CUDA_RUNTIME_ALLOCATOR_H

#include "device/backend.h"

int allocator_allocate(dt_stream stream, size_t bytes, void **out);
void allocator_release(int device, void *data, size_t bytes);
int allocator_record_use(dt_stream stream, void *data);
int allocator_memory_info(int device, size_t *out_free, size_t *out_total);
void allocator_stats(int device, dt_memory_stats *out);
void allocator_reset_peaks(int device);
int allocator_empty_cache(int device);

#endif
