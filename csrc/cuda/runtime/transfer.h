/* Copies of bytes between the host and devices, and between devices. */
#ifndef DT_CUDA_RUNTIME_TRANSFER_H
#define DT_CUDA_RUNTIME_TRANSFER_H

#include "device/backend.h"

/* Host-to-device copies of up to this many bytes are staged and do not synchronize. */
#define TRANSFER_STAGED_BYTES ((size_t)64 << 10)

int transfer_to_device(dt_stream stream, void *target, const void *source,
                       size_t bytes);
/* Like transfer_to_device, but in staged chunks, so that no size synchronizes. */
int transfer_to_device_staged(dt_stream stream, void *target, const void *source,
                              size_t bytes);
int transfer_to_host(dt_stream stream, void *target, const void *source, size_t bytes);
int transfer_peer(dt_stream target_stream, void *target, dt_stream source_stream,
                  const void *source, size_t bytes);

#endif
