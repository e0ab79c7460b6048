#include "device/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "device/activity.h"
#include "device/fusion.h"
#include "device/stream.h"

int dt_graphs_capturing;

/* The graph that each device captures, by dt_device_slot; or NULL. Other threads read it. */
static dt_graph *captures[DT_DEVICE_SLOTS];

static void set_capturing(dt_graph *graph, bool capturing)
{
    graph->capturing = capturing;
    dt_lock(DT_LOCK_STREAMS);
    captures[dt_device_slot(graph->device)] = capturing ? graph : NULL;
    __atomic_add_fetch(&dt_graphs_capturing, capturing ? 1 : -1, __ATOMIC_RELEASE);
    dt_unlock(DT_LOCK_STREAMS);
}

/* A copy of the graph of a device, by its slot: false if there is none. */
static bool capture_of(int slot, dt_graph *out)
{
    dt_lock(DT_LOCK_STREAMS);
    bool found = captures[slot] != NULL;
    if (found)
        *out = *captures[slot];
    dt_unlock(DT_LOCK_STREAMS);
    return found;
}

static void lose(int slot, const char *why)
{
    dt_lock(DT_LOCK_STREAMS);
    if (captures[slot])
        snprintf(captures[slot]->why, DT_GRAPH_WHY, "%s", why);
    dt_unlock(DT_LOCK_STREAMS);
}

static bool takes(const dt_backend *gpu, dt_stream stream)
{
    return gpu->graph_capturing(stream) == 1;
}

static bool forbids(const dt_graph *graph, dt_device device, const dt_stream *stream)
{
    const bool same = dt_device_equal(graph->device, device);
    if (same && (!stream || takes(dt_backend_of(device), *stream)))
        return true;
    return graph->mode == DT_GRAPH_GLOBAL ||
           (graph->mode == DT_GRAPH_THREAD_LOCAL &&
            pthread_equal(graph->thread, pthread_self()));
}

int dt_graph_refuse(const char *what, dt_device device, const dt_stream *stream)
{
    char line[DT_LINE_TEXT], name[DT_DEVICE_TEXT];
    if (!dt_device_has_streams(device))
        return 0;
    for (int i = 0; i < DT_DEVICE_SLOTS; i++) {
        dt_graph graph;
        if (!capture_of(i, &graph) || !forbids(&graph, device, stream))
            continue;
        dt_activity_line_text(dt_activity_line(), line);
        snprintf(graph.why, sizeof graph.why, "%s%s%s", what, *line ? " at " : "",
                 line);
        lose(i, graph.why);
        return dt_fail(DT_ERROR_ACCELERATOR,
                       "%s cannot be captured in a CUDA graph of %s: captured work has "
                       "not run, so nothing can wait for it or read its results. Move "
                       "it out of the capture, which is lost",
                       graph.why, dt_device_text(graph.device, name));
    }
    return 0;
}

bool dt_graph_is_capturing(dt_device device)
{
    return __atomic_load_n(&dt_graphs_capturing, __ATOMIC_RELAXED) &&
           dt_device_has_streams(device) &&
           takes(dt_backend_of(device), dt_stream_current(device));
}

int dt_graph_begin(dt_graph *graph, dt_device device, dt_graph_mode mode, uint64_t pool,
                   struct dt_generator *const *generators, int count)
{
    dt_stream stream = dt_stream_current(device);
    if (graph->handle)
        return dt_fail(DT_ERROR_RUNTIME,
                       "capture_begin: this graph holds a capture already; reset() it, "
                       "or use another CUDAGraph");
    if (!stream.handle)
        return dt_fail(DT_ERROR_RUNTIME,
                       "capture_begin: the default stream cannot be captured; make "
                       "another one current with `with torch.cuda.stream(...):`");
    *graph = (dt_graph){.device = device,
                        .stream = stream,
                        .mode = mode,
                        .thread = pthread_self(),
                        .keep = graph->keep,
                        .debug = graph->debug};
    if (dt_fusion_order("a capture") ||
        dt_backend_of(device)->graph_begin(stream, mode, pool, generators, count,
                                           &graph->handle))
        return -1;
    set_capturing(graph, true);
    return 0;
}

static int instantiate(dt_graph *graph)
{
    if (dt_backend_of(graph->device)
            ->graph_instantiate(graph->stream, graph->handle,
                                graph->keep || graph->debug))
        return -1;
    graph->ready = true;
    return 0;
}

int dt_graph_end(dt_graph *graph)
{
    if (!graph->capturing)
        return dt_fail(DT_ERROR_RUNTIME,
                       "capture_end: the graph is not being captured; call "
                       "capture_begin() first");
    if (dt_stream_current(graph->device).handle != graph->stream.handle)
        return dt_fail(DT_ERROR_RUNTIME,
                       "capture_end: the current stream is not the one on which the "
                       "capture began; make that one current");
    const int status = dt_fusion_order("the end of a capture");
    set_capturing(graph, false);
    if (!*graph->why && !status &&
        !dt_backend_of(graph->device)->graph_end(graph->stream, graph->handle) &&
        (graph->keep || !instantiate(graph)))
        return 0;
    if (*graph->why)
        dt_fail(DT_ERROR_ACCELERATOR,
                "capture_end: the capture was lost by %s, so there is no graph; "
                "capture it again without that",
                graph->why);
    dt_graph_reset(graph);
    return -1;
}

static int check_ended(const dt_graph *graph, const char *what)
{
    if (graph->handle && !graph->capturing)
        return 0;
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the graph has no capture that has ended; capture it first, with "
        "`with torch.cuda.graph(g):`",
        what);
}

int dt_graph_instantiate(dt_graph *graph)
{
    if (check_ended(graph, "instantiate"))
        return -1;
    if (!graph->keep)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "instantiate: capture_end() has done that, and kept nothing to do "
            "it again; create the graph with CUDAGraph(keep_graph=True)");
    return instantiate(graph);
}

int dt_graph_native(const dt_graph *graph, bool launched, void **out)
{
    if (check_ended(graph, launched ? "raw_cuda_graph_exec" : "raw_cuda_graph"))
        return -1;
    if (!launched && !graph->keep)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "raw_cuda_graph: what was captured is not kept; create the graph "
            "with CUDAGraph(keep_graph=True)");
    if (launched && !graph->ready)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "raw_cuda_graph_exec: there is none yet; call instantiate() first");
    *out = dt_backend_of(graph->device)->graph_native(graph->handle, launched);
    return 0;
}

int dt_graph_dump(const dt_graph *graph, const char *path)
{
    return check_ended(graph, "debug_dump")
               ? -1
               : dt_backend_of(graph->device)->graph_dump(graph->handle, path);
}

int dt_graph_launch(dt_graph *graph)
{
    dt_stream stream = dt_stream_current(graph->device);
    dt_activity activity = {.kind = DT_ACTIVITY_KERNEL,
                            .name = "graph replay",
                            .device = graph->device,
                            .stream = stream.handle};
    dt_observed observed;
    if (check_ended(graph, "replay"))
        return -1;
    if (dt_graph_is_capturing(graph->device))
        return dt_fail(DT_ERROR_RUNTIME,
                       "replay: a graph cannot be replayed while its stream captures "
                       "another one");
    if (!graph->ready && instantiate(graph))
        return -1;
    if (dt_fusion_order("a graph") || dt_activity_begin(&observed, &activity))
        return -1;
    return dt_activity_end(
        &observed, &activity,
        dt_backend_of(graph->device)->graph_launch(stream, graph->handle));
}

void dt_graph_reset(dt_graph *graph)
{
    if (graph->capturing)
        set_capturing(graph, false);
    if (graph->handle)
        dt_backend_of(graph->device)->graph_free(graph->handle);
    graph->handle = NULL;
    graph->ready = false;
}
