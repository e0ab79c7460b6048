/* Segments: memory that the driver allocates whole, and when it gets it back. */
#include "cuda/runtime/graph.h"
#include "cuda/runtime/heap.h"
#include "cuda/runtime/launch.h"

#include <algorithm>

static const size_t kMedium = (size_t)10 << 20;
static const size_t kLargeRound = (size_t)2 << 20;

double memory_fraction(const Heap &heap)
{
    const dt_memory_settings *settings = heap_settings(heap);
    return heap.fraction >= 0 ? heap.fraction : settings ? settings->fraction : 1;
}

cudaError_t memory_limit(const Heap &heap, size_t *limit)
{
    size_t free_bytes = 0, total = 0;
    *limit = SIZE_MAX;
    if (heap.pinned)
        return cudaSuccess;
    const double fraction = memory_fraction(heap);
    if (device_sharing() == 1 && fraction >= 1)
        return cudaSuccess;
    cudaError_t error = cudaMemGetInfo(&free_bytes, &total);
    *limit = (size_t)((double)(total / (size_t)device_sharing()) * fraction);
    return error;
}

static cudaError_t take_from_driver(const Heap &heap, size_t bytes, void **out)
{
    Relaxed mode;
    return heap.pinned ? cudaHostAlloc(out, bytes, cudaHostAllocPortable)
                       : cudaMalloc(out, bytes);
}

static cudaError_t new_segment(Heap &heap, const dt_memory_settings &settings,
                               size_t size, void *stream, GraphPool *owner, Block **out)
{
    size_t bytes = !heap_keeps()    ? size
                   : size <= kSmall ? kSmallSegment
                   : size < kMedium ? std::max(size, settings.large_segment)
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
    Block like = {};
    like.stream = stream;
    like.small = size <= kSmall;
    like.owner = owner;
    like.mapped = true;
    *out = block_new(heap, like, (char *)data, bytes);
    heap_note(heap, **out, bytes, DT_MEMORY_SEGMENT_ALLOCATED);
    if (owner)
        owner->segments++;
    return cudaSuccess;
}

cudaError_t heap_grow(Heap &heap, const dt_memory_settings &settings, size_t size,
                      void *stream, GraphPool *owner, bool last, Block **out)
{
    if (!settings.expandable_segments || heap.pinned || !heap_keeps())
        return new_segment(heap, settings, size, stream, owner, out);
    cudaError_t error = expandable_grow(heap, settings, size, stream, owner, out);
    /* The request may fit although its last page does not. */
    if (error == cudaErrorMemoryAllocation && last)
        error = new_segment(heap, settings, size, stream, owner, out);
    return error;
}

/* Forgets the pools that no graph has and that have no memory. */
static void forget_pools(Heap &heap)
{
    std::vector<GraphPool *> left;
    for (GraphPool *pool : heap.graph_pools)
        if (pool->graphs || pool->segments)
            left.push_back(pool);
        else
            delete pool;
    heap.graph_pools.swap(left);
}

static cudaError_t free_segment(Heap &heap, Block *block)
{
    cudaError_t error = heap.pinned ? cudaFreeHost(block->data) : cudaFree(block->data);
    if (!cuda_succeeds(error))
        return error;
    heap_note(heap, *block, block->size, DT_MEMORY_SEGMENT_FREED);
    pool_of(heap, *block).erase(block);
    dt_memory_count(&heap.stats.reserved_bytes, -(int64_t)block->size);
    dt_memory_count(&heap.stats.segment, -1);
    if (block->owner)
        block->owner->segments--;
    block_drop(heap, block);
    return cudaSuccess;
}

/* The blocks that are a whole segment each, which no graph has. */
static std::vector<Block *> unused_segments(const Heap &heap)
{
    std::vector<Block *> unused;
    auto note = [&unused](Block *block) {
        if (!block->previous && !block->next)
            unused.push_back(block);
    };
    heap.free.fixed.each(note);
    for (GraphPool *pool : heap.graph_pools)
        if (!pool->graphs)
            pool->free.fixed.each(note);
    return unused;
}

cudaError_t heap_shrink(Heap &heap)
{
    for (Block *block : unused_segments(heap))
        if (cudaError_t error = free_segment(heap, block))
            return error;
    if (cudaError_t error = expandable_shrink(heap))
        return error;
    forget_pools(heap);
    return cudaSuccess;
}

void heap_collect(Heap &heap, const dt_memory_settings &settings)
{
    size_t limit = SIZE_MAX, free_bytes = 0, total = 0;
    if (!cuda_succeeds(memory_limit(heap, &limit)))
        return;
    if (limit == SIZE_MAX && !cuda_succeeds(cudaMemGetInfo(&free_bytes, &total)))
        return;
    const int64_t most = (int64_t)(settings.garbage_collection_threshold *
                                   (double)(limit == SIZE_MAX ? total : limit));
    if (heap.stats.reserved_bytes.current <= most)
        return;
    std::vector<Block *> unused = unused_segments(heap);
    std::sort(unused.begin(), unused.end(),
              [](const Block *a, const Block *b) { return a->freed < b->freed; });
    for (Block *block : unused)
        if (heap.stats.reserved_bytes.current > most && free_segment(heap, block))
            return;
}
