/* Graphs: the work that streams take while they capture, and replays of it. A replay
 * queues the steps in the order in which they were captured, on the stream of the launch
 * and on a stream of the graph's own for each that was forked from the capturing one. */
#include "internal.h"
#include <algorithm>
#include <stdio.h>

namespace sim {

struct Step {
    size_t stream; /* in the capture's list */
    Work work;
};

struct Capture {
    std::vector<Stream *> streams; /* the first one began it */
    std::vector<Steps> known; /* of each stream: the steps that come before its next */
    std::vector<Step> steps;
    cudaStreamCaptureMode mode;
    const Thread *by;
    bool lost = false; /* a call was refused */
};

namespace {

struct Graph {
    std::vector<Step> steps;
    std::vector<int> devices; /* of its streams */
};

struct Exec {
    std::shared_ptr<const Graph> graph;
    std::vector<Stream *> streams; /* the first is that of a launch */
    MomentRef last;                /* the end of the last launch */
};

struct Handles {
    std::map<cudaGraph_t, std::shared_ptr<Graph>> graphs;
    std::map<cudaGraphExec_t, std::unique_ptr<Exec>> execs;
};

/* Never destroyed, as the state. */
Handles &all()
{
    static Handles *handles = new Handles;
    return *handles;
}

} /* namespace */

/* --- calls that a capture does not allow --- */

static cudaError_t lose(Capture &capture, cudaError_t error)
{
    capture.lost = true;
    return error;
}

cudaError_t check_capture(const Stream &stream)
{
    return stream.capture && stream.capture->lost ? cudaErrorStreamCaptureInvalidated
                                                  : cudaSuccess;
}

/* Whether the thread's calls can harm the capture. */
static bool is_exposed(const Capture &capture, const Thread &me)
{
    if (me.capturing == cudaStreamCaptureModeRelaxed ||
        capture.mode == cudaStreamCaptureModeRelaxed)
        return false;
    return capture.by == &me || (capture.mode == cudaStreamCaptureModeGlobal &&
                                 me.capturing == cudaStreamCaptureModeGlobal);
}

cudaError_t refuse_while_capturing()
{
    cudaError_t error = cudaSuccess;
    for (const CaptureRef &each : state().captures)
        if (is_exposed(*each, thread()))
            error = lose(*each, cudaErrorStreamCaptureUnsupported);
    return error;
}

cudaError_t refuse_library()
{
    cudaError_t error = cudaSuccess;
    for (const CaptureRef &each : state().captures)
        if (each->by == &thread() || each->mode == cudaStreamCaptureModeGlobal)
            error = lose(*each, cudaErrorStreamCaptureUnsupported);
    return error;
}

cudaError_t refuse_of_stream(const Stream &stream)
{
    return stream.capture ? lose(*stream.capture, cudaErrorStreamCaptureUnsupported)
                          : refuse_while_capturing();
}

cudaError_t refuse_of_device(int device)
{
    cudaError_t error = cudaSuccess;
    for (const CaptureRef &each : state().captures)
        for (const Stream *stream : each->streams)
            if (stream->device == device)
                error = lose(*each, cudaErrorStreamCaptureUnsupported);
    return error ? error : refuse_while_capturing();
}

cudaError_t refuse_of_moment(const Moment *moment)
{
    if (moment && moment->within)
        return lose(*moment->within, cudaErrorCapturedEvent);
    return refuse_while_capturing();
}

void capture_forgets(const Stream &stream)
{
    if (!stream.capture)
        return;
    Capture &capture = *stream.capture;
    capture.lost = true;
    auto &streams = capture.streams;
    streams.erase(std::remove(streams.begin(), streams.end(), &stream), streams.end());
}

/* --- capturing --- */

static size_t number_in(const Capture &capture, const Stream &stream)
{
    auto found = std::find(capture.streams.begin(), capture.streams.end(), &stream);
    return (size_t)(found - capture.streams.begin());
}

static void join(Steps &known, const Steps &other)
{
    known.resize(std::max(known.size(), other.size()));
    for (size_t i = 0; i < other.size(); i++)
        known[i] = std::max(known[i], other[i]);
}

static void add_stream(const CaptureRef &capture, Stream &stream)
{
    capture->streams.push_back(&stream);
    capture->known.resize(capture->streams.size());
    for (Steps &known : capture->known)
        known.resize(capture->streams.size());
    stream.capture = capture;
}

void capture(Stream &stream, Work work)
{
    Capture &capture = *stream.capture;
    if (capture.lost)
        return;
    const size_t number = number_in(capture, stream);
    Steps &known = capture.known[number];
    if (work.kind == Work::kRun)
        known[number]++;
    if (work.kind == Work::kRecord) {
        work.moment->within = stream.capture;
        work.moment->before = known;
    }
    race_captured(work);
    if (clock_runs() && work.kind == Work::kRun)
        clock_capture(stream, work);
    capture.steps.push_back({number, std::move(work)});
}

cudaError_t capture_wait(Stream &stream, const MomentRef &moment)
{
    const CaptureRef &within = moment->within;
    if (!within)
        return lose(*stream.capture, cudaErrorStreamCaptureIsolation);
    if (within->lost)
        return cudaErrorStreamCaptureInvalidated;
    auto &captures = state().captures;
    if (std::find(captures.begin(), captures.end(), within) == captures.end())
        return cudaErrorCapturedEvent; /* the capture has ended */
    if (&stream == device_at(stream.device).own_stream.get())
        return lose(*within, cudaErrorStreamCaptureImplicit);
    if (stream.capture && stream.capture != within) {
        lose(*stream.capture, cudaErrorStreamCaptureMerge);
        return lose(*within, cudaErrorStreamCaptureMerge);
    }
    if (!stream.capture)
        add_stream(within, stream);
    join(within->known[number_in(*within, stream)], moment->before);
    Work work;
    work.kind = Work::kWait;
    work.moment = moment;
    capture(stream, std::move(work));
    return cudaSuccess;
}

/* Whether the first stream has waited for all that the others have. */
static bool is_joined(const Capture &capture)
{
    for (size_t i = 1; i < capture.streams.size(); i++)
        if (capture.known[0][i] < capture.known[i][i])
            return false;
    return true;
}

static std::shared_ptr<Graph> graph_of(Capture &capture)
{
    auto graph = std::make_shared<Graph>();
    graph->steps.swap(capture.steps);
    for (const Stream *stream : capture.streams)
        graph->devices.push_back(stream->device);
    return graph;
}

/* --- describing --- */

/* Writes the steps, with an edge from each to those that wait for it. */
static void write_steps(const Graph &graph, FILE *file)
{
    std::map<const Moment *, std::vector<size_t>> recorded;
    /* The steps that the next one of each stream waits for. */
    std::vector<std::vector<size_t>> before(graph.devices.size());
    fputs("digraph dot {\n", file);
    for (size_t i = 0; i < graph.steps.size(); i++) {
        const Work &work = graph.steps[i].work;
        std::vector<size_t> &last = before[graph.steps[i].stream];
        if (work.kind == Work::kRecord)
            recorded[work.moment.get()] = last;
        if (work.kind == Work::kWait) {
            const std::vector<size_t> &more = recorded[work.moment.get()];
            last.insert(last.end(), more.begin(), more.end());
        }
        if (work.kind != Work::kRun)
            continue;
        fprintf(file, "  n%zu [label=\"%s\"];\n", i, work.title().c_str());
        for (size_t step : last)
            fprintf(file, "  n%zu -> n%zu;\n", step, i);
        last = {i};
    }
    fputs("}\n", file);
}

/* --- replaying --- */

/* Work of a replay fails if the program gave memory back that it uses. */
static void check_blocks(Work &work)
{
    for (const BlockRef &block : work.blocks)
        if (!is_live(*block))
            set_fault(work,
                      format("a replay of %s uses a block of %zu bytes of simulated "
                             "cuda:%d that was released after the capture",
                             work.title().c_str(), block->bytes, block->device));
}

/* Lets the ranks of a replay's work meet. */
static void meet_again(Stream &stream, Work &work)
{
    std::string why;
    if (!work.meeting)
        return;
    work.meeting = work.fault ? nullptr : work.meeting->again(stream, &why);
    if (!why.empty())
        set_fault(work, format("a replay of %s %s", work.title().c_str(), why.c_str()));
}

static void replay(Exec &exec, Stream &on)
{
    std::map<const Moment *, MomentRef> moments; /* of this replay, by the capture's */
    for (const Step &step : exec.graph->steps) {
        Stream &stream = step.stream ? *exec.streams[step.stream] : on;
        Work work = step.work;
        switch (work.kind) {
        case Work::kRecord:
            moments[work.moment.get()] = record_moment(stream);
            break;
        case Work::kWait:
            wait_for_moment(stream, moments[work.moment.get()]);
            break;
        case Work::kRun:
            check_blocks(work);
            meet_again(stream, work);
            push(stream, std::move(work));
            break;
        case Work::kHousekeeping:
            push(stream, std::move(work));
            break;
        }
    }
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream)
        return answer(cudaErrorInvalidResourceHandle);
    if (stream == device_at(stream->device).own_stream.get())
        return answer(cudaErrorStreamCaptureUnsupported);
    if (stream->capture)
        return answer(cudaErrorIllegalState);
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = failure("capture", cudaErrorMemoryAllocation))
        return answer(error);
    auto capture = std::make_shared<Capture>();
    capture->mode = mode;
    capture->by = &thread();
    add_stream(capture, *stream);
    state().captures.push_back(capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream || !out)
        return answer(out ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    *out = nullptr;
    CaptureRef capture = stream->capture;
    if (!capture)
        return answer(cudaErrorIllegalState);
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->by != &thread())
        return answer(lose(*capture, cudaErrorStreamCaptureWrongThread));
    if (capture->streams[0] != stream)
        return answer(lose(*capture, cudaErrorStreamCaptureUnmatched));
    auto &captures = state().captures;
    captures.erase(std::remove(captures.begin(), captures.end(), capture),
                   captures.end());
    for (Stream *each : capture->streams)
        each->capture.reset();
    const bool lost = capture->lost, joined = is_joined(*capture);
    std::shared_ptr<Graph> graph = graph_of(*capture);
    if (lost || !joined)
        return answer(lost ? cudaErrorStreamCaptureInvalidated
                           : cudaErrorStreamCaptureUnjoined);
    *out = (cudaGraph_t)graph.get();
    all().graphs[*out] = graph;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *out)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream || !out)
        return answer(out ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    *out = !stream->capture        ? cudaStreamCaptureStatusNone
           : stream->capture->lost ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    SIM_ENTER(Entry::kNothing);
    if (!mode)
        return answer(cudaErrorInvalidValue);
    std::swap(*mode, thread().capturing);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t handle,
                                          unsigned long long flags)
{
    SIM_ENTER();
    auto found = all().graphs.find(handle);
    if (!out || flags || found == all().graphs.end())
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = failure("graph", cudaErrorMemoryAllocation))
        return answer(error);
    std::unique_ptr<Exec> exec(new Exec);
    exec->graph = found->second;
    for (size_t i = 0; i < exec->graph->devices.size(); i++) {
        exec->streams.push_back(nullptr);
        if (!i)
            continue;
        std::unique_ptr<Stream> own(new Stream);
        own->device = exec->graph->devices[i];
        exec->streams[i] = own.get();
        state().streams.push_back(std::move(own));
    }
    *out = (cudaGraphExec_t)exec.get();
    all().execs[*out] = std::move(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t to)
{
    SIM_ENTER();
    Stream *stream = stream_of(to);
    auto found = all().execs.find(handle);
    if (!stream || found == all().execs.end())
        return answer(stream ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    if (stream->capture) /* CUDA makes it a part of the other graph */
        return answer(lose(*stream->capture, cudaErrorStreamCaptureUnsupported));
    device_at(stream->device).counted.graph_launches++;
    if (cudaError_t error = failure("launch", cudaErrorLaunchOutOfResources))
        return answer(error);
    Exec &exec = *found->second;
    if (clock_runs())
        clock_launch();
    if (exec.last) /* a graph's launches run one after another */
        wait_for_moment(*stream, exec.last);
    replay(exec, *stream);
    exec.last = record_moment(*stream);
    return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t handle, const char *path, unsigned)
{
    SIM_ENTER(Entry::kNothing);
    auto found = all().graphs.find(handle);
    FILE *file = found == all().graphs.end() || !path ? nullptr : fopen(path, "w");
    if (!file)
        return answer(found == all().graphs.end() || !path ? cudaErrorInvalidValue
                                                           : cudaErrorOperatingSystem);
    write_steps(*found->second, file);
    return fclose(file) ? answer(cudaErrorOperatingSystem) : cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
    SIM_ENTER();
    return answer(all().graphs.erase(handle) ? cudaSuccess : cudaErrorInvalidValue);
}

/* Launches that are queued still run. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle)
{
    SIM_ENTER();
    auto found = all().execs.find(handle);
    if (found == all().execs.end())
        return answer(cudaErrorInvalidValue);
    for (Stream *own : found->second->streams)
        if (own)
            own->destroyed = true;
    if (clock_runs())
        clock_settle();
    all().execs.erase(found);
    return cudaSuccess;
}
