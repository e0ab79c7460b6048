/* Streams of queued work, and the schedules that decide when it runs. */
#include "base/lock.h"
#include "core.h"
#include "internal.h"
#include <algorithm>
#include <time.h>

namespace sim {

Stream *stream_of(cudaStream_t handle)
{
    if (!handle)
        return device_at(thread().device).own_stream.get();
    for (auto &stream : state().streams)
        if ((cudaStream_t)stream.get() == handle && !stream->destroyed)
            return stream.get();
    return nullptr;
}

std::string Work::title() const
{
    return bytes ? format("a %s of %zu bytes", name, bytes) : name;
}

/* Whether a block's memory is there, as that of a block which an allocator handed out again. */
static bool is_mapped(const Block &block)
{
    auto &segments = device_at(block.device).segments;
    auto found = entry_before(segments, block.base);
    return found != segments.end() &&
           block.base < found->second.whole->base + found->second.whole->rounded;
}

/* Whether the work may access its blocks at this point of its stream. With "record_stream"
 * manual, as on a GPU, it finds there what the next owner has written. */
static bool blocks_hold(const Work &work, int device)
{
    const bool manual = state().options.manual;
    for (auto &block : work.blocks) {
        if (!block->reused || (manual && is_mapped(*block)))
            continue;
        blame(device, cudaErrorIllegalAddress,
              format("%s runs on a block of %zu bytes of simulated cuda:%d after the "
                     "memory was reused: nothing makes the next owner wait for it",
                     work.title().c_str(), block->bytes, block->device));
        return false;
    }
    return true;
}

void execute(Work &work, int device)
{
    switch (work.kind) {
    case Work::kRecord:
        work.moment->done = true;
        work.moment->seconds = now();
        return;
    case Work::kWait:
        return;
    case Work::kHousekeeping:
        work.run();
        return;
    case Work::kRun:
        break;
    }
    if (work.fault) {
        blame(device, work.fault, work.fault_text);
        return;
    }
    if (!blocks_hold(work, device))
        return;
    for (auto &block : work.blocks)
        /* An atomic change of a small element goes by the word that holds it. */
        open_pages(seen_from(block->base), (block->bytes + 3) / 4 * 4);
    {
        Concealed rest(work, device);
        program_enters(device);
        work.run();
        program_leaves();
    }
    for (auto &block : work.blocks)
        close_pages(seen_from(block->base), block->rounded);
    if (!work.check_canaries)
        return;
    for (auto &block : work.blocks)
        if (block->laid_out)
            check_canary(*block, work.title(), device, false);
        else
            overtake(*block);
}

bool advance(Stream &first)
{
    Stream *stream = &first;
    /* A waiter continues only after the event's stream has reached the event. Events
     * are recorded before they are waited for, so this terminates. */
    while (!stream->queue.empty()) {
        Work &next = stream->queue.front();
        if (next.kind == Work::kWait && !next.moment->done) {
            stream = next.moment->stream;
            continue;
        }
        if (next.meeting && !next.meeting->over)
            return false;
        Work work = std::move(next);
        stream->queue.pop_front();
        if (!work.meeting)
            execute(work, stream->device);
        return true;
    }
    return false;
}

void run_ready(Stream &stream)
{
    while (advance(stream)) {}
}

static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void tell_meetings()
{
    pthread_cond_broadcast(&changed);
}

void sleep_until_told()
{
    pthread_cond_wait(&changed, &dt_locks->locks[DT_LOCK_SIMULATOR]);
}

bool await_meeting()
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 50000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&changed, &dt_locks->locks[DT_LOCK_SIMULATOR], &limit);
    if (thread().own_waits || !core.interrupted) /* it may hold other locks */
        return true;
    dt_unlock(DT_LOCK_SIMULATOR);
    const bool goes_on = !core.interrupted();
    dt_lock(DT_LOCK_SIMULATOR);
    return goes_on;
}

bool drain(Stream &stream)
{
    bool goes_on = true;
    stream.drained++;
    for (run_ready(stream); goes_on && !stream.queue.empty(); run_ready(stream))
        goes_on = await_meeting();
    stream.drained--;
    return goes_on;
}

/* Deletes destroyed streams whose work is done. */
static void sweep()
{
    auto &streams = state().streams;
    streams.erase(std::remove_if(streams.begin(), streams.end(),
                                 [](const std::unique_ptr<Stream> &s) {
                                     return s->destroyed && s->queue.empty() &&
                                            !s->drained;
                                 }),
                  streams.end());
}

/* A stream of the device that has work. */
static Stream *busy_stream(int device)
{
    Stream *found = nullptr;
    each_stream([&](Stream &stream) {
        if (!found && stream.device == device && !stream.queue.empty())
            found = &stream;
    });
    return found;
}

bool drain_device(int device)
{
    bool goes_on = true;
    /* Another thread may change the list of streams while this one waits for a meeting. */
    for (Stream *busy; goes_on && (busy = busy_stream(device));)
        goes_on = drain(*busy);
    sweep();
    return goes_on;
}

void drain_all()
{
    for (auto &device : state().devices)
        drain_device(device->index);
}

uint64_t roll()
{
    uint64_t z = state().options.random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Runs less work than is queued and prefers one stream for a while: orders far from
 * program order are the ones that expose mistakes. */
void nudge()
{
    const Stream *&favourite = state().options.favourite;
    if (state().options.schedule != kRandom || roll() % 4)
        return;
    for (uint64_t turns = 1 + roll() % 3; turns > 0; turns--) {
        std::vector<Stream *> busy;
        each_stream([&busy](Stream &stream) {
            if (!stream.queue.empty())
                busy.push_back(&stream);
        });
        if (busy.empty())
            return;
        Stream *next = busy[roll() % busy.size()];
        bool fickle = roll() % 4 == 0;
        for (Stream *each : busy)
            if (each == favourite && !fickle)
                next = each;
        favourite = next;
        advance(*next);
    }
}

/* Runs the kernel at once under every schedule, after all that its stream has before it: its
 * counts are its price on the clock. */
static void queue_counted(Stream &stream, Work work)
{
    Work priced = work;
    stream.queue.push_back(std::move(work));
    run_ready(stream);
    clock_queue(stream, priced);
}

void push(Stream &stream, Work work)
{
    if (stream.capture) {
        capture(stream, std::move(work));
        return;
    }
    if (program_runs && work.kind != Work::kWait)
        program_orders(stream);
    race_queued(stream, work);
    if (clock_runs() && work.counted) {
        queue_counted(stream, std::move(work));
    } else {
        if (clock_runs())
            clock_queue(stream, work);
        stream.queue.push_back(std::move(work));
    }
    switch (state().options.schedule) {
    case kEager:
        run_ready(stream);
        break;
    case kRandom:
        nudge();
        break;
    case kLazy:
        break;
    }
    if (stream.queue.size() > DT_SIM_QUEUE_LIMIT)
        advance(stream);
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags,
                                         int priority)
{
    SIM_ENTER();
    if (!out || flags & ~1u)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = failure("stream", cudaErrorMemoryAllocation))
        return answer(error);
    std::unique_ptr<Stream> stream(new Stream);
    stream->device = thread().device;
    stream->blocking = !(flags & cudaStreamNonBlocking);
    /* Within what cudaDeviceGetStreamPriorityRange says. */
    stream->priority = std::max(-5, std::min(0, priority));
    *out = (cudaStream_t)stream.get();
    state().streams.push_back(std::move(stream));
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    SIM_ENTER();
    const Stream *stream = stream_of(handle);
    if (!stream || !priority)
        return answer(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    *priority = stream->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
    SIM_ENTER();
    const Stream *stream = stream_of(handle);
    if (!stream || !flags)
        return answer(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    const bool own = stream == device_at(stream->device).own_stream.get();
    *flags = own || stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream || stream == device_at(stream->device).own_stream.get())
        return answer(cudaErrorInvalidResourceHandle);
    stream->destroyed = true;
    capture_forgets(*stream);
    if (clock_runs())
        clock_settle(); /* what has no times yet knows the stream */
    sweep();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = refuse_of_stream(*stream))
        return answer(error);
    uint64_t before = state().violations;
    nudge();
    device_at(stream->device).counted.waits++;
    if (clock_runs())
        clock_wait(*stream);
    if (!drain(*stream))
        return answer(cudaErrorUnknown);
    race_host_waits(*stream);
    return verdict(stream->device, before);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = refuse_of_stream(*stream))
        return answer(error);
    uint64_t before = state().violations;
    bool ready = stream->queue.empty();
    if (clock_runs()) {
        ready = clock_reached(*stream);
        if (ready)
            ready = drain(*stream);
    } else if (!ready) { /* so that polling makes progress */
        advance(*stream);
    }
    if (ready)
        race_host_waits(*stream);
    nudge();
    return verdict(stream->device, before, ready ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream || !function)
        return answer(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_capture(*stream))
        return answer(error);
    device_at(stream->device).counted.host_functions++;
    Work work;
    work.name = "host function";
    work.run = [function, data] { function(data); };
    push(*stream, std::move(work));
    return cudaSuccess;
}
