/* Caches of GPU memory, one for each device, and one of page-locked (pinned) memory.
 *
 * Sizes and rules are PyTorch's: requests are rounded up to 512 bytes; up to 1 MiB they
 * are cut from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and larger ones
 * get a segment of their own, rounded up to 2 MiB. Allocation takes the best-fitting
 * free block of the same stream and splits off a large rest; release merges free
 * neighbours. A block's own stream may reuse it at once, since its work runs in order;
 * uses on other streams are awaited through events.
 *
 * Settings (device/memory_settings.h) change these rules; expandable_segments:True has
 * segments that grow instead (expandable.cpp).
 *
 * PYDEVTENSOR_NO_CACHE=1: each block is a cudaMalloc of its own, of the requested size,
 * and is freed on release, so that compute-sanitizer detects an access past its end.
 *
 * Allocations of a graph's capture come from a pool of the graph's own: its memory is
 * not handed out to others while a graph has the pool, since launches use it again. */
#include "cuda/runtime/backend.h"

#include <algorithm>
#include <set>
#include <vector>

#include "cuda/runtime/graph.h"
#include "cuda/runtime/heap.h"
#include "cuda/runtime/launch.h"

namespace {

/* The number of the heap of pinned memory, whose blocks belong to no stream. */
const int kPinned = DT_MAX_DEVICES;

/* Never destroyed: tensors may outlive the library's static objects at exit. */
Heap &heap_of(int number)
{
    static Heap *heaps = [] {
        Heap *all = new Heap[DT_MAX_DEVICES + 1];
        for (int i = 0; i <= DT_MAX_DEVICES; i++)
            all[i].device = i;
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

/* Counts a block that is taken (1) or given back (-1). */
void count(Heap &heap, const Block &block, int64_t change)
{
    dt_memory_count(&heap.stats.allocated_bytes, change * (int64_t)block.size);
    dt_memory_count(&heap.stats.requested_bytes, change * (int64_t)block.requested);
    dt_memory_count(&heap.stats.allocation, change);
}

/* --- free blocks --- */

/* Rounds a request up: with roundup_power2_divisions to the next part of the power of two
 * below it, else to a multiple of kBlockRound. */
size_t rounded(const dt_memory_settings &settings, size_t bytes)
{
    const int first = 20; /* sizes up to 2 MiB are the first range */
    const int power = 63 - __builtin_clzll((unsigned long long)bytes | 1);
    const int range = std::min(std::max(power - first, 0), DT_MEMORY_RANGES - 1);
    const size_t divisions = settings.divisions[range];
    if (divisions < 2 || bytes <= kBlockRound * divisions)
        return round_up(bytes, kBlockRound);
    return round_up(bytes, ((size_t)1 << power) / divisions);
}

Block *take_free(Heap &heap, const dt_memory_settings &settings, size_t size,
                 void *stream, GraphPool *owner)
{
    FreeBlocks &blocks = free_blocks(heap, owner);
    const bool small = size <= kSmall;
    Block *found = nullptr;
    /* Where the program has switched to ordinary segments, it wants memory of those. */
    if (settings.expandable_segments)
        found = blocks.expandable.take(small, size, stream, SIZE_MAX, SIZE_MAX);
    if (!found)
        found = blocks.fixed.take(small, size, stream, settings.max_split,
                                  settings.max_rounding);
    return found;
}

void split(Heap &heap, const dt_memory_settings &settings, Block *block, size_t size)
{
    const size_t left = block->size - size;
    const bool fine = block->small || block->segment;
    if (fine ? left >= kBlockRound : left > kSmall && size < settings.max_split)
        pool_of(heap, *block).insert(block_cut(heap, block, size));
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
                block_make_free(heap, use.block);
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

/* Returns unused memory to the driver. */
cudaError_t free_segments(Heap &heap)
{
    if (graphs_under_way()) /* CUDA refuses it */
        return cudaSuccess;
    settle_uses(heap, true);
    return heap_shrink(heap);
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
    const double fraction = memory_fraction(heap);
    if (fraction < 1)
        dt_fail_append(" set_per_process_memory_fraction(%g) allows %.2f MiB.",
                       fraction, mib((size_t)((double)total * fraction)));
    const size_t cached = (size_t)(heap.stats.reserved_bytes.current -
                                   heap.stats.allocated_bytes.current);
    if (free_bytes + cached >= bytes && fraction >= 1 && heap_keeps() &&
        !heap_settings(heap)->expandable_segments)
        dt_fail_append(" The free memory is in pieces between tensors: "
                       "PYTORCH_ALLOC_CONF=expandable_segments:True has fewer.");
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
    const dt_memory_settings *settings = heap_settings(heap);
    if (!settings)
        return -1;
    Guard guard(number);
    if (bytes > SIZE_MAX / 2)
        return fail_out_of_memory(heap, number, bytes);
    const size_t size = heap_keeps() ? rounded(*settings, bytes) : bytes;
    bool held = false;
    if (!heap.pinned && graph_holds({number, stream}, &held))
        return -1;
    GraphPool *owner = held ? heap.capturing : nullptr;
    settle_uses(heap, false);
    /* Without a cache, what was given back during a capture waits to be freed. */
    Block *block =
        heap_keeps() ? take_free(heap, *settings, size, stream, owner) : nullptr;
    cudaError_t error = cudaSuccess;
    if (!block) {
        if (!heap.pinned && device_use(number))
            return -1;
        if (settings->garbage_collection_threshold > 0 && !graphs_under_way())
            heap_collect(heap, *settings);
        error = heap_grow(heap, *settings, size, stream, owner, false, &block);
    }
    if (error == cudaErrorMemoryAllocation) {
        heap.stats.num_alloc_retries++;
        error = free_segments(heap);
        if (!error)
            error = heap_grow(heap, *settings, size, stream, owner, true, &block);
    }
    if (error == cudaErrorMemoryAllocation)
        return fail_out_of_memory(heap, number, bytes);
    if (error)
        return cuda_fail(error, heap.pinned ? "allocating pinned memory"
                                            : "allocating memory");
    split(heap, *settings, block, size);
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
        block_make_free(heap, block);
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
    if (!heap_keeps() && (heap.pinned || !device_use(number)))
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

bool heap_grows(int device, const void *address)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    for (const Expandable *each : heap.expandables)
        if ((uintptr_t)address - (uintptr_t)each->range.base < each->range.bytes)
            return true;
    return false;
}

bool heap_give_pages(int device, void *data, SharedPages *out, size_t *offset)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    Block *block = heap.taken.find(data);
    Mapped *range = block && block->segment ? &block->segment->range : nullptr;
    if (!range || !range->give(block->data, block->size, out))
        return false;
    *offset = (size_t)(block->data - range->base) % range->page;
    return true;
}

void heap_share(int device, int gpu)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    heap.peers.push_back(gpu);
    for (Expandable *each : heap.expandables)
        cuda_succeeds(each->range.share(gpu));
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
        for (Expandable *each : heap.expandables)
            all.insert(each->unmapped.begin(), each->unmapped.end());
        heap.taken.each(note);
        for (Uses &uses : heap.uses)
            for (Use &use : uses.queue)
                all.insert(use.block);
        for (Block *first : all) {
            char *start = nullptr; /* of what is mapped without a gap */
            for (Block *b = first->previous ? nullptr : first; b; b = b->next) {
                start = !b->mapped ? nullptr : start ? start : b->data;
                if (start)
                    found.push_back({start, b->data, b->stream, b->size, b->requested,
                                     b->taken, b->events > 0});
            }
        }
    }
    for (const dt_memory_block &block : found)
        visit(context, &block);
}

double dt_cuda_memory_fraction(int device, double fraction)
{
    Heap &heap = heap_of(device);
    Guard guard(device);
    const double before = memory_fraction(heap);
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
