/* Launches: the checks before a kernel starts, and the work that a launch becomes. */
#include "check.h"
#include "internal.h"
#include <string.h>

namespace sim {

static cudaError_t check_extents(const Launch &launch)
{
    const dim3 g = launch.grid, b = launch.block;
    if (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z)
        return cudaErrorInvalidConfiguration;
    if (g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (b.x > 1024 || b.y > 1024 || b.z > 64 || b.x * b.y * b.z > kMaxThreads)
        return cudaErrorInvalidConfiguration;
    if (launch.shared > (launch.opted_in ? shared_optin() : (size_t)kSharedBytes))
        return cudaErrorInvalidValue;
    return cudaSuccess;
}

/* Loads the kernel at its first launch, as CUDA may do, which allocates. */
static cudaError_t load(Device &device, const Launch &launch, const Body &body)
{
    cudaError_t error = cudaSuccess;
    if (program_runs) /* CUDA's own launches load as part of the capture */
        return error;
    if (device.loaded.count(body.code()))
        return error;
    error = refuse_while_capturing();
    if (!error && device.loaded.insert(body.code()).second)
        state().kernels.insert(format("%s %s\n", launch.file, launch.name));
    return error;
}

/* A slot is a pointer of some type: copy its bytes. */
static void reach_arguments(Work &work, int device, const std::vector<Slot> &slots,
                            bool looked_at)
{
    int number = 0;
    for (const Slot &slot : slots) {
        void *held, *seen;
        memcpy(&held, slot.at, sizeof held);
        reach(work, {device, true, false, true, "pointer", ++number}, held, 0, &seen);
        memcpy(slot.at, &seen, sizeof seen);
        race_pointer(work, held, 0, true, !slot.reads);
        if (!slot.reads && !looked_at)
            block_filled(work, held);
    }
}

cudaError_t submit(const Launch &launch, std::unique_ptr<Body> body,
                   const std::vector<Slot> &slots, size_t bytes)
{
    SIM_ENTER();
    Stream *stream = stream_of(launch.stream);
    if (!stream || stream->device != thread().device)
        return answer(cudaErrorInvalidResourceHandle);
    cudaError_t error = check_capture(*stream);
    if (error)
        return answer(error);
    error = check_extents(launch);
    if (error)
        return answer(error);
    error = load(device_at(stream->device), launch, *body);
    if (error)
        return answer(error);
    device_at(stream->device).counted.launches++;
    error = failure("launch", cudaErrorLaunchOutOfResources);
    if (error)
        return answer(error);
    Work work;
    work.name = launch.name;
    work.check_canaries = true;
    work.cost.kind = Cost::kKernel;
    work.cost.blocks = (double)launch.grid.x * launch.grid.y * launch.grid.z;
    work.cost.threads =
        work.cost.blocks * (launch.block.x * launch.block.y * launch.block.z);
    if (check_library && check_mode() && bytes)
        check_describe(launch.name, *body, bytes, slots);
    if (clock_runs() && body->checks && body->checks->module != check_library)
        work.counted = body->checks->counted = std::make_shared<Cost>(work.cost);
    reach_arguments(work, stream->device, slots, body->checks != nullptr);
    const int where = stream->device;
    std::shared_ptr<Body> kept = std::move(body);
    work.run = [launch, kept, where] {
        Outcome outcome;
        run_grid(launch, *kept, &outcome);
        kept->finish();
        const char *line = program_line(outcome.code);
        if (outcome.error && *line)
            blame(where, outcome.error, format("%s (%s)", outcome.text, line));
        else if (outcome.error && outcome.text[0])
            blame(where, outcome.error, outcome.text);
    };
    push(*stream, std::move(work));
    /* Like <<< >>>, errors of the kernel show at a synchronization. */
    return cudaSuccess;
}

} /* namespace sim */
