#include "device/stream.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/thread.h"

/* Two priorities, as CUDA has them in practice: normal and high. */
static struct {
    void *streams[DT_DEVICE_SLOTS][2][DT_STREAM_POOL];
    unsigned taken[DT_DEVICE_SLOTS][2];
} pool;

dt_stream dt_stream_current(dt_device device)
{
    dt_stream stream = {device.index, NULL};
    if (dt_device_has_streams(device)) {
        void **current = dt_thread_slots[DT_THREAD_STREAMS];
        stream.handle = current ? current[dt_device_slot(device)] : NULL;
    }
    return stream;
}

int dt_stream_set_current(dt_device device, void *stream)
{
    void **current = dt_thread_slots[DT_THREAD_STREAMS];
    if (!current) {
        if (!stream)
            return 0;
        current = calloc(DT_DEVICE_SLOTS, sizeof *current);
        if (!current)
            return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the thread's streams");
        dt_thread_keep(DT_THREAD_STREAMS, current, free);
    }
    current[dt_device_slot(device)] = stream;
    return 0;
}

int dt_stream_acquire(dt_device device, int priority, void **out)
{
    const dt_backend *backend = dt_backend_get((dt_device_type)device.type);
    if (!backend || dt_device_check(device))
        return -1;
    if (!dt_device_has_streams(device)) {
        char text[DT_DEVICE_TEXT];
        return dt_fail(DT_ERROR_RUNTIME, "%s has no streams; give a %s device",
                       dt_device_text(device, text),
                       dt_device_rows[DT_ACCELERATOR]->title);
    }
    int slot = dt_device_slot(device);
    int high = priority < 0, status = 0;
    dt_lock(DT_LOCK_STREAMS);
    unsigned *taken = &pool.taken[slot][high];
    void **stream = &pool.streams[slot][high][*taken % DT_STREAM_POOL];
    if (!*stream)
        status = backend->stream_new(device.index, high ? -1 : 0, stream);
    if (!status) {
        *out = *stream;
        *taken += 1;
    }
    dt_unlock(DT_LOCK_STREAMS);
    return status;
}
