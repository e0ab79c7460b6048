/* The current stream of each device, by thread, and streams for programs to use. */
#ifndef DT_DEVICE_STREAM_H
#define DT_DEVICE_STREAM_H

#include "device/device.h"

/* The queue on which the calling thread puts work for the device. */
dt_queue dt_queue_current(dt_device device);

/* Makes stream (NULL: the default one) current for the device in the calling thread. */
int dt_stream_set_current(dt_device device, void *stream);

/* A stream of the device, not the default one, into *out. Streams come from a small
 * pool a device and priority and are never destroyed, so a handle stays good; after
 * DT_STREAM_POOL requests the same ones come round again. */
#define DT_STREAM_POOL 32
int dt_stream_acquire(dt_device device, int priority, void **out);

#endif
