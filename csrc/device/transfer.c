#include "device/transfer.h"

#include <string.h>

#include "base/gil.h"
#include "device/stream.h"

static dt_transfer_counters counted;

static void count(int64_t *times, int64_t *total, size_t bytes)
{
    __atomic_fetch_add(times, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(total, (int64_t)bytes, __ATOMIC_RELAXED);
}
#define COUNT(name, bytes) count(&counted.name, &counted.name##_bytes, bytes)

int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes)
{
    DT_WITHOUT_GIL(true);
    dt_stream to = dt_stream_current(target_device),
              from = dt_stream_current(source_device);
    if (dt_device_is_cpu(target_device)) {
        COUNT(device_to_host, bytes);
        COUNT(waits, 0);
        return dt_backend_of(source_device)->copy_to_host(from, target, source, bytes);
    }
    if (dt_device_is_cpu(source_device)) {
        COUNT(host_to_device, bytes);
        return dt_backend_of(target_device)->copy_to_device(to, target, source, bytes);
    }
    COUNT(device_to_device, bytes);
    return dt_backend_of(target_device)->copy_peer(to, target, from, source, bytes);
}

int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes)
{
    DT_WITHOUT_GIL(true);
    bool to_host = dt_device_is_cpu(target_device);
    dt_device gpu = to_host ? source_device : target_device;
    if (to_host)
        COUNT(device_to_host, bytes);
    else
        COUNT(host_to_device, bytes);
    return dt_backend_of(gpu)->pinned_copy(dt_stream_current(gpu), target, source,
                                           bytes, to_host);
}

int dt_stream_synchronize(dt_device device, dt_stream stream)
{
    if (dt_device_is_cpu(device))
        return 0;
    COUNT(waits, 0);
    DT_WITHOUT_GIL(true);
    return dt_backend_of(device)->stream_synchronize(stream);
}

int dt_device_synchronize(dt_device device)
{
    if (dt_device_is_cpu(device))
        return 0;
    COUNT(waits, 0);
    DT_WITHOUT_GIL(true);
    return dt_backend_of(device)->device_synchronize(device.index);
}

int dt_event_synchronize(dt_device device, void *event)
{
    COUNT(waits, 0);
    DT_WITHOUT_GIL(true);
    return dt_backend_of(device)->event_synchronize(event);
}

void dt_transfer_counters_read(dt_transfer_counters *out)
{
#define COUNTER(name)                                                                  \
    out->name = __atomic_load_n(&counted.name, __ATOMIC_RELAXED);                      \
    out->name##_bytes = __atomic_load_n(&counted.name##_bytes, __ATOMIC_RELAXED);
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
}
