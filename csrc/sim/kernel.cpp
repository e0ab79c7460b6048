/* Launches: the checks before a kernel starts, and the work that a launch becomes. */
#include "internal.h"
#include <string.h>

namespace sim {

static const size_t kSharedDefault = 48 << 10;
static const int kSharedMost = 163 << 10;

static int shared_limit(const void *kernel)
{
    auto found = state().shared_limits.find(kernel);
    return found == state().shared_limits.end() ? (int)kSharedDefault : found->second;
}

static cudaError_t check_extents(const Launch &launch)
{
    const dim3 g = launch.grid, b = launch.block;
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z)
        return cudaErrorInvalidConfiguration;
    if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (b.x > 1024 || b.y > 1024 || b.z > 64 || b.x * b.y * b.z > 1024)
        return cudaErrorInvalidConfiguration;
    if (launch.shared > (size_t)shared_limit(launch.function))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

/* A slot is a pointer of some type: copy its bytes. */
static void reach_arguments(Work &work, int device, const std::vector<void *> &slots)
{
    int number = 0;
    for (void *slot : slots) {
        void *held, *seen;
        memcpy(&held, slot, sizeof held);
        reach(work, {device, true, false, true, "pointer", ++number}, held, 0, &seen);
        memcpy(slot, &seen, sizeof seen);
    }
}

cudaError_t submit(const Launch &launch, std::unique_ptr<Body> body,
                   const std::vector<void *> &slots)
{
    Entry in;
    if (in.error)
        return answer(in.error);
    Stream *stream = stream_of(launch.stream);
    if (!stream || stream->device != thread().device)
        return answer(cudaErrorInvalidResourceHandle);
    Device &device = *state().devices[(size_t)stream->device];
    cudaError_t error = check_extents(launch);
    if (error)
        return answer(error);
    device.counted.launches++;
    device.kernels[launch.name]++;
    if (fails("launch"))
        return answer(cudaErrorLaunchOutOfResources);
    Work work;
    work.name = launch.name;
    work.check_canaries = true;
    reach_arguments(work, stream->device, slots);
    const int where = stream->device;
    std::shared_ptr<Body> kept = std::move(body);
    work.run = [launch, kept, where] {
        Outcome outcome;
        run_grid(launch, *kept, &outcome);
        if (outcome.error)
            blame(where, outcome.error, outcome.text);
    };
    push(*stream, std::move(work));
    /* Like <<< >>>, errors of the kernel show at a synchronization. */
    return cudaSuccess;
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, const void *kernel)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return answer(in.error);
    if (!out || !kernel)
        return answer(out ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidValue);
    *out = cudaFuncAttributes();
    out->maxThreadsPerBlock = 1024;
    out->numRegs = 32;
    out->ptxVersion = out->binaryVersion = 80;
    out->maxDynamicSharedSizeBytes = shared_limit(kernel);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute,
                                 int value)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return answer(in.error);
    if (!kernel)
        return answer(cudaErrorInvalidDeviceFunction);
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || value > kSharedMost)
            return answer(cudaErrorInvalidValue);
        state().shared_limits[kernel] = value;
        return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        return cudaSuccess;
    }
    return answer(cudaErrorInvalidValue);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *kernel,
                                                          int block_size, size_t shared)
{
    Entry in(Entry::kNothing);
    if (in.error)
        return answer(in.error);
    if (!blocks || block_size < 1)
        return answer(cudaErrorInvalidValue);
    if (!kernel)
        return answer(cudaErrorInvalidDeviceFunction);
    int fit = block_size > 1024 ? 0 : 2048 / ((block_size + 31) / 32 * 32);
    if (shared > (size_t)shared_limit(kernel))
        fit = 0;
    else if (shared && (size_t)(kSharedMost + 1024) / (shared + 1024) < (size_t)fit)
        fit = (int)((size_t)(kSharedMost + 1024) / (shared + 1024));
    *blocks = fit < 32 ? fit : 32;
    return cudaSuccess;
}
