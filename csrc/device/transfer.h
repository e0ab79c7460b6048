/* Copies between devices and synchronization of the host. Every copy and every
 * synchronization is made here, so that all are counted. */
#ifndef DT_DEVICE_TRANSFER_H
#define DT_DEVICE_TRANSFER_H

#include "device/device.h"

/* COUNTER(name): a counter, with bytes for copies. */
#define DT_TRANSFER_COUNTERS(COUNTER)                                                  \
    COUNTER(host_to_device)                                                            \
    COUNTER(device_to_host)                                                            \
    COUNTER(device_to_device)                                                          \
    COUNTER(waits)

typedef struct dt_transfer_counters {
#define COUNTER(name) int64_t name, name##_bytes;
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
} dt_transfer_counters;

struct dt_tensor;

/* Copies bytes between two different devices in the order of their current streams.
 * Device to host synchronizes; host to device returns when the source may change;
 * device to device is asynchronous. tensor: what is copied, for those who observe, or
 * NULL. */
int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes, const struct dt_tensor *tensor);

/* Copies bytes from pinned memory to a GPU or back in the order of the GPU's current
 * stream, which is to be recorded as a use (dt_storage_use_pinned). Does not synchronize:
 * until the copy is done, the source must not change and the target must not be read. */
int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes,
                       const struct dt_tensor *tensor);

/* Block the host until the stream, the device or the event is done. No-ops on devices
 * without streams. */
int dt_stream_synchronize(dt_device device, dt_stream stream);
int dt_device_synchronize(dt_device device);
int dt_event_synchronize(dt_device device, void *event);

/* Whether the copies of this thread are what the program asked for by name (to(), copy_()),
 * from now on; returns what held before. */
bool dt_transfer_ask(bool asked);

/* The counts since the program started. */
void dt_transfer_counters_read(dt_transfer_counters *out);

#endif
