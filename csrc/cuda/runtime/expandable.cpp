/* Segments that grow (expandable_segments:True). Each has more addresses than the GPU has
 * memory, so a block that is free at the end of what is mapped grows by the next pages: an
 * allocation that no free block can have takes only the missing bytes from the driver.
 * Pages of free blocks go back to the driver one by one. */
#include "cuda/runtime/graph.h"
#include "cuda/runtime/heap.h"
#include "cuda/runtime/launch.h"

#include <algorithm>

static cudaError_t new_expandable(Heap &heap, const dt_memory_settings &settings,
                                  const Block &like, size_t size, Expandable **out)
{
    size_t free_bytes = 0, total = 0;
    if (cudaError_t error = cudaMemGetInfo(&free_bytes, &total))
        return error;
    if (size > total)
        return cudaErrorMemoryAllocation;
    Expandable *made = new Expandable;
    cudaError_t error =
        made->range.reserve(device_ordinal(heap.device), total + total / 8,
                            like.small ? kSmallSegment : settings.large_segment);
    if (!cuda_succeeds(error)) {
        delete made;
        return error;
    }
    made->stream = like.stream;
    made->small = like.small;
    made->owner = like.owner;
    Block all = like;
    all.segment = made;
    all.mapped = false;
    made->unmapped.insert(block_new(heap, all, made->range.base, made->range.bytes));
    heap.expandables.push_back(made);
    dt_memory_count(&heap.stats.segment, 1);
    if (made->owner)
        made->owner->segments++;
    *out = made;
    return cudaSuccess;
}

/* The first of free blocks that follow one another, mapped or not, with so many bytes. NULL:
 * the segment has none. */
static Block *find_room(const Expandable &segment, size_t size)
{
    for (Block *block : segment.unmapped) {
        Block *first = block_is_free(block->previous) ? block->previous : block;
        size_t bytes = 0;
        for (Block *b = first; block_is_free(b) && bytes < size; b = b->next)
            bytes += b->size;
        if (bytes >= size)
            return first;
    }
    return nullptr;
}

/* The bytes of the pages that such blocks lack. */
static size_t missing_bytes(const Expandable &segment, const Block *first, size_t size)
{
    size_t missing = 0;
    for (size_t bytes = 0; bytes < size; first = first->next) {
        if (!first->mapped)
            missing +=
                std::min(first->size, round_up(size - bytes, segment.range.page));
        bytes += first->size;
    }
    return missing;
}

/* Maps the first bytes of a block, whole pages; the rest becomes another block. */
static cudaError_t map_front(Heap &heap, Block *block, size_t bytes)
{
    Expandable &segment = *block->segment;
    Relaxed mode;
    cudaError_t error = segment.range.map(block->data, bytes, heap.peers);
    if (!cuda_succeeds(error))
        return error;
    segment.unmapped.erase(block);
    if (bytes < block->size)
        segment.unmapped.insert(block_cut(heap, block, bytes));
    block->mapped = true;
    heap_note(heap, *block, bytes, DT_MEMORY_SEGMENT_MAPPED);
    dt_memory_count(&heap.stats.reserved_bytes, (int64_t)bytes);
    return cudaSuccess;
}

cudaError_t expandable_grow(Heap &heap, const dt_memory_settings &settings, size_t size,
                            void *stream, GraphPool *owner, Block **out)
{
    Block like = {};
    like.stream = stream;
    like.small = size <= kSmall;
    like.owner = owner;
    Expandable *segment = nullptr;
    Block *block = nullptr;
    for (Expandable *each : heap.expandables) {
        if (block || each->stream != stream || each->small != like.small ||
            each->owner != owner)
            continue;
        segment = each;
        block = find_room(*each, size);
    }
    if (!block) {
        cudaError_t error = new_expandable(heap, settings, like, size, &segment);
        if (error)
            return error;
        block = *segment->unmapped.begin();
    }
    size_t limit = SIZE_MAX;
    const size_t reserved = (size_t)heap.stats.reserved_bytes.current;
    if (cudaError_t error = memory_limit(heap, &limit))
        return error;
    const size_t missing = missing_bytes(*segment, block, size);
    if (missing > limit || reserved > limit - missing)
        return cudaErrorMemoryAllocation;

    Pool &pool = pool_of(heap, *block);
    if (block->mapped)
        pool.erase(block);
    cudaError_t error =
        block->mapped
            ? cudaSuccess
            : map_front(heap, block,
                        std::min(block->size, round_up(size, segment->range.page)));
    if (error)
        return error;
    while (block->size < size) {
        Block *next = block->next;
        if (next->mapped)
            pool.erase(next);
        else
            error = map_front(heap, next,
                              std::min(next->size, round_up(size - block->size,
                                                            segment->range.page)));
        if (error) {
            block_make_free(heap, block);
            return error;
        }
        block_join(heap, block);
    }
    *out = block;
    return cudaSuccess;
}

/* --- giving pages back --- */

/* An unmapped block merges with its neighbours, as addresses without memory. */
static void join_unmapped(Heap &heap, Block *block)
{
    auto &unmapped = block->segment->unmapped;
    if (block->next && !block->next->mapped) {
        unmapped.erase(block->next);
        block_join(heap, block);
    }
    if (block->previous && !block->previous->mapped) {
        unmapped.erase(block);
        block = block->previous;
        block_join(heap, block);
    }
    unmapped.insert(block);
}

static cudaError_t unmap_pages_of(Heap &heap, Block *block)
{
    Mapped &range = block->segment->range;
    const size_t start = (size_t)(block->data - range.base);
    const size_t from = round_up(start, range.page),
                 to = (start + block->size) / range.page * range.page;
    if (from >= to)
        return cudaSuccess;
    if (cudaError_t error = range.unmap(range.base + from, to - from))
        return error;
    Pool &pool = pool_of(heap, *block);
    pool.erase(block);
    dt_memory_count(&heap.stats.reserved_bytes, -(int64_t)(to - from));
    if (to - start < block->size)
        pool.insert(block_cut(heap, block, to - start));
    Block *middle = block;
    if (from > start) {
        middle = block_cut(heap, block, from - start);
        pool.insert(block);
    }
    middle->mapped = false;
    heap_note(heap, *middle, to - from, DT_MEMORY_SEGMENT_UNMAPPED);
    join_unmapped(heap, middle);
    return cudaSuccess;
}

/* Gives back the addresses of segments in which nothing is mapped. */
static void free_expandables(Heap &heap)
{
    std::vector<Expandable *> left;
    for (Expandable *each : heap.expandables) {
        if (each->range.mapped) {
            left.push_back(each);
            continue;
        }
        block_drop(heap, *each->unmapped.begin());
        each->range.free();
        dt_memory_count(&heap.stats.segment, -1);
        if (each->owner)
            each->owner->segments--;
        delete each;
    }
    heap.expandables.swap(left);
}

cudaError_t expandable_shrink(Heap &heap)
{
    std::vector<Block *> found;
    auto note = [&found](Block *block) { found.push_back(block); };
    heap.free.expandable.each(note);
    for (GraphPool *pool : heap.graph_pools)
        if (!pool->graphs)
            pool->free.expandable.each(note);
    if (!found.empty()) {
        /* The driver does not wait, as cudaFree does, for work that uses the memory. */
        SIM_OWN_WAIT;
        if (cudaError_t error = cudaDeviceSynchronize())
            return error;
    }
    for (Block *block : found)
        if (cudaError_t error = unmap_pages_of(heap, block))
            return error;
    free_expandables(heap);
    return cudaSuccess;
}
