/* Page-locked memory of the host's: blocks that are kept for the next tensor, and
 * copies out of and into them that nobody waits for. */
#ifndef DT_CUDA_RUNTIME_PINNED_H
#define DT_CUDA_RUNTIME_PINNED_H

#include "device/backend.h"

int pinned_allocate(int device, size_t bytes, void **out);
void pinned_release(void *data);
int pinned_upload(dt_queue queue, void *target, const void *source, size_t bytes);
int pinned_download(dt_queue queue, void *target, const void *source, size_t bytes);

#endif
