/* Caches of GPU memory, one for each device, and one of page-locked (pinned) memory.
 *
 * Sizes and rules are PyTorch's: requests are rounded up to 512 bytes; up to 1 MiB they
 * are cut from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and larger ones
 * get a segment of their own, rounded up to 2 MiB. Allocation takes the best-fitting
 * free block of the same stream and splits off a large rest; release merges free
 * neighbours. A block's own stream may reuse it at once, since its work runs in order;
 * uses on other streams are awaited through events.
 *
 * PYDEVTENSOR_NO_CACHE=1: each block is a cudaMalloc of its own, of the requested size,
 * and is freed on release, so that compute-sanitizer detects an access past its end.
 *
 * Allocations of a graph's capture come from a pool of the graph's own: its memory is
 * not handed out to others while a graph has the pool, since launches use it again. */
#include "cuda/runtime/backend.h"

#include <deque>
#include <set>
#include <vector>

#include "cuda/runtime/blocks.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"

namespace {

const size_t kSmall = (size_t)1 << 20;
const size_t kMedium = (size_t)10 << 20;
const size_t kMediumSegment = (size_t)20 << 20;
const size_t kLargeRound = (size_t)2 << 20;

} /* namespace */

/* Memory of graphs. */
struct GraphPool {
    uint64_t number;
    int graphs = 0; /* that have it; 0: its segments may be freed */
    int segments = 0;
    Pool free = {};

    explicit GraphPool(uint64_t of) : number(of) {}
};

namespace {

struct Use {
    cudaEvent_t event;
    Block *block;
};

struct Uses {
    dt_stream stream;
    std::deque<Use> queue;
    std::vector<cudaEvent_t> spare;
};

struct Heap {
    bool pinned = false;
    Pool free;
    TakenBlocks taken;
    Block *spare = nullptr; /* structs of blocks that are gone, for others */
    std::vector<Uses> uses;
    dt_memory_stats stats = {};
    double fraction = 1; /* of the device's memory that may be allocated */
    std::vector<GraphPool *> graph_pools;
    GraphPool *capturing = nullptr; /* of the graph that is being captured */
    /* Given back during a capture, when no event can mark their uses elsewhere. */
    std::vector<Block *> deferred;
};

/* The number of the heap of pinned memory, whose blocks belong to no stream. */
const int kPinned = DT_MAX_DEVICES;

/* Never destroyed: tensors may outlive the library's static objects at exit. */
Heap &heap_of(int number)
{
    static Heap *heaps = [] {
        Heap *all = new Heap[DT_MAX_DEVICES + 1];
        all[kPinned].pinned = true;
        return all;
    }();
    return heaps[number];
}

struct Guard : dt_locked {
    explicit Guard(int number) : dt_locked(DT_LOCK_GPU_HEAP + number % DT_LOCK_COPIES)
    {
    }
};

bool cached()
{
    static const char *text = getenv("PYDEVTENSOR_NO_CACHE");
    static const bool no = text && text[0] == '1';
    return !no;
}

/* Counts a block that is taken (1) or given back (-1). */
void count(Heap &heap, const Block &block, int64_t change)
{
    dt_memory_count(&heap.stats.allocated_bytes, change * (int64_t)block.size);
    dt_memory_count(&heap.stats.requested_bytes, change * (int64_t)block.requested);
    dt_memory_count(&heap.stats.allocation, change);
}

size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

Pool &pool_of(Heap &heap, GraphPool *owner)
{
    return owner ? owner->free : heap.free;
}

/* --- free blocks --- */

/* A block of a segment, the neighbour of none. */
Block *new_block(Heap &heap, char *data, size_t size, void *stream, bool small,
                 GraphPool *owner)
{
    Block *block = heap.spare;
    if (block)
        heap.spare = block->after;
    else
        block = new Block;
    *block = {};
    block->data = data;
    block->size = size;
    block->stream = stream;
    block->small = small;
    block->owner = owner;
    block->lists = pool_of(heap, owner).lists_for(small, stream);
    return block;
}

void drop(Heap &heap, Block *block)
{
    block->after = heap.spare;
    heap.spare = block;
}

void split(Heap &heap, Block *block, size_t size)
{
    size_t left = block->size - size;
    if (block->small ? left < kBlockRound : left <= kSmall)
        return;
    Block *rest = new_block(heap, block->data + size, left, block->stream, block->small,
                            block->owner);
    rest->previous = block;
    rest->next = block->next;
    if (block->next)
        block->next->previous = rest;
    block->next = rest;
    block->size = size;
    pool_of(heap, rest->owner).insert(rest);
}

/* Merges a free neighbour into block: the next one (after) or the previous one. */
void merge(Heap &heap, Block *block, Block *other, bool after)
{
    if (!other || other->taken || other->events)
        return;
    pool_of(heap, other->owner).erase(other);
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
    drop(heap, other);
}

void make_free(Heap &heap, Block *block)
{
    merge(heap, block, block->next, true);
    merge(heap, block, block->previous, false);
    pool_of(heap, block->owner).insert(block);
}

/* --- uses on other streams --- */

/* Frees the blocks whose uses on other streams are done; with `wait`, synchronizes
 * with all of those uses first. */
void settle_uses(Heap &heap, bool wait)
{
    if (graphs_under_way())
        return;
    SIM_OWN_WAIT;
    for (Uses &uses : heap.uses) {
        while (!uses.queue.empty()) {
            Use use = uses.queue.front();
            /* Not ready, or an error that the stream's next user will see. */
            if (!cuda_succeeds(wait ? cudaEventSynchronize(use.event)
                                    : cudaEventQuery(use.event)) &&
                !wait)
                break;
            uses.queue.pop_front();
            uses.spare.push_back(use.event);
            if (--use.block->events == 0)
                make_free(heap, use.block);
        }
    }
}

bool same(dt_stream a, dt_stream b)
{
    return a.device == b.device && a.handle == b.handle;
}

Uses &uses_of(Heap &heap, dt_stream stream)
{
    for (Uses &uses : heap.uses)
        if (same(uses.stream, stream))
            return uses;
    heap.uses.push_back({stream, {}, {}});
    return heap.uses.back();
}

/* The stream's device is current. */
bool record_event(Heap &heap, dt_stream stream, Block *block)
{
    Uses &uses = uses_of(heap, stream);
    cudaEvent_t event = nullptr;
    if (!uses.spare.empty()) {
        event = uses.spare.back();
        uses.spare.pop_back();
    } else if (!cuda_succeeds(
                   cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
        return false;
    }
    if (!cuda_succeeds(cudaEventRecord(event, (cudaStream_t)stream.handle))) {
        uses.spare.push_back(event);
        return false;
    }
    block->events++;
    uses.queue.push_back({event, block});
    return true;
}

/* --- segments --- */

cudaError_t take_from_driver(const Heap &heap, size_t bytes, void **out)
{
    Relaxed mode;
    return heap.pinned ? cudaHostAlloc(out, bytes, cudaHostAllocPortable)
                       : cudaMalloc(out, bytes);
}

cudaError_t memory_limit(const Heap &heap, size_t *limit)
{
    size_t free_bytes = 0, total = 0;
    *limit = SIZE_MAX;
    if (heap.pinned || (device_sharing() == 1 && heap.fraction >= 1))
        return cudaSuccess;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total);
    *limit = (size_t)((double)(total / (size_t)device_sharing()) * heap.fraction);
    return error;
}

cudaError_t new_segment(Heap &heap, size_t size, void *stream, GraphPool *owner,
                        Block **out)
{
    size_t bytes = !cached()        ? size
                   : size <= kSmall ? kSmallSegment
                   : size < kMedium ? kMediumSegment
                                    : round_up(size, kLargeRound);
    size_t limit, reserved = (size_t)heap.stats.reserved_bytes.current;
    if (cudaError_t error = memory_limit(heap, &limit))
        return error;
    /* Close to the limit, allocate only what was requested. */
    if (reserved + bytes > limit)
        bytes = size;
    if (size > limit || reserved > limit - bytes)
        return cudaErrorMemoryAllocation;
    void *data = nullptr;
    cudaError_t error = take_from_driver(heap, bytes, &data);
    if (error == cudaErrorMemoryAllocation && size < bytes) {
        cudaGetLastError();
        bytes = size; /* the block may fit although a whole segment does not */
        error = take_from_driver(heap, bytes, &data);
    }
    if (!cuda_succeeds(error))
        return error;
    dt_memory_count(&heap.stats.reserved_bytes, (int64_t)bytes);
    dt_memory_count(&heap.stats.segment, 1);
    *out = new_block(heap, (char *)data, bytes, stream, size <= kSmall, owner);
    if (owner)
        owner->segments++;
    return cudaSuccess;
}

/* Forgets the pools that no graph has and that have no memory. */
void forget_pools(Heap &heap)
{
    std::vector<GraphPool *> left;
    for (GraphPool *pool : heap.graph_pools)
        if (pool->graphs || pool->segments)
            left.push_back(pool);
        else
            delete pool;
    heap.graph_pools.swap(left);
}

/* Returns unused segments to the driver. */
cudaError_t free_segments(Heap &heap)
{
    if (graphs_under_way()) /* CUDA refuses it */
        return cudaSuccess;
    settle_uses(heap, true);
    std::vector<Block *> unused;
    auto note = [&unused](Block *block) {
        if (!block->previous && !block->next)
            unused.push_back(block);
    };
    heap.free.each(note);
    for (GraphPool *pool : heap.graph_pools)
        if (!pool->graphs)
            pool->free.each(note);
    for (Block *block : unused) {
        cudaError_t error =
            heap.pinned ? cudaFreeHost(block->data) : cudaFree(block->data);
        if (!cuda_succeeds(error))
            return error;
        pool_of(heap, block->owner).erase(block);
        dt_memory_count(&heap.stats.reserved_bytes, -(int64_t)block->size);
        dt_memory_count(&heap.stats.segment, -1);
        if (block->owner)
            block->owner->segments--;
        drop(heap, block);
    }
    forget_pools(heap);
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
    if (heap.pinned)
        return dt_fail(DT_ERROR_CPU_TENSOR_MEMORY,
                       "no page-locked memory for %zu bytes; pin smaller tensors",
                       bytes);
    dt_cuda_memory_info(device, &free_bytes, &total);
    dt_fail(DT_ERROR_DEVICE_MEMORY,
            "out of memory on cuda:%d: %.2f MiB requested; of %.2f MiB in "
            "total, %.2f MiB are free and %.2f MiB are reserved by this "
            "process, %.2f MiB of them allocated by tensors.",
            device, mib(bytes), mib(total), mib(free_bytes),
            mib((size_t)heap.stats.reserved_bytes.current),
            mib((size_t)heap.stats.allocated_bytes.current));
    if (heap.fraction < 1)
        dt_fail_append(" set_per_process_memory_fraction(%g) allows %.2f MiB.",
                       heap.fraction, mib((size_t)((double)total * heap.fraction)));
    return -1;
}

/* Allocates memory of a heap for use on the stream. */
int allocate(int number, void *stream, size_t bytes, void **out)
{
    if (reserve_is_low())
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "no memory is left on the host to keep account of a GPU's; free "
                       "some");
    Heap &heap = heap_of(number);
    Guard guard(number);
    if (bytes > SIZE_MAX / 2)
        return fail_out_of_memory(heap, number, bytes);
    size_t size = cached() ? round_up(bytes, kBlockRound) : bytes;
    bool held = false;
    if (!heap.pinned && graph_holds({number, stream}, &held))
        return -1;
    GraphPool *owner = held ? heap.capturing : nullptr;
    settle_uses(heap, false);
    /* Without a cache, what was given back during a capture waits to be freed. */
    Block *block =
        cached() ? pool_of(heap, owner).take(size <= kSmall, size, stream) : nullptr;
    cudaError_t error = cudaSuccess;
    if (!block) {
        if (!heap.pinned && device_use(number))
            return -1;
        error = new_segment(heap, size, stream, owner, &block);
    }
    if (error == cudaErrorMemoryAllocation) {
        heap.stats.num_alloc_retries++;
        error = free_segments(heap);
        if (!error)
            error = new_segment(heap, size, stream, owner, &block);
    }
    if (error == cudaErrorMemoryAllocation)
        return fail_out_of_memory(heap, number, bytes);
    if (error)
        return cuda_fail(error, heap.pinned ? "allocating pinned memory"
                                            : "allocating memory");
    split(heap, block, size);
    block->taken = true;
    block->requested = bytes;
    heap.taken.insert(block);
    count(heap, *block, 1);
    SIM_BLOCK_TAKEN(block->data, bytes, round_up(block->size, kBlockRound),
                    (cudaStream_t)stream);
    *out = block->data;
    return 0;
}

/* Frees a block that was given back, once its uses on other streams are over. */
void free_after_uses(Heap &heap, Block *block)
{
    std::vector<dt_stream> used_on;
    used_on.swap(block->used_on);
    bool lost =
        false; /* a device failed, and its queued work may still use the block */
    for (dt_stream stream : used_on) {
        if (device_use(stream.device))
            lost = true;
        else if (!record_event(heap, stream, block))
            cuda_succeeds(cudaStreamSynchronize((cudaStream_t)stream.handle));
        if (!lost)
            SIM_BLOCK_AWAITS(block->data, round_up(block->size, kBlockRound),
                             device_ordinal(stream.device),
                             (cudaStream_t)stream.handle);
    }
    if (!lost && !block->events)
        make_free(heap, block);
}

void release(int number, void *data)
{
    Heap &heap = heap_of(number);
    if (device_is_inherited())
        return;
    Guard guard(number);
    Block *block = heap.taken.find(data);
    if (!block)
        return;
    heap.taken.erase(block);
    SIM_BLOCK_GIVEN_BACK(block->data, round_up(block->size, kBlockRound));
    count(heap, *block, -1);
    block->taken = false;
    if (graphs_under_way() && !block->used_on.empty()) {
        block->events++; /* so that no neighbour takes it */
        heap.deferred.push_back(block);
        return;
    }
    free_after_uses(heap, block);
    if (!cached() && (heap.pinned || !device_use(number)))
        free_segments(heap);
}

/* Whether the heap has the block, whose use on the stream it then keeps in mind. */
bool note_use(int number, dt_stream stream, void *data)
{
    Heap &heap = heap_of(number);
    Guard guard(number);
    Block *block = heap.taken.find(data);
    if (!block)
        return false;
    std::vector<dt_stream> &used_on = block->used_on;
    if (!heap.pinned && stream.handle == block->stream)
        return true;
    for (dt_stream known : used_on)
        if (same(known, stream))
            return true;
    used_on.push_back(stream);
    return true;
}

} /* namespace */

/* --- graphs --- */

void heap_begin_capture(int device, uint64_t number)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    for (GraphPool *pool : heap.graph_pools)
        if (pool->number == number)
            heap.capturing = pool;
    if (!heap.capturing) {
        heap.capturing = new GraphPool(number);
        heap.graph_pools.push_back(heap.capturing);
    }
    heap.capturing->graphs++;
}

void heap_end_capture(int device)
{
    {
        Guard guard(device);
        heap_of(device).capturing = nullptr;
    }
    for (int number = 0; number <= kPinned && !graphs_under_way(); number++) {
        Heap &heap = heap_of(number);
        Guard guard(number);
        std::vector<Block *> deferred;
        deferred.swap(heap.deferred);
        for (Block *block : deferred) {
            block->events--;
            free_after_uses(heap, block);
        }
    }
    if (device_use(device))
        dt_error_clear();
}

void heap_drop_pool(int device, uint64_t number)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    for (GraphPool *pool : heap.graph_pools)
        if (pool->number == number)
            pool->graphs--;
}

/* --- the interface --- */

int dt_cuda_allocate(dt_stream stream, size_t bytes, void **out)
{
    return device_check(stream.device)
               ? -1
               : allocate(stream.device, stream.handle, bytes, out);
}

void dt_cuda_release(int device, void *data, size_t)
{
    release(device, data);
}

int dt_cuda_pinned_allocate(int device, size_t bytes, void **out)
{
    return device_use(device) ? -1 : allocate(kPinned, nullptr, bytes, out);
}

void dt_cuda_pinned_release(void *data)
{
    release(kPinned, data);
}

int dt_cuda_record_use(dt_stream stream, void *data)
{
    if (!note_use(stream.device, stream, data))
        note_use(kPinned, stream, data);
    return 0;
}

void *heap_segment(int device, void *data)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    Block *block = heap.taken.find(data);
    while (block && block->previous)
        block = block->previous;
    return block ? block->data : nullptr;
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

void dt_cuda_memory_blocks(int device, dt_block_visitor visit, void *context)
{
    std::vector<dt_memory_block> found;
    {
        Heap &heap = heap_of(device);
        Guard guard(device);
        std::set<Block *> all(heap.deferred.begin(), heap.deferred.end());
        auto note = [&all](Block *block) { all.insert(block); };
        heap.free.each(note);
        for (GraphPool *pool : heap.graph_pools)
            pool->free.each(note);
        heap.taken.each(note);
        for (Uses &uses : heap.uses)
            for (Use &use : uses.queue)
                all.insert(use.block);
        for (Block *first : all)
            for (Block *b = first->previous ? nullptr : first; b; b = b->next)
                found.push_back({first->data, b->data, b->stream, b->size, b->requested,
                                 b->taken, b->events > 0});
    }
    for (const dt_memory_block &block : found)
        visit(context, &block);
}

double dt_cuda_memory_fraction(int device, double fraction)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    const double before = heap.fraction;
    if (fraction >= 0)
        heap.fraction = fraction;
    return before;
}

void dt_cuda_reset_peaks(int device)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    dt_memory_reset_peaks(&heap.stats);
}

int dt_cuda_empty_cache(int device)
{
    for (int number : {device, kPinned}) {
        Heap &heap = heap_of(number);
        Guard guard(number);
        if (!heap.stats.reserved_bytes.current)
            continue;
        if (device_use(device))
            return -1;
        CUDA_TRY("returning memory to the driver", free_segments(heap));
    }
    return 0;
}
