/* Copies of bytes between the host and devices, and between devices. */
#ifndef DT_CUDA_RUNTIME_TRANSFER_H
#define DT_CUDA_RUNTIME_TRANSFER_H

#include "device/backend.h"

/* Host-to-device copies of up to this many bytes are staged and do not synchronize. */
#define TRANSFER_STAGED_BYTES ((size_t)64 << 10)

int transfer_upload(dt_queue queue, void *target, const void *source, size_t bytes);
/* Like transfer_upload, but in staged chunks, so that no size synchronizes. */
int transfer_upload_table(dt_queue queue, void *target, const void *source,
                          size_t bytes);
int transfer_download(dt_queue queue, void *target, const void *source, size_t bytes);
int transfer_copy_peer(dt_queue target_queue, void *target, dt_queue source_queue,
                       const void *source, size_t bytes);

#endif
