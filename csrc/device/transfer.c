#include "device/transfer.h"

#include <string.h>

#include "base/gil.h"
#include "device/recorder.h"
#include "device/stream.h"

static dt_transfer_counters counted;

static void count(int64_t *times, int64_t *total, size_t bytes)
{
    __atomic_fetch_add(times, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(total, (int64_t)bytes, __ATOMIC_RELAXED);
}
#define COUNT(name, bytes) count(&counted.name, &counted.name##_bytes, bytes)

static int (*wait_guard)(const char *name, dt_device device);

void dt_wait_guard_set(int (*guard)(const char *name, dt_device device))
{
    wait_guard = guard;
}

/* Begins a wait of the host that the program did not ask for by name. */
static int check_wait(const char *name, dt_device device)
{
    COUNT(waits, 0);
    return wait_guard ? wait_guard(name, device) : 0;
}

static dt_record *begin_copy(dt_record_kind kind, dt_device gpu, dt_stream stream,
                             size_t bytes)
{
    static const char *const names[] = {
        [DT_RECORD_HOST_TO_DEVICE] = "copy host to device",
        [DT_RECORD_DEVICE_TO_HOST] = "copy device to host",
        [DT_RECORD_DEVICE_TO_DEVICE] = "copy device to device",
    };
    return dt_record_begin(kind, names[kind], gpu, stream.handle, (int64_t)bytes, 0);
}

static int copy(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes, dt_stream to, dt_stream from)
{
    if (dt_device_is_cpu(target_device))
        return dt_backend_of(source_device)->copy_to_host(from, target, source, bytes);
    if (dt_device_is_cpu(source_device))
        return dt_backend_of(target_device)->copy_to_device(to, target, source, bytes);
    return dt_backend_of(target_device)->copy_peer(to, target, from, source, bytes);
}

int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes)
{
    dt_stream to = dt_stream_current(target_device),
              from = dt_stream_current(source_device);
    dt_record *record;
    if (dt_device_is_cpu(target_device)) {
        COUNT(device_to_host, bytes);
        if (check_wait("a copy to the host", source_device))
            return -1;
        record = begin_copy(DT_RECORD_DEVICE_TO_HOST, source_device, from, bytes);
        if (record)
            record->waits = true;
    } else if (dt_device_is_cpu(source_device)) {
        COUNT(host_to_device, bytes);
        record = begin_copy(DT_RECORD_HOST_TO_DEVICE, target_device, to, bytes);
    } else {
        COUNT(device_to_device, bytes);
        record = begin_copy(DT_RECORD_DEVICE_TO_DEVICE, target_device, to, bytes);
    }
    DT_WITHOUT_GIL(true);
    int status = copy(target_device, target, source_device, source, bytes, to, from);
    dt_record_end(record);
    return status;
}

int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes)
{
    bool to_host = dt_device_is_cpu(target_device);
    dt_device gpu = to_host ? source_device : target_device;
    if (to_host)
        COUNT(device_to_host, bytes);
    else
        COUNT(host_to_device, bytes);
    dt_stream stream = dt_stream_current(gpu);
    dt_record *record =
        begin_copy(to_host ? DT_RECORD_DEVICE_TO_HOST : DT_RECORD_HOST_TO_DEVICE, gpu,
                   stream, bytes);
    DT_WITHOUT_GIL(true);
    int status =
        dt_backend_of(gpu)->pinned_copy(stream, target, source, bytes, to_host);
    dt_record_end(record);
    return status;
}

static dt_record *begin_wait(const char *name, dt_device device, void *stream)
{
    dt_record *record = dt_record_begin(DT_RECORD_WAIT, name, device, stream, 0, 0);
    if (record)
        record->waits = true;
    return record;
}

int dt_stream_synchronize(dt_device device, dt_stream stream)
{
    if (dt_device_is_cpu(device))
        return 0;
    if (check_wait("a wait for a stream", device))
        return -1;
    dt_record *record = begin_wait("stream synchronize", device, stream.handle);
    DT_WITHOUT_GIL(true);
    int status = dt_backend_of(device)->stream_synchronize(stream);
    dt_record_end(record);
    return status;
}

int dt_device_synchronize(dt_device device)
{
    if (dt_device_is_cpu(device))
        return 0;
    COUNT(waits, 0);
    dt_record *record = begin_wait("device synchronize", device, NULL);
    DT_WITHOUT_GIL(true);
    int status = dt_backend_of(device)->device_synchronize(device.index);
    dt_record_end(record);
    return status;
}

int dt_event_synchronize(dt_device device, void *event)
{
    COUNT(waits, 0);
    dt_record *record = begin_wait("event synchronize", device, NULL);
    DT_WITHOUT_GIL(true);
    int status = dt_backend_of(device)->event_synchronize(event);
    dt_record_end(record);
    return status;
}

void dt_transfer_counters_read(dt_transfer_counters *out)
{
#define COUNTER(name)                                                                  \
    out->name = __atomic_load_n(&counted.name, __ATOMIC_RELAXED);                      \
    out->name##_bytes = __atomic_load_n(&counted.name##_bytes, __ATOMIC_RELAXED);
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
}
