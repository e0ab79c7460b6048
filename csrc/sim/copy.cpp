/* Copies and fills. Both ends are accessed when the work runs, even where CUDA would
 * have staged pageable memory: a program that relies on the staging always fails
 * here. */
#include "internal.h"
#include <string.h>

namespace sim {

enum { kAnyDevice = -1 };

/* Checks one end of a copy; returns the address at which work can access it. */
static void *reach_end(Work &work, int stream_device, bool on_device, int owner,
                       const void *pointer, const char *role)
{
    void *seen;
    Device *device = device_of(pointer);
    if (!on_device) {
        if (!device)
            return (void *)pointer;
        set_fault(work, format("the %s of %s: the direction says host memory, but %p "
                               "is memory of simulated cuda:%d",
                               role, work.title().c_str(), pointer, device->index));
        return nullptr;
    }
    if (owner != kAnyDevice && device && device->index != owner)
        set_fault(work,
                  format("the %s of %s is on simulated cuda:%d, not on cuda:%d as "
                         "the copy says",
                         role, work.title().c_str(), device->index, owner));
    reach(work, {stream_device, false, true, false, role, 0}, pointer, work.bytes,
          &seen);
    return seen;
}

static void count_copy(int stream_device, const void *to, const void *from,
                       size_t bytes)
{
    Device *target = device_of(to), *source = device_of(from);
    const int64_t n = (int64_t)bytes;
    if (!target && !source) {
        device_at(stream_device).counted.copies_on_host++;
    } else if (!source) {
        target->counted.copies_to_device++;
        target->counted.bytes_to_device += n;
    } else if (!target) {
        source->counted.copies_to_host++;
        source->counted.bytes_to_host += n;
    } else if (target == source) {
        target->counted.copies_on_device++;
        target->counted.bytes_on_device += n;
    } else {
        target->counted.copies_between_devices++;
        target->counted.bytes_between_devices += n;
    }
}

/* Whether the memory is page-locked, from its first byte to its last. */
static bool is_pinned(const void *memory, size_t bytes)
{
    const char *end = pinned_end(memory);
    return end && (const char *)memory + bytes <= end;
}

static Cost copy_cost(const void *to, const void *from, size_t bytes)
{
    Device *target = device_of(to), *source = device_of(from);
    Cost cost;
    cost.kind = Cost::kCopy;
    cost.bytes = (double)bytes;
    cost.target = target ? target->index : kOnHost;
    cost.source = source ? source->index : kOnHost;
    cost.pinned =
        (target || is_pinned(to, bytes)) && (source || is_pinned(from, bytes));
    if (cost.target == cost.source) /* reads and writes */
        cost.bytes *= 2;
    return cost;
}

/* The bytes of a copy: rows, at a distance at each end. */
struct Rows {
    size_t width, count = 1, to_pitch = 0, from_pitch = 0;

    size_t bytes() const { return width * count; }
    size_t extent(size_t pitch) const { return (count - 1) * pitch + width; }
};

static cudaError_t copy(void *to, bool to_device, int to_owner, const void *from,
                        bool from_device, int from_owner, const Rows &rows,
                        cudaStream_t handle)
{
    const size_t bytes = rows.bytes();
    Stream *stream = stream_of(handle);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (cudaError_t error = check_capture(*stream))
        return error;
    if ((!to_device && !is_pinned(to, bytes)) ||
        (!from_device && !is_pinned(from, bytes)))
        if (cudaError_t error = refuse_while_capturing()) /* CUDA stages it and waits */
            return error;
    count_copy(stream->device, to, from, bytes);
    if (cudaError_t error = failure("copy", cudaErrorUnknown))
        return error;
    if (!bytes)
        return cudaSuccess;
    if (!to || !from)
        return cudaErrorInvalidValue;
    const size_t reads = rows.extent(rows.from_pitch),
                 writes = rows.extent(rows.to_pitch);
    Work work;
    work.name = "copy";
    work.bytes = writes;
    void *there = reach_end(work, stream->device, to_device, to_owner, to, "target");
    work.bytes = reads;
    void *here =
        reach_end(work, stream->device, from_device, from_owner, from, "source");
    work.bytes = bytes;
    if (program_refuses(work))
        return cudaErrorInvalidValue;
    race_touch(work, from, reads, true, false);
    race_touch(work, to, writes, false, true);
    block_filled(work, to);
    work.run = [there, here, rows] {
        for (size_t i = 0; i < rows.count; i++)
            memmove((char *)there + i * rows.to_pitch,
                    (const char *)here + i * rows.from_pitch, rows.width);
    };
    if (clock_runs())
        work.cost = copy_cost(to, from, bytes);
    program_orders_peers(*stream, to, from, false);
    push(*stream, std::move(work));
    program_orders_peers(*stream, to, from, true);
    return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t handle, const char *name,
                    std::initializer_list<Region> regions,
                    std::function<void(void *const *seen)> function, const Cost &cost)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_capture(*stream))
        return answer(error);
    device_at(stream->device).counted.launches++;
    if (cudaError_t error = failure("launch", cudaErrorLaunchOutOfResources))
        return answer(error);
    Work work;
    work.name = name;
    work.check_canaries = true;
    work.cost = cost;
    if (cost.kind == Cost::kNothing) {
        work.cost.kind = Cost::kKernel;
        work.cost.threads = 1;
    }
    std::vector<void *> seen;
    int number = 0;
    for (const Region &region : regions) {
        void *there = nullptr;
        number++;
        if (region.pointer)
            reach(work,
                  {stream->device, true, region.bytes != 0, true, "operand", number},
                  region.pointer, region.bytes, &there);
        race_pointer(work, region.pointer, region.bytes, true, region.writes);
        if (region.writes)
            block_filled(work, region.pointer);
        seen.push_back(there);
    }
    work.run = [function, seen] { function(seen.data()); };
    push(*stream, std::move(work));
    return cudaSuccess;
}

} /* namespace sim */

using namespace sim;

/* Whether an end of a copy is on a device. Managed memory is on either side. */
static bool on_device(const void *end, bool says, cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault)
        return device_of(end);
    return says && !(program_runs && pinned_end(end));
}

static cudaError_t copy_kind(void *to, const void *from, const Rows &rows,
                             cudaMemcpyKind kind, cudaStream_t stream)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return answer(copy(to, on_device(to, to_device, kind), kAnyDevice, from,
                       on_device(from, from_device, kind), kAnyDevice, rows, stream));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)
{
    SIM_ENTER();
    return copy_kind(to, from, {bytes}, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    SIM_ENTER();
    if (width > to_pitch || width > from_pitch)
        return answer(cudaErrorInvalidValue);
    return copy_kind(to, from, {width, rows, to_pitch, from_pitch}, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from,
                                int from_device, size_t bytes, cudaStream_t stream)
{
    SIM_ENTER();
    int n = state().options.devices;
    if (to_device < 0 || to_device >= n || from_device < 0 || from_device >= n)
        return answer(cudaErrorInvalidDevice);
    return answer(copy(to, true, to_device, from, true, from_device, {bytes}, stream));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t handle)
{
    SIM_ENTER();
    Stream *stream = stream_of(handle);
    if (!stream)
        return answer(cudaErrorInvalidResourceHandle);
    if (cudaError_t error = check_capture(*stream))
        return answer(error);
    device_at(stream->device).counted.memsets++;
    if (cudaError_t error = failure("memset", cudaErrorUnknown))
        return answer(error);
    if (!bytes)
        return cudaSuccess;
    if (!to)
        return answer(cudaErrorInvalidValue);
    Work work;
    work.name = "memset";
    work.bytes = bytes;
    work.cost.kind = Cost::kFill;
    work.cost.bytes = (double)bytes;
    void *seen;
    reach(work, {stream->device, true, true, true, "target", 0}, to, bytes, &seen);
    if (program_refuses(work))
        return answer(cudaErrorInvalidValue);
    race_touch(work, to, bytes, false, true);
    block_filled(work, to);
    work.run = [seen, value, bytes] { memset(seen, value, bytes); };
    push(*stream, std::move(work));
    return cudaSuccess;
}
