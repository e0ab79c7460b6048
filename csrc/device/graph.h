/* Graphs: work that a stream captures once, and that is launched many times. The core
 * refuses what cannot be captured, with the program's line, before a device sees it. */
#ifndef DT_DEVICE_GRAPH_H
#define DT_DEVICE_GRAPH_H

#include <pthread.h>

#include "device/device.h"

/* Whose calls are refused that would wait, other than for what is captured: those of all
 * threads, of the thread that captures, or of none. The numbers are CUDA's. */
typedef enum dt_graph_mode {
    DT_GRAPH_GLOBAL,
    DT_GRAPH_THREAD_LOCAL,
    DT_GRAPH_RELAXED
} dt_graph_mode;

enum { DT_GRAPH_WHY = 512 };

typedef struct dt_graph {
    dt_device device;
    dt_stream stream; /* that captures */
    dt_graph_mode mode;
    pthread_t thread;
    void *handle; /* the backend's; NULL: there is none */
    bool capturing;
    bool ready; /* for launches */
    /* Set before the capture, they let what was captured stay after it was made ready. */
    bool keep;  /* the program may change it, and have it made ready again */
    bool debug; /* the program may write it to a file */
    char why[DT_GRAPH_WHY]; /* the capture is lost: what was refused; or "" */
} dt_graph;

/* Captures the current stream of the device, which may not be the default one. The
 * arguments are those of dt_backend.graph_begin. */
int dt_graph_begin(dt_graph *graph, dt_device device, dt_graph_mode mode, uint64_t pool,
                   struct dt_generator *const *generators, int count);
/* Ends the capture, and unless graph->keep makes it ready; fails, and drops what was
 * captured, if it is lost. */
int dt_graph_end(dt_graph *graph);
/* Makes a graph with graph->keep ready, again if it was. */
int dt_graph_instantiate(dt_graph *graph);
/* CUDA's handle of what was captured (graph->keep), or of what is launched. */
int dt_graph_native(const dt_graph *graph, bool launched, void **out);
/* Writes what was captured (graph->keep, graph->debug) to a DOT file. */
int dt_graph_dump(const dt_graph *graph, const char *path);
/* Queues the work on the device's current stream. */
int dt_graph_launch(dt_graph *graph);
/* Drops what was captured, if anything. */
void dt_graph_reset(dt_graph *graph);

/* Whether a graph takes the work of the device's current stream. */
bool dt_graph_is_capturing(dt_device device);

extern int dt_graphs_capturing; /* how many there are */
int dt_graph_refuse(const char *what, dt_device device, const dt_stream *stream);

/* 0, or -1 after dt_fail if `what`, which waits for the stream (NULL: the device) or asks
 * about it, is not allowed because of a capture, which is lost then. */
static inline int dt_graph_check(const char *what, dt_device device,
                                 const dt_stream *stream)
{
    return __atomic_load_n(&dt_graphs_capturing, __ATOMIC_RELAXED)
               ? dt_graph_refuse(what, device, stream)
               : 0;
}

#endif
