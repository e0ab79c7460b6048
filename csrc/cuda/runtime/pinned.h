/* Page-locked host memory: cached blocks, and asynchronous copies from and to them. */
#ifndef DT_CUDA_RUNTIME_PINNED_H
#define DT_CUDA_RUNTIME_PINNED_H

#include "device/backend.h"

int pinned_allocate(int device, size_t bytes, void **out);
void pinned_release(void *data);
int pinned_to_device(dt_stream stream, void *target, const void *source, size_t bytes);
int pinned_to_host(dt_stream stream, void *target, const void *source, size_t bytes);

#endif
