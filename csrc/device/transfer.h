/* The one place through which bytes cross between devices and the host waits for one:
 * counted, so that a program can be told about each, and testable for what it should
 * not do. */
#ifndef DT_DEVICE_TRANSFER_H
#define DT_DEVICE_TRANSFER_H

#include "device/device.h"

/* TRAFFIC(name): what is counted; for copies the bytes as well. */
#define DT_TRAFFIC(TRAFFIC)                                                            \
    TRAFFIC(host_to_device)                                                            \
    TRAFFIC(device_to_host)                                                            \
    TRAFFIC(device_to_device)                                                          \
    TRAFFIC(waits)

typedef struct dt_traffic {
#define TRAFFIC(name) int64_t name, name##_bytes;
    DT_TRAFFIC(TRAFFIC)
#undef TRAFFIC
} dt_traffic;

/* Copies bytes between two devices that differ, in the order of the current queue of
 * each. A copy to the host waits until the bytes are there; to a GPU it returns when
 * the source may change; between GPUs it is queued. */
int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes);

/* Copies bytes from a pinned storage to a GPU, or from a GPU to a pinned storage, in
 * the order of the GPU's current queue, without waiting: until the copy is over the
 * source is to stay as it is, and the target is not to be looked at. */
int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes);

/* The host waits: for the queue, the device, or the event. No-ops on the CPU. */
int dt_wait_queue(dt_device device, dt_queue queue);
int dt_wait_device(dt_device device);
int dt_wait_event(dt_device device, void *event);

/* What has been counted since the last reset. */
void dt_traffic_read(dt_traffic *out);
void dt_traffic_reset(void);

#endif
