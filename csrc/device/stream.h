/* The current stream of each device, per thread, and a pool of streams for programs. */
#ifndef DT_DEVICE_STREAM_H
#define DT_DEVICE_STREAM_H

#include "device/device.h"

/* The device's current stream in the calling thread. */
dt_stream dt_stream_current(dt_device device);

/* Makes stream (NULL: the default stream) current for the device in the calling
 * thread. */
int dt_stream_set_current(dt_device device, void *stream);

/* A non-default stream of the device into *out. Streams come from a pool per device
 * and priority and are never destroyed, so handles stay valid; after DT_STREAM_POOL
 * requests the pool wraps around. */
#define DT_STREAM_POOL 32
int dt_stream_acquire(dt_device device, int priority, void **out);

#endif
