/* For stand-ins of CUDA's libraries (blas.cpp): queues their work on a simulated
 * stream. */
#ifndef DT_SIM_QUEUE_H
#define DT_SIM_QUEUE_H

#include <functional>
#include <initializer_list>
#include "cuda_runtime.h"

namespace sim {

/* Device memory that the work reads or writes. */
struct Region {
    const void *pointer; /* the program's address */
    size_t bytes;        /* from there on; 0: any part of the block */
};

/* Queues work(seen) in stream order; seen[i] is where the work can access
 * regions[i], NULL for NULL. Regions are checked like those of a copy: memory of the
 * stream's device, or of a peer with access, inside a live block; if not, the work
 * does not run and the next synchronization reports cudaErrorIllegalAddress. `name`,
 * a literal, appears in that report. The work runs on
 * the synchronizing thread with the simulator locked: it must not call the CUDA
 * runtime, nor wait for a thread that might. Returns cudaErrorInvalidResourceHandle
 * for a bad stream (NULL: the current device's default stream). Does not
 * synchronize. */
cudaError_t enqueue(cudaStream_t stream, const char *name,
                    std::initializer_list<Region> regions,
                    std::function<void(void *const *seen)> work);

} /* namespace sim */

#endif
