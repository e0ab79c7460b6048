/* A cache of memory: its blocks, and where they come from. Of the allocator's files alone;
 * the heap's lock is held in all functions. */
#ifndef DT_CUDA_RUNTIME_HEAP_H
#define DT_CUDA_RUNTIME_HEAP_H

#include <deque>
#include <set>
#include <vector>

#include "cuda/runtime/backend.h"
#include "cuda/runtime/blocks.h"
#include "cuda/runtime/mapping.h"
#include "device/memory_settings.h"

const size_t kSmall = (size_t)1 << 20;

/* Free blocks, of ordinary segments and of those that grow. */
struct FreeBlocks {
    Pool fixed, expandable;
    Pool &of(const Block &block) { return block.segment ? expandable : fixed; }
    template <class F>
    void each(F f) const
    {
        fixed.each(f);
        expandable.each(f);
    }
};

/* Memory of graphs. */
struct GraphPool {
    uint64_t number;
    int graphs = 0; /* that have it; 0: its segments may be freed */
    int segments = 0;
    FreeBlocks free = {};

    explicit GraphPool(uint64_t of) : number(of) {}
};

/* A segment that grows: one chain of blocks over all its addresses, of which those that
 * are not mapped are in no pool. */
struct Expandable {
    Mapped range = {};
    void *stream = nullptr;
    bool small = false; /* for small blocks */
    GraphPool *owner = nullptr;
    struct ByAddress {
        bool operator()(const Block *a, const Block *b) const
        {
            return (uintptr_t)a->data < (uintptr_t)b->data;
        }
    };
    std::set<Block *, ByAddress> unmapped = {};
};

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
    int device = 0;
    bool pinned = false;
    FreeBlocks free;
    TakenBlocks taken;
    Block *spare = nullptr; /* structs of blocks that are gone, for others */
    std::vector<Uses> uses;
    dt_memory_stats stats = {};
    double fraction = -1; /* of the device's memory; below 0: as the settings say */
    std::vector<GraphPool *> graph_pools;
    GraphPool *capturing = nullptr; /* of the graph that is being captured */
    /* Given back during a capture, when no event can mark their uses elsewhere. */
    std::vector<Block *> deferred;
    std::vector<Expandable *> expandables;
    std::vector<int> peers;  /* GPUs that may access this one's memory */
    uint64_t given_back = 0; /* how many blocks became free so far */
};

/* The defaults for pinned memory. NULL after dt_fail. */
const dt_memory_settings *heap_settings(const Heap &heap);

/* Reports to observers that the first `size` bytes of a block of a GPU's memory have come from
 * the driver, or return to it. */
void heap_note(const Heap &heap, const Block &block, size_t size,
               dt_memory_action action);

/* Whether freed blocks are kept: not with PYDEVTENSOR_NO_CACHE=1. */
bool heap_keeps();

static inline size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static inline FreeBlocks &free_blocks(Heap &heap, GraphPool *owner)
{
    return owner ? owner->free : heap.free;
}
static inline Pool &pool_of(Heap &heap, const Block &block)
{
    return free_blocks(heap, block.owner).of(block);
}

/* --- blocks (heap.cpp) --- */

/* A block like `like`, the neighbour of none, with other memory. */
Block *block_new(Heap &heap, const Block &like, char *data, size_t size);
void block_drop(Heap &heap, Block *block);
/* A new block of the last bytes of a block, from `size` on. In no pool. */
Block *block_cut(Heap &heap, Block *block, size_t size);
/* The block and the one after it become one. */
void block_join(Heap &heap, Block *block);
/* Puts a block that is not taken into its pool, merged with free neighbours. */
void block_make_free(Heap &heap, Block *block);
static inline bool block_is_free(const Block *block)
{
    return block && !block->taken && !block->events;
}

/* --- memory of the driver (segments.cpp, expandable.cpp) --- */

/* The fraction of the device's memory that may be allocated. */
double memory_fraction(const Heap &heap);
/* Bytes that may be allocated, SIZE_MAX if nothing limits them but the driver. */
cudaError_t memory_limit(const Heap &heap, size_t *limit);

/* A new block of at least `size` bytes, in no pool, from a new segment or one that
 * grows. `last`: memory was freed for it, and there is no more. */
cudaError_t heap_grow(Heap &heap, const dt_memory_settings &settings, size_t size,
                      void *stream, GraphPool *owner, bool last, Block **out);
/* From a segment that grows. */
cudaError_t expandable_grow(Heap &heap, const dt_memory_settings &settings, size_t size,
                            void *stream, GraphPool *owner, Block **out);

/* Returns unused memory to the driver; uses on other streams have been settled. */
cudaError_t heap_shrink(Heap &heap);
/* Returns the whole pages of free blocks of segments that grow, after all work. */
cudaError_t expandable_shrink(Heap &heap);
/* Returns unused segments, those that are free for longest first, until less than the
 * settings' threshold is reserved. */
void heap_collect(Heap &heap, const dt_memory_settings &settings);

#endif
