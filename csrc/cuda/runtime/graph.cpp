/* CUDA graphs: work that is captured once and launched many times.
 *
 * Values that change from launch to launch are in memory that a launch fills first: the
 * seed and offset of each generator that the graph draws from. */
#include "cuda/runtime/graph.h"

#include <string.h>

#include <vector>

#include "cuda/runtime/cublas.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/kernel_errors.h"

namespace {

/* A generator that the graph may draw from. */
struct Drawn {
    dt_generator *generator;
    void *start;       /* on the device: seed and offset, as uint64_t */
    uint64_t counters; /* that one launch draws */
};

struct Graph {
    dt_stream stream; /* that captures */
    uint64_t pool;
    bool capturing = false, pooled = false; /* it counts among those with the pool */
    cudaGraph_t captured = nullptr;         /* NULL once it is not needed */
    cudaGraphExec_t exec = nullptr;
    cudaEvent_t done = nullptr; /* recorded before the capture and after each launch */
    void *last = nullptr;       /* the stream on which it was recorded */
    std::vector<Drawn> drawn;
    std::vector<void *> staged; /* pinned memory that its copies read */
};

/* The graph that each device captures, or NULL. */
Graph *captures[DT_MAX_DEVICES];
int under_way;

bool is_capturing(dt_stream stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return stream.handle &&
           cuda_succeeds(cudaStreamIsCapturing((cudaStream_t)stream.handle, &status)) &&
           status != cudaStreamCaptureStatusNone;
}

void set_capture(Graph *graph, bool capturing)
{
    const int device = graph->stream.device;
    graph->capturing = capturing;
    __atomic_store_n(&captures[device], capturing ? graph : nullptr, __ATOMIC_RELEASE);
    __atomic_add_fetch(&under_way, capturing ? 1 : -1, __ATOMIC_RELEASE);
}

/* Ends the capture; graph->captured stays NULL if it was lost. */
cudaError_t end_capture(Graph *graph)
{
    cudaError_t error =
        cudaStreamEndCapture((cudaStream_t)graph->stream.handle, &graph->captured);
    set_capture(graph, false);
    heap_end_capture(graph->stream.device);
    return error;
}

void drop_captured(Graph *graph)
{
    if (graph->captured)
        cuda_succeeds(cudaGraphDestroy(graph->captured));
    graph->captured = nullptr;
}

/* Allocates what launches fill, outside of the graph's pool, and starts what cannot start
 * in a capture. */
int prepare(Graph *graph, dt_generator *const *generators, int count)
{
    for (int i = 0; i < count; i++) {
        void *start = nullptr;
        if (dt_cuda_allocate(graph->stream, 2 * sizeof(uint64_t), &start))
            return -1;
        graph->drawn.push_back({generators[i], start, 0});
    }
    /* The first launch waits for the work that had the memory before. */
    graph->last = graph->stream.handle;
    CUDA_TRY("creating an event",
             cudaEventCreateWithFlags(&graph->done, cudaEventDisableTiming));
    CUDA_TRY("recording an event",
             cudaEventRecord(graph->done, (cudaStream_t)graph->stream.handle));
    cublas_prepare(graph->stream);
    return report_of(graph->stream.device) ? 0 : -1;
}

int begin_capture(Graph *graph, cudaStreamCaptureMode mode)
{
    const int device = graph->stream.device;
    heap_begin_capture(device, graph->pool);
    graph->pooled = true;
    set_capture(graph, true);
    cudaError_t error =
        cudaStreamBeginCapture((cudaStream_t)graph->stream.handle, mode);
    if (error == cudaSuccess)
        return 0;
    set_capture(graph, false);
    heap_end_capture(device);
    return cuda_fail(error, "beginning to capture a graph");
}

/* Records that the stream uses the memory that launches read. */
void note_uses(const Graph *graph, dt_stream stream)
{
    for (const Drawn &each : graph->drawn)
        dt_cuda_record_use(stream, each.start);
    for (void *memory : graph->staged)
        dt_cuda_record_use(stream, memory);
}

} /* namespace */

/* --- what the other files ask --- */

bool graphs_under_way(void)
{
    return __atomic_load_n(&under_way, __ATOMIC_ACQUIRE) != 0;
}

Relaxed::Relaxed() : changed(graphs_under_way())
{
    if (changed)
        cuda_succeeds(cudaThreadExchangeStreamCaptureMode(&mode));
}

Relaxed::~Relaxed()
{
    if (changed)
        cuda_succeeds(cudaThreadExchangeStreamCaptureMode(&mode));
}

int graph_holds(dt_stream stream, bool *out)
{
    *out = graphs_under_way() && is_capturing(stream);
    if (*out && !__atomic_load_n(&captures[stream.device], __ATOMIC_ACQUIRE))
        return dt_fail(DT_ERROR_RUNTIME,
                       "a stream of cuda:%d takes part in the capture of another "
                       "device's graph; a graph takes the work of one device",
                       stream.device);
    return 0;
}

int graph_draw(dt_stream stream, dt_generator *generator, uint64_t counters,
               DrawStart *out)
{
    bool held;
    if (graph_holds(stream, &held))
        return -1;
    out->state = nullptr;
    if (!held) {
        out->offset = dt_generator_reserve(generator, counters, &out->seed);
        return 0;
    }
    for (Drawn &each : captures[stream.device]->drawn) {
        if (each.generator != generator)
            continue;
        out->seed = 0;
        out->offset = each.counters;
        out->state = (const uint64_t *)each.start;
        each.counters += counters;
        return 0;
    }
    return dt_fail(DT_ERROR_RUNTIME,
                   "a graph draws from a generator that it does not know; call "
                   "register_generator_state(generator) before the capture");
}

int graph_stage(dt_stream stream, const void *source, size_t bytes, void **out)
{
    bool held;
    *out = nullptr;
    if (graph_holds(stream, &held))
        return -1;
    if (!held)
        return 0;
    if (dt_cuda_pinned_allocate(stream.device, bytes, out))
        return -1;
    memcpy(*out, source, bytes);
    captures[stream.device]->staged.push_back(*out);
    return 0;
}

/* --- the interface --- */

int dt_cuda_graph_begin(dt_stream stream, int mode, uint64_t pool,
                        struct dt_generator *const *generators, int count, void **out)
{
    if (captures[stream.device])
        return dt_fail(DT_ERROR_RUNTIME,
                       "cuda:%d captures another graph already; end that first",
                       stream.device);
    Graph *graph = new Graph;
    graph->stream = stream;
    graph->pool = pool;
    if (prepare(graph, generators, count) ||
        begin_capture(graph, (cudaStreamCaptureMode)mode)) {
        dt_cuda_graph_free(graph);
        return -1;
    }
    *out = graph;
    return 0;
}

int dt_cuda_graph_end(dt_stream stream, void *handle)
{
    (void)stream;
    CUDA_TRY("ending the capture of a graph", end_capture((Graph *)handle));
    return 0;
}

int dt_cuda_graph_instantiate(dt_stream stream, void *handle, bool keep)
{
    Graph *graph = (Graph *)handle;
    cudaGraphExec_t exec = nullptr;
    (void)stream;
    CUDA_TRY("instantiating a graph",
             cudaGraphInstantiateWithFlags(&exec, graph->captured, 0));
    if (graph->exec) /* launches that are queued still run */
        cuda_succeeds(cudaGraphExecDestroy(graph->exec));
    graph->exec = exec;
    if (!keep)
        drop_captured(graph);
    return 0;
}

void *dt_cuda_graph_native(void *handle, bool launched)
{
    const Graph *graph = (const Graph *)handle;
    return launched ? (void *)graph->exec : (void *)graph->captured;
}

int dt_cuda_graph_dump(void *handle, const char *path)
{
    const Graph *graph = (const Graph *)handle;
    if (!graph->captured)
        return dt_fail(DT_ERROR_RUNTIME,
                       "debug_dump: what was captured was not kept; call "
                       "enable_debug_mode() before the capture");
    CUDA_TRY(
        "writing a graph to a file",
        cudaGraphDebugDotPrint(graph->captured, path, cudaGraphDebugDotFlagsVerbose));
    return 0;
}

int dt_cuda_graph_launch(dt_stream stream, void *handle)
{
    Graph *graph = (Graph *)handle;
    cudaStream_t on = (cudaStream_t)stream.handle;
    /* Refill the memory that the previous launch reads. */
    if (graph->last != stream.handle)
        CUDA_TRY("waiting for a launch of the graph",
                 cudaStreamWaitEvent(on, graph->done, 0));
    for (const Drawn &each : graph->drawn) {
        uint64_t start[2];
        if (!each.counters)
            continue;
        start[1] = dt_generator_reserve(each.generator, each.counters, &start[0]);
        if (dt_cuda_copy_to_device(stream, each.start, start, sizeof start))
            return -1;
    }
    CUDA_TRY("launching a graph", cudaGraphLaunch(graph->exec, on));
    graph->last = stream.handle;
    note_uses(graph, stream);
    CUDA_TRY("recording an event", cudaEventRecord(graph->done, on));
    return 0;
}

int dt_cuda_graph_capturing(dt_stream stream)
{
    return graphs_under_way() && is_capturing(stream);
}

void dt_cuda_graph_free(void *handle)
{
    Graph *graph = (Graph *)handle;
    const int device = graph->stream.device;
    if (device_use(device)) {
        dt_error_clear();
        delete graph;
        return;
    }
    if (graph->capturing)
        cuda_succeeds(end_capture(graph));
    drop_captured(graph);
    if (graph->exec)
        cuda_succeeds(cudaGraphExecDestroy(graph->exec));
    if (graph->done)
        cuda_succeeds(cudaEventDestroy(graph->done));
    for (const Drawn &each : graph->drawn)
        dt_cuda_release(device, each.start, 2 * sizeof(uint64_t));
    for (void *memory : graph->staged)
        dt_cuda_pinned_release(memory);
    if (graph->pooled)
        heap_drop_pool(device, graph->pool);
    delete graph;
}
