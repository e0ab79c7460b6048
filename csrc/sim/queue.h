/* For stand-ins of CUDA's libraries (blas.cpp): work of their own in a simulated
 * stream. */
#ifndef DT_SIM_QUEUE_H
#define DT_SIM_QUEUE_H

#include <functional>
#include <initializer_list>
#include "cuda_runtime.h"

namespace sim {

/* Some bytes of device memory that a piece of work reads or writes. */
struct Region {
    const void *pointer; /* as the program holds it */
    size_t bytes; /* from there on; 0: any part of the block that it points into */
};

/* Queues work(seen), to run in the stream's order; seen[i] is where regions[i] can be
 * touched, NULL for NULL. Regions are checked as a copy's are: memory of the stream's
 * device (or of a peer that it may access), inside a live block; otherwise the work
 * does not run and the next wait reports cudaErrorIllegalAddress. So it is safe to
 * queue anything. `name`, a constant, appears in that report and among the kernels'
 * counts. It runs on the waiting thread, with the simulator locked: it must call
 * nothing of the CUDA runtime, and not wait for another thread that might. Gives
 * cudaErrorInvalidResourceHandle for a bad stream; never waits. NULL is the current
 * device's default stream. */
cudaError_t enqueue(cudaStream_t stream, const char *name,
                    std::initializer_list<Region> regions,
                    std::function<void(void *const *seen)> work);

} /* namespace sim */

#endif
