#include "cuda/runtime/stream.h"

#include "cuda/runtime/report.h"
#include "cuda/runtime/device.h"

namespace {
struct Event {
    cudaEvent_t handle;
    int device;
    bool timing, recorded;
};
} /* namespace */

int stream_new(int device, int priority, void **out_stream)
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

void stream_free(int device, void *stream)
{
    if (device_use(device)) {
        dt_error_clear();
        return;
    }
    if (cudaStreamDestroy((cudaStream_t)stream) != cudaSuccess)
        cudaGetLastError();
}

int stream_query(dt_stream stream)
{
    if (device_use(stream.device))
        return -1;
    cudaError_t error = cudaStreamQuery((cudaStream_t)stream.handle);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return 0;
    }
    CUDA_TRY("querying a stream", error);
    return 1;
}

int stream_synchronize(dt_stream stream)
{
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("synchronizing with a stream",
             cudaStreamSynchronize((cudaStream_t)stream.handle));
    return report_take(stream.device);
}

int event_new(int device, bool timing, void **out_event)
{
    if (device_use(device))
        return -1;
    Event *event = new Event{nullptr, device, timing, false};
    cudaError_t error = cudaEventCreateWithFlags(
        &event->handle, timing ? cudaEventDefault : cudaEventDisableTiming);
    if (error != cudaSuccess) {
        delete event;
        return cuda_fail(error, "creating an event");
    }
    *out_event = event;
    return 0;
}

void event_free(void *handle)
{
    Event *event = (Event *)handle;
    if (device_use(event->device))
        dt_error_clear();
    else if (cudaEventDestroy(event->handle) != cudaSuccess)
        cudaGetLastError();
    delete event;
}

int event_record(void *handle, dt_stream stream)
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

int event_query(void *handle)
{
    Event *event = (Event *)handle;
    if (!event->recorded)
        return 1;
    if (device_use(event->device))
        return -1;
    cudaError_t error = cudaEventQuery(event->handle);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return 0;
    }
    CUDA_TRY("querying an event", error);
    return 1;
}

int event_synchronize(void *handle)
{
    Event *event = (Event *)handle;
    if (!event->recorded)
        return 0;
    if (device_use(event->device))
        return -1;
    CUDA_TRY("synchronizing with an event", cudaEventSynchronize(event->handle));
    return report_take(event->device);
}

int stream_wait_event(void *handle, dt_stream stream)
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

int event_elapsed(void *start_handle, void *end_handle, float *out_milliseconds)
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
