/* Sizes and rules are PyTorch's: requests are rounded up to 512 bytes; up to 1 MiB
 * they are cut from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and
 * larger ones get a segment of their own, rounded up to 2 MiB. Allocation takes the
 * best-fitting free block of the same stream and splits off a large rest; release
 * merges free neighbours. A block's own stream may reuse it at once, since its work
 * runs in order; uses on other streams are awaited through events.
 *
 * PYDEVTENSOR_NO_CACHE=1: each block is a cudaMalloc of its own, of the requested size,
 * and is freed on release, so that compute-sanitizer detects an access past its end. */
#include "cuda/runtime/backend.h"

#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "cuda/runtime/launch.h"

namespace {

const size_t kRound = 512;
const size_t kSmall = (size_t)1 << 20;
const size_t kSmallSegment = (size_t)2 << 20;
const size_t kMedium = (size_t)10 << 20;
const size_t kMediumSegment = (size_t)20 << 20;
const size_t kLargeRound = (size_t)2 << 20;

struct Block {
    char *data;
    size_t size;
    cudaStream_t stream;
    bool small;
    Block *previous, *next; /* neighbours in the segment */
    size_t requested = 0;
    bool taken = false;
    int events = 0;                         /* pending uses on other streams */
    std::vector<cudaStream_t> used_on = {}; /* other streams that used the block */
};

struct ByFit {
    bool operator()(const Block *a, const Block *b) const
    {
        if (a->stream != b->stream)
            return (uintptr_t)a->stream < (uintptr_t)b->stream;
        if (a->size != b->size)
            return a->size < b->size;
        return (uintptr_t)a->data < (uintptr_t)b->data;
    }
};
typedef std::set<Block *, ByFit> Pool;

struct Use {
    cudaEvent_t event;
    Block *block;
};

struct Heap {
    Pool small, large; /* free blocks */
    std::unordered_map<void *, Block *> taken;
    std::unordered_map<cudaStream_t, std::deque<Use>> uses;
    std::vector<cudaEvent_t> spare_events;
    dt_memory_stats stats = {};
};

/* Never destroyed: tensors may outlive the library's static objects at exit. */
Heap &heap_of(int device)
{
    static Heap *heaps = new Heap[DT_MAX_DEVICES];
    return heaps[device];
}

struct Guard : dt_locked {
    explicit Guard(int device) : dt_locked(DT_LOCK_GPU_HEAP + device % DT_LOCK_COPIES)
    {
    }
};

bool cached()
{
    static const char *text = getenv("PYDEVTENSOR_NO_CACHE");
    static const bool no = text && text[0] == '1';
    return !no;
}

void add(dt_memory_counter &counter, size_t amount)
{
    counter.current += (int64_t)amount;
    counter.allocated += (int64_t)amount;
    if (counter.current > counter.peak)
        counter.peak = counter.current;
}

void take_off(dt_memory_counter &counter, size_t amount)
{
    counter.current -= (int64_t)amount;
    counter.freed += (int64_t)amount;
}

size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

Pool &pool_of(Heap &heap, const Block *block)
{
    return block->small ? heap.small : heap.large;
}

/* --- free blocks --- */

Block *find_free(Heap &heap, size_t size, cudaStream_t stream)
{
    Block key = {nullptr, size, stream, size <= kSmall, nullptr, nullptr};
    Pool &pool = pool_of(heap, &key);
    auto found = pool.lower_bound(&key);
    if (found == pool.end() || (*found)->stream != stream)
        return nullptr;
    Block *block = *found;
    pool.erase(found);
    return block;
}

void split(Heap &heap, Block *block, size_t size)
{
    size_t left = block->size - size;
    if (block->small ? left < kRound : left <= kSmall)
        return;
    Block *rest = new Block{block->data + size, left,  block->stream,
                            block->small,       block, block->next};
    if (block->next)
        block->next->previous = rest;
    block->next = rest;
    block->size = size;
    pool_of(heap, rest).insert(rest);
}

/* Merges a free neighbour into block: the next one (after) or the previous one. */
void merge(Heap &heap, Block *block, Block *other, bool after)
{
    if (!other || other->taken || other->events)
        return;
    pool_of(heap, other).erase(other);
    block->size += other->size;
    if (after) {
        block->next = other->next;
        if (other->next)
            other->next->previous = block;
    } else {
        block->data = other->data;
        block->previous = other->previous;
        if (other->previous)
            other->previous->next = block;
    }
    delete other;
}

void make_free(Heap &heap, Block *block)
{
    merge(heap, block, block->next, true);
    merge(heap, block, block->previous, false);
    pool_of(heap, block).insert(block);
}

/* --- uses on other streams --- */

/* Frees the blocks whose uses on other streams are done; with `wait`, synchronizes
 * with all of those uses first. */
void settle_uses(Heap &heap, bool wait)
{
    for (auto &entry : heap.uses) {
        std::deque<Use> &queue = entry.second;
        while (!queue.empty()) {
            Use use = queue.front();
            /* Not ready, or an error that the stream's next user will see. */
            if (!cuda_succeeds(wait ? cudaEventSynchronize(use.event)
                                    : cudaEventQuery(use.event)) &&
                !wait)
                break;
            queue.pop_front();
            heap.spare_events.push_back(use.event);
            if (--use.block->events == 0)
                make_free(heap, use.block);
        }
    }
}

bool record_event(Heap &heap, cudaStream_t stream, Block *block)
{
    cudaEvent_t event = nullptr;
    if (!heap.spare_events.empty()) {
        event = heap.spare_events.back();
        heap.spare_events.pop_back();
    } else if (!cuda_succeeds(
                   cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        return false;
    }
    if (!cuda_succeeds(cudaEventRecord(event, stream))) {
        heap.spare_events.push_back(event);
        return false;
    }
    block->events++;
    heap.uses[stream].push_back({event, block});
    return true;
}

/* --- segments --- */

cudaError_t memory_limit(size_t *limit)
{
    size_t free_bytes = 0, total = 0;
    *limit = SIZE_MAX;
    if (device_sharing() == 1)
        return cudaSuccess;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total);
    *limit = total / (size_t)device_sharing();
    return error;
}

cudaError_t new_segment(Heap &heap, size_t size, cudaStream_t stream, Block **out)
{
    size_t bytes = !cached()        ? size
                   : size <= kSmall ? kSmallSegment
                   : size < kMedium ? kMediumSegment
                                    : round_up(size, kLargeRound);
    size_t limit, reserved = (size_t)heap.stats.reserved_bytes.current;
    if (cudaError_t error = memory_limit(&limit))
        return error;
    /* Close to the limit, allocate only what was requested. */
    if (reserved + bytes > limit)
        bytes = size;
    if (size > limit || reserved > limit - bytes)
        return cudaErrorMemoryAllocation;
    void *data = nullptr;
    cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation && size < bytes) {
        cudaGetLastError();
        bytes = size; /* the block may fit although a whole segment does not */
        error = cudaMalloc(&data, bytes);
    }
    if (!cuda_succeeds(error))
        return error;
    add(heap.stats.reserved_bytes, bytes);
    add(heap.stats.segment, 1);
    *out = new Block{(char *)data, bytes, stream, size <= kSmall, nullptr, nullptr};
    return cudaSuccess;
}

/* Returns unused segments to the driver. */
cudaError_t free_segments(Heap &heap)
{
    settle_uses(heap, true);
    Pool *pools[] = {&heap.small, &heap.large};
    for (Pool *pool : pools) {
        for (auto it = pool->begin(); it != pool->end();) {
            Block *block = *it;
            if (block->previous || block->next) {
                ++it;
                continue;
            }
            cudaError_t error = cudaFree(block->data);
            if (!cuda_succeeds(error))
                return error;
            it = pool->erase(it);
            take_off(heap.stats.reserved_bytes, block->size);
            take_off(heap.stats.segment, 1);
            delete block;
        }
    }
    return cudaSuccess;
}

double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

int fail_out_of_memory(Heap &heap, int device, size_t bytes)
{
    size_t free_bytes = 0, total = 0;
    heap.stats.num_ooms++;
    dt_cuda_memory_info(device, &free_bytes, &total);
    return dt_fail(DT_ERROR_DEVICE_MEMORY,
                   "out of memory on cuda:%d: %.2f MiB requested; of %.2f MiB in "
                   "total, %.2f MiB are free and %.2f MiB are reserved by this "
                   "process, %.2f MiB of them allocated by tensors.",
                   device, mib(bytes), mib(total), mib(free_bytes),
                   mib((size_t)heap.stats.reserved_bytes.current),
                   mib((size_t)heap.stats.allocated_bytes.current));
}

} /* namespace */

/* --- the interface --- */

int dt_cuda_allocate(dt_stream stream, size_t bytes, void **out)
{
    Heap &heap = heap_of(stream.device);
    cudaStream_t handle = (cudaStream_t)stream.handle;
    Guard guard(stream.device);
    if (bytes > SIZE_MAX / 2)
        return fail_out_of_memory(heap, stream.device, bytes);
    size_t size = cached() ? round_up(bytes, kRound) : bytes;
    settle_uses(heap, false);
    Block *block = find_free(heap, size, handle);
    cudaError_t error = cudaSuccess;
    if (!block)
        error = new_segment(heap, size, handle, &block);
    if (error == cudaErrorMemoryAllocation) {
        heap.stats.num_alloc_retries++;
        error = free_segments(heap);
        if (!error)
            error = new_segment(heap, size, handle, &block);
    }
    if (error == cudaErrorMemoryAllocation)
        return fail_out_of_memory(heap, stream.device, bytes);
    if (error)
        return cuda_fail(error, "allocating memory");
    split(heap, block, size);
    block->taken = true;
    block->requested = bytes;
    heap.taken[block->data] = block;
    add(heap.stats.allocated_bytes, block->size);
    add(heap.stats.requested_bytes, bytes);
    add(heap.stats.allocation, 1);
    SIM_BLOCK_TAKEN(block->data, bytes, round_up(block->size, kRound), handle);
    *out = block->data;
    return 0;
}

void dt_cuda_release(int device, void *data, size_t bytes)
{
    Heap &heap = heap_of(device);
    (void)bytes;
    if (device_is_inherited())
        return;
    Guard guard(device);
    auto found = heap.taken.find(data);
    if (found == heap.taken.end())
        return;
    Block *block = found->second;
    heap.taken.erase(found);
    SIM_BLOCK_GIVEN_BACK(block->data, round_up(block->size, kRound));
    take_off(heap.stats.allocated_bytes, block->size);
    take_off(heap.stats.requested_bytes, block->requested);
    take_off(heap.stats.allocation, 1);
    block->taken = false;
    std::vector<cudaStream_t> used_on;
    used_on.swap(block->used_on);
    bool settled = used_on.empty();
    if (!settled && !device_use(device)) {
        settled = true;
        for (cudaStream_t stream : used_on)
            if (!record_event(heap, stream, block))
                cuda_succeeds(cudaStreamSynchronize(stream));
    }
    if (settled && !block->events)
        make_free(heap, block);
    if (!cached() && !device_use(device))
        free_segments(heap);
}

int dt_cuda_record_use(dt_stream stream, void *data)
{
    Heap &heap = heap_of(stream.device);
    Guard guard(stream.device);
    auto found = heap.taken.find(data);
    if (found == heap.taken.end())
        return 0;
    cudaStream_t handle = (cudaStream_t)stream.handle;
    if (handle == found->second->stream)
        return 0;
    for (cudaStream_t known : found->second->used_on)
        if (known == handle)
            return 0;
    found->second->used_on.push_back(handle);
    return 0;
}

int dt_cuda_memory_info(int device, size_t *out_free, size_t *out_total)
{
    size_t free_bytes = 0, total = 0;
    if (device_use(device))
        return -1;
    CUDA_TRY("querying free memory", cudaMemGetInfo(&free_bytes, &total));
    int sharing = device_sharing();
    if (sharing > 1) {
        size_t share = total / (size_t)sharing;
        size_t reserved = (size_t)heap_of(device).stats.reserved_bytes.current;
        size_t left = reserved < share ? share - reserved : 0;
        free_bytes = left < free_bytes ? left : free_bytes;
        total = share;
    }
    *out_free = free_bytes;
    *out_total = total;
    return 0;
}

void dt_cuda_memory_stats(int device, dt_memory_stats *out)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    *out = heap.stats;
}

void dt_cuda_reset_peaks(int device)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
#define MEMORY_COUNTER(name) heap.stats.name.peak = heap.stats.name.current;
    DT_MEMORY_COUNTERS(MEMORY_COUNTER)
#undef MEMORY_COUNTER
}

int dt_cuda_empty_cache(int device)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    if (!heap.stats.reserved_bytes.current)
        return 0;
    if (device_use(device))
        return -1;
    CUDA_TRY("returning memory to the driver", free_segments(heap));
    return 0;
}
