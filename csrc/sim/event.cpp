/* Events: marks in streams that the host and other streams can wait for. */
#include "internal.h"

namespace sim {

struct Event {
    int device = 0;
    bool timing = true, blocking = false;
    MomentRef moment; /* the last recording; NULL before the first */
    MarkRef mark;     /* of one that other processes may use (ipc_event.cpp) */
};

static Event *event_of(cudaEvent_t handle)
{
    auto found = state().events.find(handle);
    return found == state().events.end() ? nullptr : found->second;
}

static cudaEvent_t new_event(unsigned flags, MarkRef mark)
{
    Event *event = new Event;
    event->device = thread().device;
    event->timing = !(flags & cudaEventDisableTiming);
    event->blocking = flags & cudaEventBlockingSync;
    event->mark = std::move(mark);
    state().events[(cudaEvent_t)event] = event;
    return (cudaEvent_t)event;
}

MomentRef record_moment(Stream &stream)
{
    MomentRef moment = std::make_shared<Moment>();
    moment->stream = &stream;
    moment->device = stream.device;
    Work work;
    work.kind = Work::kRecord;
    work.moment = moment;
    push(stream, std::move(work));
    return moment;
}

void wait_for_moment(Stream &stream, const MomentRef &moment)
{
    race_stream_waits(stream, *moment);
    if (clock_runs())
        clock_order(stream, *moment);
    if (moment->done)
        return;
    Work work;
    work.kind = Work::kWait;
    work.moment = moment;
    push(stream, std::move(work));
}

/* The event's mark if another process recorded it last, or none did; else NULL. */
static const MarkRef &foreign_mark(const Event &event)
{
    static const MarkRef none;
    return event.mark && is_foreign(*event.mark) ? event.mark : none;
}

static void wait_for_mark(const MarkRef &mark, Stream &stream)
{
    Work work;
    work.name = "wait for an event of another process";
    work.meeting = await_mark(mark, stream.device);
    if (work.meeting)
        push(stream, std::move(work));
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    SIM_ENTER();
    const bool shared = flags & cudaEventInterprocess;
    if (!out ||
        flags &
            ~(cudaEventDisableTiming | cudaEventBlockingSync | cudaEventInterprocess) ||
        (shared && !(flags & cudaEventDisableTiming)))
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = failure("event", cudaErrorMemoryAllocation))
        return answer(error);
    MarkRef mark = shared ? new_mark() : nullptr;
    if (shared && !mark)
        return answer(cudaErrorMemoryAllocation);
    *out = new_event(flags, std::move(mark));
    return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out, cudaEvent_t handle)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    if (!out || !event || !event->mark)
        return answer(cudaErrorInvalidResourceHandle);
    return answer(export_mark(*event->mark, out));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle)
{
    SIM_ENTER();
    MarkRef mark = out ? open_mark(handle) : nullptr;
    if (!mark)
        return answer(cudaErrorInvalidResourceHandle);
    *out = new_event(cudaEventDisableTiming, std::move(mark));
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    if (!event)
        return answer(cudaErrorInvalidResourceHandle);
    state().events.erase(handle);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t to)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    Stream *stream = stream_of(to);
    if (!event || !stream || event->device != stream->device)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_capture(*stream))
        return answer(error);
    if (cudaError_t error = failure("record", cudaErrorUnknown))
        return answer(error);
    if (event->mark && stream->capture)
        return answer(cudaErrorStreamCaptureUnsupported);
    event->moment =
        event->mark ? record_mark(event->mark, *stream) : record_moment(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t which, cudaEvent_t handle, unsigned flags)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    Stream *stream = stream_of(which);
    if (!event || !stream || flags)
        return answer(flags ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    if (cudaError_t error = failure("wait", cudaErrorUnknown))
        return answer(error);
    if (const MarkRef &mark = foreign_mark(*event)) {
        if (stream->capture)
            return answer(cudaErrorStreamCaptureIsolation);
        wait_for_mark(mark, *stream);
        return cudaSuccess;
    }
    if (!event->moment)
        return cudaSuccess;
    if (stream->capture || event->moment->within)
        return answer(capture_wait(*stream, event->moment));
    wait_for_moment(*stream, event->moment);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    if (!event)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = refuse_of_moment(event->moment.get()))
        return answer(error);
    if (const MarkRef &mark = foreign_mark(*event))
        return await_mark(mark, event->device) ? cudaErrorNotReady : cudaSuccess;
    if (!event->moment)
        return cudaSuccess;
    MomentRef moment = event->moment;
    uint64_t before = state().violations;
    bool ready = moment->done;
    if (clock_runs()) {
        ready = clock_reached(*moment);
        while (ready && !moment->done)
            ready = advance(*moment->stream) || await_meeting();
    } else if (!ready) {
        advance(*moment->stream);
    }
    if (ready)
        race_host_waits(*moment);
    nudge();
    return verdict(moment->device, before, ready ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    SIM_ENTER();
    Event *event = event_of(handle);
    if (!event)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = refuse_of_moment(event->moment.get()))
        return answer(error);
    uint64_t before = state().violations;
    device_at(event->device).counted.waits++;
    device_at(event->device).counted.blocking_waits += event->blocking;
    if (MarkRef mark = foreign_mark(*event)) {
        while (std::shared_ptr<Meeting> others = await_mark(mark, event->device))
            while (!others->over)
                if (!await_meeting())
                    return answer(cudaErrorUnknown);
        return verdict(event->device, before);
    }
    if (!event->moment)
        return cudaSuccess;
    MomentRef moment = event->moment;
    nudge();
    if (clock_runs())
        clock_wait(*moment);
    while (!moment->done)
        if (!advance(*moment->stream) && !await_meeting())
            return answer(cudaErrorUnknown);
    race_host_waits(*moment);
    return verdict(moment->device, before);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                 cudaEvent_t end)
{
    SIM_ENTER();
    Event *from = event_of(start), *to = event_of(end);
    if (!milliseconds)
        return answer(cudaErrorInvalidValue);
    if (!from || !to || !from->timing || !to->timing || !from->moment || !to->moment)
        return answer(cudaErrorInvalidResourceHandle);
    if (from->moment->within || to->moment->within)
        return answer(cudaErrorCapturedEvent);
    if (clock_runs() ? !clock_reached(*from->moment) || !clock_reached(*to->moment)
                     : !from->moment->done || !to->moment->done)
        return answer(cudaErrorNotReady);
    *milliseconds = clock_runs()
                        ? clock_between(*from->moment, *to->moment)
                        : (float)(1e3 * (to->moment->seconds - from->moment->seconds));
    return cudaSuccess;
}
