/* Memory that processes share. cudaIpcOpenMemHandle maps the pages of another process's
 * cudaMalloc into the address window of this process's device. That memory counts as used in
 * the process that allocated it, and not here. */
#include "base/shared_file.h"
#include "internal.h"
#include <string.h>
#include <unistd.h>

namespace sim {

/* The contents of a cudaIpcMemHandle_t. */
struct MemoryHandle {
    char file[DT_SHARED_FILE]; /* of the device's memory */
    uint64_t offset, bytes;
};
static_assert(sizeof(MemoryHandle) == sizeof(cudaIpcMemHandle_t), "the handle's size");

} /* namespace sim */

using namespace sim;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *pointer)
{
    SIM_ENTER();
    Device *device = device_of(pointer);
    auto found = device ? entry_before(device->segments, pointer)
                        : std::map<char *, Segment>::iterator();
    if (!out || !device || found == device->segments.end() ||
        device->pages.count(found->first) ||
        (char *)pointer >= found->first + found->second.whole->rounded)
        return answer(cudaErrorInvalidValue);
    MemoryHandle made = {};
    if (dt_shared_file_name(device->file, made.file))
        return answer(cudaErrorOperatingSystem);
    made.offset = (uint64_t)(found->first - device->held);
    made.bytes = found->second.whole->rounded;
    memcpy(out, &made, sizeof made);
    found->second.shared = true;
    return cudaSuccess;
}

/* Maps the pages that the allocation is in. *out is the first page; the allocation begins
 * given.offset % page bytes after it. */
static cudaError_t open_memory(Device &device, const MemoryHandle &given,
                               std::string name, char **out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = given.offset % page;
    const size_t bytes = (before + given.bytes + page - 1) / page * page;
    char *base = free_window(device, bytes);
    if (!base)
        return cudaErrorMemoryAllocation;
    int file = dt_shared_file_open(given.file);
    if (file < 0) /* its process has ended, or belongs to another user */
        return cudaErrorInvalidResourceHandle;
    cudaError_t error =
        map_pages(device, base,
                  {bytes, file, (off_t)(given.offset - before), std::move(name)}, true);
    if (error) {
        close(file);
        return error;
    }
    Segment &segment = device.segments[base];
    segment.whole = std::make_shared<Block>(Block{device.index, base, bytes, bytes});
    segment.whole->laid_out = segment.whole->filled = true;
    segment.shared = true;
    *out = base;
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags)
{
    SIM_ENTER();
    if (!out || flags != cudaIpcMemLazyEnablePeerAccess)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = refuse_while_capturing())
        return answer(error);
    MemoryHandle given;
    memcpy(&given, &handle, sizeof given);
    given.file[sizeof given.file - 1] = '\0';
    const int maker = dt_shared_file_maker(given.file);
    if (!maker || !given.bytes || given.bytes > state().window ||
        given.offset > state().window)
        return answer(cudaErrorInvalidValue);
    if (maker == getpid())
        return answer(cudaErrorDeviceUninitialized);
    Device &device = device_at(thread().device);
    const std::string name =
        format("%s+%llu", given.file, (unsigned long long)given.offset);
    char *base = nullptr;
    for (auto &each : device.pages)
        if (each.second.name == name)
            base = each.first;
    if (!base)
        if (cudaError_t error = open_memory(device, given, name, &base))
            return answer(error);
    device.segments[base].opened++;
    *out = base + given.offset % (size_t)sysconf(_SC_PAGESIZE);
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *opened)
{
    SIM_ENTER();
    Device *device = device_of(opened);
    auto found = device ? entry_before(device->segments, opened)
                        : std::map<char *, Segment>::iterator();
    if (!device || found == device->segments.end() || !found->second.opened)
        return answer(cudaErrorInvalidValue);
    if (--found->second.opened)
        return cudaSuccess;
    Block &whole = *found->second.whole;
    forget_segment(*device, found->second);
    whole.reused = true; /* work that is still queued for it fails */
    close(device->pages[whole.base].file);
    unmap_pages(*device, whole.base);
    device->segments.erase(found);
    return cudaSuccess;
}
