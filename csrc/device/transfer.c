#include "device/transfer.h"

#include <string.h>

#include "device/stream.h"

static dt_traffic counted;

static void count(int64_t *times, int64_t *total, size_t bytes)
{
    __atomic_fetch_add(times, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(total, (int64_t)bytes, __ATOMIC_RELAXED);
}
#define COUNT(name, bytes) count(&counted.name, &counted.name##_bytes, bytes)

int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes)
{
    dt_queue to = dt_queue_current(target_device),
             from = dt_queue_current(source_device);
    if (dt_device_is_cpu(target_device)) {
        COUNT(device_to_host, bytes);
        COUNT(waits, 0);
        return dt_backend_of(source_device)->download(from, target, source, bytes);
    }
    if (dt_device_is_cpu(source_device)) {
        COUNT(host_to_device, bytes);
        return dt_backend_of(target_device)->upload(to, target, source, bytes);
    }
    COUNT(device_to_device, bytes);
    return dt_backend_of(target_device)->copy_peer(to, target, from, source, bytes);
}

int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes)
{
    if (dt_device_is_cpu(target_device)) {
        COUNT(device_to_host, bytes);
        return dt_backend_of(source_device)
            ->pinned_download(dt_queue_current(source_device), target, source, bytes);
    }
    COUNT(host_to_device, bytes);
    return dt_backend_of(target_device)
        ->pinned_upload(dt_queue_current(target_device), target, source, bytes);
}

int dt_wait_queue(dt_device device, dt_queue queue)
{
    if (dt_device_is_cpu(device))
        return 0;
    COUNT(waits, 0);
    return dt_backend_of(device)->stream_wait(queue);
}

int dt_wait_device(dt_device device)
{
    if (dt_device_is_cpu(device))
        return 0;
    COUNT(waits, 0);
    return dt_backend_of(device)->device_wait(device.index);
}

int dt_wait_event(dt_device device, void *event)
{
    COUNT(waits, 0);
    return dt_backend_of(device)->event_wait(event);
}

void dt_traffic_read(dt_traffic *out)
{
#define TRAFFIC(name)                                                                  \
    out->name = __atomic_load_n(&counted.name, __ATOMIC_RELAXED);                      \
    out->name##_bytes = __atomic_load_n(&counted.name##_bytes, __ATOMIC_RELAXED);
    DT_TRAFFIC(TRAFFIC)
#undef TRAFFIC
}

void dt_traffic_reset(void)
{
#define TRAFFIC(name)                                                                  \
    __atomic_store_n(&counted.name, 0, __ATOMIC_RELAXED);                              \
    __atomic_store_n(&counted.name##_bytes, 0, __ATOMIC_RELAXED);
    DT_TRAFFIC(TRAFFIC)
#undef TRAFFIC
}
