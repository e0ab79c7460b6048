/* The interface of graph capture within the CUDA backend. */
#ifndef DT_CUDA_RUNTIME_GRAPH_H
#define DT_CUDA_RUNTIME_GRAPH_H

#include "cuda/runtime/backend.h"
#include "device/random.h"

/* Whether a graph is being captured, by any thread: then nothing may be waited for or
 * queried. */
bool graphs_under_way(void);

/* Whether a graph takes the stream's work. -1 after dt_fail if it is another
 * device's. */
int graph_holds(dt_stream stream, bool *out);

/* Where a draw begins: counter `offset` of the key `seed` or, if state is not NULL, of
 * the key state[0], `offset` after state[1]. */
struct DrawStart {
    uint64_t seed, offset;
    const uint64_t *state; /* on the device */
};

/* Reserves counters of the generator, now or for each launch of the graph. */
int graph_draw(dt_stream stream, dt_generator *generator, uint64_t counters,
               DrawStart *out);

/* If a graph takes the stream's work, a copy of host memory that lives as long as the
 * graph; else *out is NULL. */
int graph_stage(dt_stream stream, const void *source, size_t bytes, void **out);

/* While one lives, this thread may do what CUDA refuses while a graph is captured, for
 * its work that no graph takes: allocate memory, load kernels, wait. */
class Relaxed {
  public:
    Relaxed();
    ~Relaxed();
    Relaxed(const Relaxed &) = delete;

  private:
    bool changed;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
};

/* --- the graph's memory (allocator.cpp) --- */

/* Allocations of the device's capturing streams come from the pool of this number,
 * which several graphs may have, until the capture ends. */
void heap_begin_capture(int device, uint64_t pool);
void heap_end_capture(int device);
/* One graph less has the pool. The last one leaves its memory to empty_cache(), since
 * work of a launch may still use it. */
void heap_drop_pool(int device, uint64_t pool);

#endif
