#include "device/transfer.h"

#include <stdlib.h>

#include "base/gil.h"
#include "device/activity.h"
#include "device/fusion.h"
#include "device/graph.h"
#include "device/released.h"
#include "device/stream.h"

static dt_transfer_counters counted;

static void count(int64_t *times, int64_t *total, int64_t bytes)
{
    __atomic_fetch_add(times, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(total, bytes, __ATOMIC_RELAXED);
}
#define COUNT(name, bytes) count(&counted.name, &counted.name##_bytes, bytes)

/* Whether this thread copies because the program asked for it by name. */
static _Thread_local bool asked;

bool dt_transfer_ask(bool now)
{
    bool before = asked;
    asked = now;
    return before;
}

static dt_activity a_copy(dt_activity_kind kind, dt_device gpu, dt_stream stream,
                          const struct dt_tensor *tensor, size_t bytes)
{
    static const char *const names[] = {
        [DT_ACTIVITY_HOST_TO_DEVICE] = "copy host to device",
        [DT_ACTIVITY_DEVICE_TO_HOST] = "copy device to host",
        [DT_ACTIVITY_DEVICE_TO_DEVICE] = "copy device to device",
    };
    return (dt_activity){.kind = kind,
                         .name = names[kind],
                         .device = gpu,
                         .stream = stream.handle,
                         .bytes = (int64_t)bytes,
                         .asked = asked,
                         .tensor = tensor};
}

/* Tells of a copy or wait, and counts it if nobody forbids it. */
static int begin_transfer(dt_observed *observed, const dt_activity *activity)
{
    if (dt_activity_begin(observed, activity))
        return -1;
    if (activity->kind == DT_ACTIVITY_HOST_TO_DEVICE)
        COUNT(host_to_device, activity->bytes);
    if (activity->kind == DT_ACTIVITY_DEVICE_TO_HOST)
        COUNT(device_to_host, activity->bytes);
    if (activity->kind == DT_ACTIVITY_DEVICE_TO_DEVICE)
        COUNT(device_to_device, activity->bytes);
    if (activity->waits)
        COUNT(waits, 0);
    return 0;
}

static int copy(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes, dt_stream to, dt_stream from)
{
    if (dt_device_is_host(target_device))
        return dt_backend_of(source_device)->copy_to_host(from, target, source, bytes);
    if (dt_device_is_host(source_device))
        return dt_backend_of(target_device)->copy_to_device(to, target, source, bytes);
    return dt_backend_of(target_device)->copy_peer(to, target, from, source, bytes);
}

/* A graph takes copies within its device, and from and to pinned memory. */
static int check_capture(dt_device target, dt_device source, dt_stream to,
                         dt_stream from)
{
    if (dt_device_is_host(target))
        return dt_graph_check("a copy to the host", source, &from);
    if (dt_device_is_host(source))
        return dt_graph_check("a copy from memory of the host that is not pinned",
                              target, &to);
    if (dt_graph_is_capturing(source) || dt_graph_is_capturing(target))
        return dt_graph_check("a copy between devices", source, &from);
    return 0;
}

/* Between devices of two types, whose backends do not know each other. */
static int transfer_through_host(dt_device target_device, void *target,
                                 dt_device source_device, const void *source,
                                 size_t bytes, const struct dt_tensor *tensor)
{
    const dt_device host = dt_device_make(DT_CPU, 0);
    void *between = malloc(bytes);
    if (!between)
        return dt_fail(
            DT_ERROR_CPU_TENSOR_MEMORY,
            "no memory for a copy of %zu bytes between devices of two types; "
            "free some tensors first",
            bytes);
    int status = dt_transfer(host, between, source_device, source, bytes, tensor);
    if (!status)
        status = dt_transfer(target_device, target, host, between, bytes, tensor);
    free(between);
    return status;
}

int dt_transfer(dt_device target_device, void *target, dt_device source_device,
                const void *source, size_t bytes, const struct dt_tensor *tensor)
{
    if (dt_device_check_memory(target_device))
        return -1;
    if (!dt_device_has_data(target_device)) /* nothing moves, and nobody waits */
        return 0;
    if (target_device.type != source_device.type && !dt_device_is_host(target_device) &&
        !dt_device_is_host(source_device))
        return transfer_through_host(target_device, target, source_device, source,
                                     bytes, tensor);
    dt_stream to = dt_stream_current(target_device),
              from = dt_stream_current(source_device);
    dt_activity activity;
    dt_observed observed;
    if (dt_fusion_order("a copy") ||
        check_capture(target_device, source_device, to, from))
        return -1;
    if (dt_device_is_host(target_device)) {
        activity =
            a_copy(DT_ACTIVITY_DEVICE_TO_HOST, source_device, from, tensor, bytes);
        activity.waits = dt_device_has_streams(source_device);
    } else if (dt_device_is_host(source_device)) {
        activity = a_copy(DT_ACTIVITY_HOST_TO_DEVICE, target_device, to, tensor, bytes);
    } else {
        activity =
            a_copy(DT_ACTIVITY_DEVICE_TO_DEVICE, target_device, to, tensor, bytes);
    }
    if (begin_transfer(&observed, &activity))
        return -1;
    DT_WITHOUT_GIL(true);
    return dt_activity_end(
        &observed, &activity,
        copy(target_device, target, source_device, source, bytes, to, from));
}

int dt_transfer_pinned(dt_device target_device, void *target, dt_device source_device,
                       const void *source, size_t bytes, const struct dt_tensor *tensor)
{
    bool to_host = dt_device_is_host(target_device);
    dt_device gpu = to_host ? source_device : target_device;
    dt_stream stream = dt_stream_current(gpu);
    dt_activity activity =
        a_copy(to_host ? DT_ACTIVITY_DEVICE_TO_HOST : DT_ACTIVITY_HOST_TO_DEVICE, gpu,
               stream, tensor, bytes);
    dt_observed observed;
    if (dt_fusion_order("a copy") || begin_transfer(&observed, &activity))
        return -1;
    DT_WITHOUT_GIL(true);
    return dt_activity_end(
        &observed, &activity,
        dt_backend_of(gpu)->pinned_copy(stream, target, source, bytes, to_host));
}

static int begin_wait(dt_observed *observed, dt_activity *activity, const char *name,
                      bool by_name, dt_device device, void *stream)
{
    *activity = (dt_activity){.kind = DT_ACTIVITY_WAIT,
                              .name = name,
                              .device = device,
                              .stream = stream,
                              .waits = true,
                              .asked = by_name};
    return begin_transfer(observed, activity);
}

int dt_stream_synchronize(dt_device device, dt_stream stream)
{
    dt_activity activity;
    dt_observed observed;
    if (!dt_device_has_streams(device))
        return 0;
    if (dt_graph_check("a wait for a stream", device, &stream) ||
        begin_wait(&observed, &activity, "stream synchronize", false, device,
                   stream.handle))
        return -1;
    DT_WITHOUT_GIL(true);
    return dt_activity_end(&observed, &activity,
                           dt_backend_of(device)->stream_synchronize(stream));
}

int dt_device_synchronize(dt_device device)
{
    dt_activity activity;
    dt_observed observed;
    if (!dt_device_has_streams(device))
        return 0;
    if (dt_graph_check("a wait for the device", device, NULL) ||
        begin_wait(&observed, &activity, "device synchronize", true, device, NULL))
        return -1;
    DT_WITHOUT_GIL(true);
    return dt_activity_end(&observed, &activity,
                           dt_backend_of(device)->device_synchronize(device.index));
}

int dt_event_synchronize(dt_device device, void *event)
{
    dt_activity activity;
    dt_observed observed;
    const dt_stream none = {device.index, NULL};
    if (dt_graph_check("a wait for an event", device, &none) ||
        begin_wait(&observed, &activity, "event synchronize", true, device, NULL))
        return -1;
    DT_WITHOUT_GIL(true);
    return dt_activity_end(&observed, &activity,
                           dt_backend_of(device)->event_synchronize(event));
}

void dt_transfer_counters_read(dt_transfer_counters *out)
{
#define COUNTER(name)                                                                  \
    out->name = __atomic_load_n(&counted.name, __ATOMIC_RELAXED);                      \
    out->name##_bytes = __atomic_load_n(&counted.name##_bytes, __ATOMIC_RELAXED);
    DT_TRANSFER_COUNTERS(COUNTER)
#undef COUNTER
}
