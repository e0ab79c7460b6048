#include "cuda/runtime/backend.h"

#include <string.h>

#include "cuda/runtime/kernel_errors.h"

namespace {
struct Event {
    cudaEvent_t handle;
    int device;
    bool timing, recorded;
};
} /* namespace */

int dt_cuda_stream_new(int device, int priority, void **out_stream)
{
    cudaStream_t stream;
    int lowest = 0, highest = 0;
    if (device_use(device))
        return -1;
    CUDA_TRY("querying stream priorities",
             cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    if (priority < highest)
        priority = highest;
    CUDA_TRY("creating a stream",
             cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    *out_stream = stream;
    return 0;
}

void dt_cuda_stream_free(int device, void *stream)
{
    if (device_use(device))
        dt_error_clear();
    else
        cuda_succeeds(cudaStreamDestroy((cudaStream_t)stream));
}

/* The result of a query: 1 if all is done, 0 if not yet, -1 after dt_fail. */
static int answer_of(cudaError_t error, const char *doing)
{
    if (error == cudaErrorNotReady)
        return cuda_succeeds(error);
    CUDA_TRY(doing, error);
    return 1;
}

int dt_cuda_stream_query(dt_stream stream)
{
    return answer_of(cudaStreamQuery((cudaStream_t)stream.handle), "querying a stream");
}

int dt_cuda_stream_synchronize(dt_stream stream)
{
    CUDA_TRY("synchronizing with a stream",
             cudaStreamSynchronize((cudaStream_t)stream.handle));
    return report_take(stream.device);
}

int dt_cuda_event_new(int device, unsigned flags, void **out_event)
{
    const bool timing = flags & DT_EVENT_TIMED, shared = flags & DT_EVENT_INTERPROCESS;
    if (device_use(device))
        return -1;
    /* One that is shared may be recorded by another process. */
    Event *event = new Event{nullptr, device, timing, shared};
    cudaError_t error = cudaEventCreateWithFlags(
        &event->handle, (timing ? cudaEventDefault : cudaEventDisableTiming) |
                            (flags & DT_EVENT_BLOCKING ? cudaEventBlockingSync : 0) |
                            (shared ? cudaEventInterprocess : 0));
    if (error != cudaSuccess) {
        delete event;
        return cuda_fail(error, "creating an event");
    }
    *out_event = event;
    return 0;
}

int dt_cuda_event_export(void *handle, char *out)
{
    Event *event = (Event *)handle;
    cudaIpcEventHandle_t made;
    static_assert(sizeof made == DT_IPC_HANDLE, "the handle's size");
    if (device_use(event->device))
        return -1;
    CUDA_TRY("making an event's handle for other processes",
             cudaIpcGetEventHandle(&made, event->handle));
    memcpy(out, &made, sizeof made);
    return 0;
}

int dt_cuda_event_open(int device, const char *handle, void **out_event)
{
    cudaIpcEventHandle_t given;
    cudaEvent_t opened;
    memcpy(&given, handle, sizeof given);
    if (device_use(device))
        return -1;
    CUDA_TRY("opening an event of another process",
             cudaIpcOpenEventHandle(&opened, given));
    *out_event = new Event{opened, device, false, true};
    return 0;
}

void dt_cuda_event_free(void *handle)
{
    Event *event = (Event *)handle;
    if (device_use(event->device))
        dt_error_clear();
    else
        cuda_succeeds(cudaEventDestroy(event->handle));
    delete event;
}

int dt_cuda_event_record(void *handle, dt_stream stream)
{
    Event *event = (Event *)handle;
    if (event->device != stream.device)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "record: the event belongs to cuda:%d and the stream to cuda:%d; record it "
            "on a stream of its own device",
            event->device, stream.device);
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("recording an event",
             cudaEventRecord(event->handle, (cudaStream_t)stream.handle));
    event->recorded = true;
    return 0;
}

int dt_cuda_event_query(void *handle)
{
    Event *event = (Event *)handle;
    if (!event->recorded)
        return 1;
    if (device_use(event->device))
        return -1;
    return answer_of(cudaEventQuery(event->handle), "querying an event");
}

int dt_cuda_event_synchronize(void *handle)
{
    Event *event = (Event *)handle;
    if (!event->recorded)
        return 0;
    if (device_use(event->device))
        return -1;
    CUDA_TRY("synchronizing with an event", cudaEventSynchronize(event->handle));
    return report_take(event->device);
}

int dt_cuda_stream_wait_event(void *handle, dt_stream stream)
{
    Event *event = (Event *)handle;
    if (!event->recorded)
        return 0;
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("making a stream wait for an event",
             cudaStreamWaitEvent((cudaStream_t)stream.handle, event->handle, 0));
    return 0;
}

int dt_cuda_event_elapsed(void *start_handle, void *end_handle, float *out_milliseconds)
{
    Event *start = (Event *)start_handle, *end = (Event *)end_handle;
    if (!start->timing || !end->timing)
        return dt_fail(DT_ERROR_VALUE,
                       "elapsed_time: create both events with enable_timing=True");
    if (!start->recorded || !end->recorded)
        return dt_fail(DT_ERROR_VALUE, "elapsed_time: record both events first");
    if (device_use(end->device))
        return -1;
    cudaError_t error =
        cudaEventElapsedTime(out_milliseconds, start->handle, end->handle);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return dt_fail(DT_ERROR_RUNTIME,
                       "elapsed_time: the events have not been reached yet; "
                       "call end.synchronize() first");
    }
    CUDA_TRY("reading the time between events", error);
    return 0;
}
