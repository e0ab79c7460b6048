/* Addresses and memory apart, as the driver's functions of virtual memory: a range of a
 * device's window is reserved, memory is made, and mapped in the range. A mapping is a
 * segment of the device. Its pages are in a second file of the device, so that a
 * mapping needs no descriptor of its own.
 *
 * Stricter than a driver: memory is mapped whole, in a range that the current device has
 * reserved; and what queued work uses is not unmapped, where a driver does not look. Memory
 * that another process made is gone when that one releases it. */
#include "mapping.h"
#include "base/shared_file.h"
#include "internal.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {

static const size_t kGranularity = (size_t)2 << 20;

std::map<char *, size_t>::iterator reservation_of(Device &device, const void *at)
{
    auto found = entry_before(device.reserved, at);
    return found != device.reserved.end() &&
                   (const char *)at < found->first + found->second
               ? found
               : device.reserved.end();
}

bool may_reach(const Block &block, int device)
{
    Device &owner = device_at(block.device);
    if (reservation_of(owner, block.base) == owner.reserved.end())
        return true;
    auto at = entry_before(owner.pages, block.base);
    for (; at != owner.pages.end() && at->first < block.base + block.rounded; ++at)
        if (!(at->second.reaching >> device & 1))
            return false;
    return true;
}

/* The least offset in the file at which so many bytes are free. */
static off_t free_offset(const Device &device, size_t bytes)
{
    std::map<off_t, size_t> taken;
    for (auto &each : device.physical)
        if (each.second.file < 0)
            taken[each.second.offset] = each.second.bytes;
    off_t at = 0;
    for (auto &each : taken) {
        if ((size_t)(each.first - at) >= bytes)
            break;
        at = each.first + (off_t)each.second;
    }
    return at;
}

/* Whether the file can have so many bytes. */
static bool make_room(Device &device, size_t bytes)
{
    if (device.more < 0)
        device.more = new_file(device.index);
    return device.more >= 0 && ((off_t)bytes <= lseek(device.more, 0, SEEK_END) ||
                                ftruncate(device.more, (off_t)bytes) == 0);
}

/* Returns the memory once nothing maps it. */
static void let_go(Device &device, unsigned long long number)
{
    Physical &memory = device.physical[number];
    if (memory.mapped || !memory.released)
        return;
    if (memory.file >= 0) {
        close(memory.file);
        device.physical.erase(number);
        return;
    }
    device.used -= memory.bytes;
    device.counted.frees++;
    /* Where the system cannot, it keeps the pages for the next owner. */
    (void)!fallocate(device.more, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     memory.offset, (off_t)memory.bytes);
    device.physical.erase(number);
}

static unsigned long long add_memory(Device &device, const Physical &memory)
{
    static unsigned long long last;
    device.physical[++last] = memory;
    return last;
}

/* The device whose memory it is; NULL: there is none of this number. */
static Device *owner_of(unsigned long long number)
{
    for (auto &device : state().devices)
        if (device->physical.count(number))
            return device.get();
    return nullptr;
}

/* The contents of the file that a descriptor of exported memory opens. */
struct Exported {
    char file[DT_SHARED_FILE]; /* of the device's memory */
    uint64_t offset, bytes;
};

/* The device in whose window a range is mapped from end to end, by whole mappings; NULL: it
 * is not. */
static Device *mapped_device(char *base, size_t bytes)
{
    Device *device = device_of(base);
    const char *end = base;
    while (device && end < base + bytes) {
        auto found = device->pages.find((char *)end);
        if (found == device->pages.end() || !found->second.of)
            return nullptr;
        end += found->second.bytes;
    }
    return bytes && end == base + bytes ? device : nullptr;
}

static bool is_memory_of_device(const CUmemAllocationProp *what)
{
    return what && what->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           what->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           what->location.id >= 0 && what->location.id < (int)state().devices.size() &&
           (what->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
            what->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) &&
           !what->win32HandleMetaData;
}

} /* namespace sim */

using namespace sim;

int cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *what, int)
{
    SIM_ENTER();
    if (!out || !is_memory_of_device(what))
        return answer(cudaErrorInvalidValue);
    *out = kGranularity;
    return cudaSuccess;
}

int cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t, CUdeviceptr,
                        unsigned long long flags)
{
    SIM_ENTER();
    if (!out || !bytes || bytes % kGranularity || flags)
        return answer(cudaErrorInvalidValue);
    Device &device = device_at(thread().device);
    char *base = bytes > state().window ? nullptr : free_window(device, bytes);
    if (!base)
        return answer(cudaErrorMemoryAllocation);
    device.reserved[base] = bytes;
    *out = (CUdeviceptr)(uintptr_t)base;
    return cudaSuccess;
}

int cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    SIM_ENTER();
    char *base = (char *)(uintptr_t)at;
    Device *device = device_of(base);
    if (!device || !device->reserved.count(base) || device->reserved[base] != bytes)
        return answer(cudaErrorInvalidValue);
    auto inside = device->pages.lower_bound(base);
    if (inside != device->pages.end() && inside->first < base + bytes)
        return answer(cudaErrorInvalidValue);
    device->reserved.erase(base);
    return cudaSuccess;
}

int cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                const CUmemAllocationProp *what, unsigned long long flags)
{
    SIM_ENTER();
    if (!out || !bytes || bytes % kGranularity || flags || !is_memory_of_device(what))
        return answer(cudaErrorInvalidValue);
    Device &device = device_at(what->location.id);
    if (cudaError_t error = begin_malloc(device))
        return answer(error);
    const off_t offset = free_offset(device, bytes);
    if (bytes > state().options.memory - device.used ||
        !make_room(device, (size_t)offset + bytes))
        return answer(cudaErrorMemoryAllocation);
    device.used += bytes;
    Physical memory{bytes, offset};
    memory.exportable = what->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    *out = add_memory(device, memory);
    return cudaSuccess;
}

int cuMemRelease(CUmemGenericAllocationHandle handle)
{
    SIM_ENTER();
    Device *device = owner_of(handle);
    if (!device || device->physical[handle].released)
        return answer(cudaErrorInvalidValue);
    device->physical[handle].released = true;
    let_go(*device, handle);
    return cudaSuccess;
}

int cuMemMap(CUdeviceptr at, size_t bytes, size_t offset,
             CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    SIM_ENTER();
    char *base = (char *)(uintptr_t)at;
    Device *device = owner_of(handle);
    if (!device || offset || flags || device_of(base) != device)
        return answer(cudaErrorInvalidValue);
    Physical &memory = device->physical[handle];
    auto range = reservation_of(*device, base);
    if (range == device->reserved.end() || bytes != memory.bytes || memory.released ||
        (size_t)(base - range->first) % kGranularity ||
        bytes > range->second - (size_t)(base - range->first))
        return answer(cudaErrorInvalidValue);
    auto before = entry_before(device->pages, base + bytes - 1);
    if (before != device->pages.end() && before->first + before->second.bytes > base)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = refuse_while_capturing())
        return answer(error);
    Pages pages{bytes, memory.file < 0 ? device->more : memory.file, memory.offset};
    pages.of = handle;
    if (cudaError_t error = map_pages(*device, base, std::move(pages), false))
        return answer(error);
    Segment &segment = device->segments[base];
    segment.whole = std::make_shared<Block>(Block{device->index, base, bytes, bytes});
    segment.whole->laid_out = segment.whole->filled = memory.file >= 0;
    segment.shared = memory.file >= 0 || memory.exported;
    memory.mapped++;
    return cudaSuccess;
}

int cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access,
                   size_t count)
{
    SIM_ENTER();
    char *base = (char *)(uintptr_t)at;
    Device *device = mapped_device(base, bytes);
    if (!device || !access)
        return answer(cudaErrorInvalidValue);
    for (size_t i = 0; i < count; i++) {
        const CUmemLocation &where = access[i].location;
        if (where.type != CU_MEM_LOCATION_TYPE_DEVICE || where.id < 0 ||
            where.id >= (int)state().devices.size())
            return answer(cudaErrorInvalidDevice);
        if (where.id != device->index && !state().options.peer)
            return answer(cudaErrorPeerAccessUnsupported);
    }
    auto each = device->pages.find(base);
    for (; each != device->pages.end() && each->first < base + bytes; ++each) {
        Pages &pages = each->second;
        for (size_t i = 0; i < count; i++) {
            const uint64_t bit = (uint64_t)1 << access[i].location.id;
            if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
                pages.reaching |= bit;
            else
                pages.reaching &= ~bit;
        }
        if (mprotect(seen_from(each->first), pages.bytes,
                     pages.reaching ? PROT_READ | PROT_WRITE : PROT_NONE))
            return answer(cudaErrorMemoryAllocation);
    }
    return cudaSuccess;
}

int cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    SIM_ENTER();
    char *base = (char *)(uintptr_t)at;
    Device *device = mapped_device(base, bytes);
    if (!device)
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = refuse_while_capturing())
        return answer(error);
    if (is_in_queue(base, bytes)) {
        blame(device->index, cudaErrorIllegalAddress,
              format("memory of simulated cuda:%d was unmapped that queued work uses",
                     device->index));
        drain_all();
    }
    auto first = device->segments.find(base);
    auto end = device->segments.lower_bound(base + bytes);
    for (auto each = first; each != end; ++each)
        forget_segment(*device, each->second);
    for (auto each = first; each != end; ++each) {
        const unsigned long long number = device->pages[each->first].of;
        unmap_pages(*device, each->first);
        device->physical[number].mapped--;
        let_go(*device, number);
    }
    device->segments.erase(first, end);
    return cudaSuccess;
}

int cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                 CUmemAllocationHandleType type,
                                 unsigned long long flags)
{
    SIM_ENTER();
    Device *device = owner_of(handle);
    if (!out || !device || !device->physical[handle].exportable || flags ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return answer(cudaErrorInvalidValue);
    Physical &memory = device->physical[handle];
    Exported facts = {};
    char unused[DT_SHARED_FILE];
    if (dt_shared_file_name(device->more, facts.file))
        return answer(cudaErrorOperatingSystem);
    facts.offset = (uint64_t)memory.offset;
    facts.bytes = memory.bytes;
    const int made = dt_shared_file_new("cuMem", sizeof facts, unused);
    if (made < 0 || pwrite(made, &facts, sizeof facts, 0) != (ssize_t)sizeof facts) {
        if (made >= 0)
            close(made);
        return answer(cudaErrorOperatingSystem);
    }
    memory.exported = true;
    for (auto &each : device->pages)
        if (each.second.of == handle)
            device->segments[each.first].shared = true;
    *(int *)out = made;
    return cudaSuccess;
}

int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *descriptor,
                                   CUmemAllocationHandleType type)
{
    SIM_ENTER();
    Exported facts;
    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread((int)(intptr_t)descriptor, &facts, sizeof facts, 0) !=
            (ssize_t)sizeof facts)
        return answer(cudaErrorInvalidValue);
    facts.file[sizeof facts.file - 1] = '\0';
    const int file = dt_shared_file_open(facts.file);
    if (file < 0) /* its process has ended, or belongs to another user */
        return answer(cudaErrorInvalidResourceHandle);
    Physical memory{(size_t)facts.bytes, (off_t)facts.offset, file};
    *out = add_memory(device_at(thread().device), memory);
    return cudaSuccess;
}
