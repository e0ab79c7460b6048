/* Device memory: one memfd per device, mapped twice. The program holds addresses in
 * the first mapping, which is inaccessible; work uses the second, at a constant
 * distance. cudaMalloc is first fit among more addresses than the device has memory: as
 * on a card, which maps any free pages, a large allocation needs no contiguous free
 * memory. Pages of the second mapping are accessible while anything
 * in them is allocated. Behind each device's addresses is its window. */
#include "check.h"
#include "internal.h"
#include <algorithm>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if DT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace sim {

static const size_t kGrain = 512;
static const size_t kGap = (size_t)2 << 20; /* inaccessible gap around devices */
/* Addresses for a device's own allocations and of its window, in times its memory, and the
 * most of all devices. */
static const size_t kRooms = 4, kMostRooms = (size_t)8 << 40;
static const size_t kWindows = 64, kMostWindows = (size_t)16 << 40;
static const int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
static const int kView = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;

static size_t page_size()
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void close_pages(char *seen, size_t bytes)
{
#if DT_ASAN
    __asan_poison_memory_region(seen, bytes);
#else
    (void)seen, (void)bytes;
#endif
}

void open_pages(char *seen, size_t bytes)
{
#if DT_ASAN
    __asan_unpoison_memory_region(seen, bytes);
#else
    (void)seen, (void)bytes;
#endif
}

/* A multiple of the gap: `times` a device's memory, or its part of the most. */
static size_t addresses(size_t memory, size_t times, size_t most_of_all)
{
    const size_t most = most_of_all / (size_t)state().options.devices & ~(kGap - 1);
    return times * memory < most ? times * memory : most;
}

int new_file(int device)
{
    const std::string name =
        format("simulated-gpu %d %zu", device, state().options.memory);
    return memfd_create(name.c_str(), MFD_CLOEXEC);
}

cudaError_t map_devices()
{
    State &all = state();
    const size_t memory = (all.options.memory + kGap - 1) & ~(kGap - 1);
    const size_t n = (size_t)all.options.devices;
    const size_t window = addresses(memory, kWindows, kMostWindows);
    size_t room = addresses(memory, kRooms, kMostRooms);
    room = room < memory ? memory : room;
    const size_t stride = room + kGap + window + kGap;
    const size_t span = n * stride + kGap;
    char *held = (char *)mmap(nullptr, span, PROT_NONE, kNothing, -1, 0);
    char *seen = (char *)mmap(nullptr, span, PROT_NONE, kNothing, -1, 0);
    std::vector<std::unique_ptr<Device>> devices;
    bool good = held != (char *)MAP_FAILED && seen != (char *)MAP_FAILED;
    for (size_t i = 0; good && i < n; i++) {
        std::unique_ptr<Device> device(new Device);
        device->index = (int)i;
        device->held = held + kGap + i * stride;
        device->own_stream.reset(new Stream);
        device->own_stream->device = (int)i;
        device->file = new_file((int)i);
        good =
            device->file >= 0 && ftruncate(device->file, (off_t)room) == 0 &&
            mmap(device->held, room, PROT_NONE, kView, device->file, 0) != MAP_FAILED &&
            mmap(seen + kGap + i * stride, room, PROT_NONE, kView, device->file, 0) !=
                MAP_FAILED;
        devices.push_back(std::move(device));
    }
    if (!good) {
        for (auto &device : devices)
            if (device->file >= 0)
                close(device->file);
        if (held != (char *)MAP_FAILED)
            munmap(held, span);
        if (seen != (char *)MAP_FAILED)
            munmap(seen, span);
        return cudaErrorOperatingSystem;
    }
    madvise(seen, span, MADV_DONTDUMP);
    all.held = held + kGap;
    all.seen = seen + kGap;
    all.stride = stride;
    all.room = room;
    all.window = window;
    all.devices = std::move(devices);
    return cudaSuccess;
}

Device *device_of(const void *pointer)
{
    State &all = state();
    uintptr_t p = (uintptr_t)pointer, first = (uintptr_t)all.held;
    if (!all.open || p < first || p - first >= all.stride * all.devices.size())
        return nullptr;
    return all.devices[(p - first) / all.stride].get();
}

const char *pinned_end(const void *p)
{
    auto found = entry_before(state().pinned, p);
    if (found == state().pinned.end())
        return nullptr;
    const char *end = found->first + found->second;
    return (const char *)p < end ? end : nullptr;
}

static char *first_fit(Device &device, char *at, char *end, size_t need)
{
    for (auto each = device.segments.lower_bound(at);
         each != device.segments.end() && each->first < end; ++each) {
        if ((size_t)(each->first - at) >= need)
            return at;
        at = each->first + each->second.whole->rounded;
    }
    return (size_t)(end - at) >= need ? at : nullptr;
}

/* --- the window --- */

char *free_window(Device &device, size_t bytes)
{
    char *end = device.held + state().stride - kGap;
    char *at = end - state().window;
    while ((at = first_fit(device, at, end, bytes))) {
        auto found = entry_before(device.reserved, at + bytes - 1);
        if (found == device.reserved.end() || found->first + found->second <= at)
            break;
        at = found->first + found->second;
    }
    return at;
}

cudaError_t map_pages(Device &device, char *base, Pages pages, bool accessible)
{
    const int access = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (mmap(base, pages.bytes, PROT_NONE, kView, pages.file, pages.offset) ==
            MAP_FAILED ||
        mmap(seen_from(base), pages.bytes, access, kView, pages.file, pages.offset) ==
            MAP_FAILED)
        return cudaErrorMemoryAllocation;
    close_pages(seen_from(base), pages.bytes);
    device.pages[base] = std::move(pages);
    return cudaSuccess;
}

void unmap_pages(Device &device, char *base)
{
    const size_t bytes = device.pages[base].bytes;
    open_pages(seen_from(base), bytes);
    mmap(base, bytes, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
    mmap(seen_from(base), bytes, PROT_NONE, kNothing | MAP_FIXED, -1, 0);
    device.pages.erase(base);
}

bool map_again(Device &device, const char *first, size_t bytes, char *at)
{
    const char *base = first - (state().seen - state().held);
    for (size_t done = 0, part; done < bytes; done += part, base += part) {
        int file = device.file;
        off_t offset = base - device.held;
        part = bytes - done;
        auto found = entry_before(device.pages, base);
        if (found != device.pages.end() && base < found->first + found->second.bytes) {
            file = found->second.file;
            offset = found->second.offset + (base - found->first);
            part = std::min(part, (size_t)(found->first + found->second.bytes - base));
        }
        if (mmap(at + done, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                 offset) == MAP_FAILED)
            return false;
    }
    return true;
}

bool is_shared(const Block &block)
{
    auto &segments = device_at(block.device).segments;
    auto found = entry_before(segments, block.base);
    return found != segments.end() && found->second.shared;
}

/* --- allocations --- */

cudaError_t take(Device &device, size_t bytes, char **out)
{
    const size_t memory = state().options.memory;
    if (bytes > memory)
        return cudaErrorMemoryAllocation;
    const size_t need = (bytes + kGrain - 1) & ~(kGrain - 1);
    if (need > memory - device.used)
        return cudaErrorMemoryAllocation;
    char *base = first_fit(device, device.held, device.held + state().room, need);
    if (!base)
        return cudaErrorMemoryAllocation;
    char *page = (char *)((uintptr_t)seen_from(base) & ~(uintptr_t)(page_size() - 1));
    if (mprotect(page, (size_t)(seen_from(base) + need - page), PROT_READ | PROT_WRITE))
        return cudaErrorMemoryAllocation;
    device.segments[base].whole =
        std::make_shared<Block>(Block{device.index, base, bytes, need});
    device.used += need;
    close_pages(seen_from(base), need);
    *out = base;
    return cudaSuccess;
}

void forget_segment(Device &device, Segment &segment)
{
    Block &whole = *segment.whole;
    forget_blocks(device, whole.base, whole.rounded);
    race_forget(whole.base, whole.rounded);
    check_forget(whole.base, whole.rounded);
    if (whole.laid_out && !segment.carved)
        check_canary(whole, "work", device.index, true);
}

static void give_back(Device &device, std::map<char *, Segment>::iterator found)
{
    Block &whole = *found->second.whole;
    forget_segment(device, found->second);
    open_pages(seen_from(whole.base), whole.rounded);
    /* Returns whole pages to the system; a program must not rely on reading zeros. */
    size_t from = (size_t)(whole.base - device.held), to = from + whole.rounded;
    from = (from + page_size() - 1) & ~(page_size() - 1);
    to &= ~(page_size() - 1);
    if (to > from && fallocate(device.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               (off_t)from, (off_t)(to - from)))
        memset(seen_from(device.held + from), 0xFD, to - from);
    if (to > from)
        mprotect(seen_from(device.held + from), to - from, PROT_NONE);
    device.used -= whole.rounded;
    device.segments.erase(found);
}

cudaError_t begin_malloc(Device &device)
{
    if (cudaError_t error = refuse_while_capturing())
        return error;
    nudge();
    device.counted.mallocs++;
    return failure("malloc", cudaErrorMemoryAllocation);
}

cudaError_t wait_to_free()
{
    if (cudaError_t error = refuse_while_capturing())
        return error;
    if (clock_runs())
        clock_wait_all();
    drain_all();
    return cudaSuccess;
}

} /* namespace sim */

using namespace sim;

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    SIM_ENTER();
    *total = state().options.memory;
    *free_bytes = *total - device_at(thread().device).used;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    SIM_ENTER();
    if (!out)
        return answer(cudaErrorInvalidValue);
    *out = nullptr;
    Device &device = device_at(thread().device);
    if (cudaError_t error = begin_malloc(device))
        return answer(error);
    if (!bytes)
        return cudaSuccess;
    char *base;
    cudaError_t error = take(device, bytes, &base);
    if (!error)
        *out = base;
    return answer(error);
}

static cudaError_t free_host(void *pointer)
{
    if (!pointer)
        return cudaSuccess;
    if (!state().pinned.count((char *)pointer))
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = wait_to_free())
        return answer(error);
    device_at(thread().device).counted.host_frees++;
    race_forget((char *)pointer, state().pinned[(char *)pointer]);
    state().pinned.erase((char *)pointer);
    state().managed.erase(pointer);
    free(pointer);
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
    SIM_ENTER();
    if (!pointer)
        return cudaSuccess;
    Device *device = device_of(pointer);
    if (state().managed.count(pointer))
        return free_host(pointer);
    auto found = device ? device->segments.find((char *)pointer)
                        : std::map<char *, Segment>::iterator();
    if (!device || found == device->segments.end() || found->second.opened ||
        device->pages.count((char *)pointer))
        return answer(cudaErrorInvalidValue);
    if (cudaError_t error = wait_to_free())
        return answer(error);
    device->counted.frees++;
    give_back(*device, device->segments.find((char *)pointer));
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    SIM_ENTER();
    if (!out || flags & ~7u)
        return answer(cudaErrorInvalidValue);
    *out = nullptr;
    if (cudaError_t error = refuse_while_capturing())
        return answer(error);
    device_at(thread().device).counted.host_mallocs++;
    if (cudaError_t error = failure("host", cudaErrorMemoryAllocation))
        return answer(error);
    if (!bytes)
        return cudaSuccess;
    void *p = nullptr;
    if (bytes > (size_t)-1 / 2 || posix_memalign(&p, 512, bytes))
        return answer(cudaErrorMemoryAllocation);
    state().pinned[(char *)p] = bytes;
    *out = p;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer)
{
    SIM_ENTER();
    return free_host(pointer);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *pointer)
{
    SIM_ENTER();
    if (!out)
        return answer(cudaErrorInvalidValue);
    void *p = (void *)pointer;
    *out = {cudaMemoryTypeUnregistered, thread().device, nullptr, nullptr};
    if (Device *device = device_of(p))
        *out = {cudaMemoryTypeDevice, device->index, p, nullptr};
    else if (pinned_end(p))
        *out = {cudaMemoryTypeHost, thread().device, p, p};
    return cudaSuccess;
}
