/* The blocks of the allocator: by size while they are free, by address while they are taken.
 * No call takes time that grows with their number, but for large blocks a logarithm, nor
 * memory of the host, but for nodes of large blocks and tables that grow. */
#ifndef DT_CUDA_RUNTIME_BLOCKS_H
#define DT_CUDA_RUNTIME_BLOCKS_H

#include <set>
#include <vector>

#include "device/backend.h"

struct GraphPool;
struct Expandable;
class SmallBlocks;

struct Block {
    char *data;
    size_t size;
    void *stream;
    bool small;             /* of a segment for small blocks */
    Block *previous, *next; /* neighbours in the segment */
    size_t requested;
    bool taken;
    int events;                     /* pending uses on other streams */
    std::vector<dt_stream> used_on; /* other streams that used the block */
    GraphPool *owner;               /* NULL: the heap */
    /* In the list of free blocks of this size, or in the table of taken ones. */
    Block *before, *after;
    SmallBlocks *lists;  /* of small blocks: the list that has it while it is free */
    Expandable *segment; /* that grows; NULL: it is another one */
    bool mapped;         /* it has memory; else it is addresses of such a segment */
    uint64_t freed;      /* when it became free, by the heap's count */
};

const size_t kBlockRound = 512;
const size_t kSmallSegment = (size_t)2 << 20;

/* A stream's free blocks of small segments: a list for each size, in steps of kBlockRound,
 * and a bit that says whether the list has any; the last list is for all larger ones. */
class SmallBlocks {
  public:
    void *stream;

    explicit SmallBlocks(void *of) : stream(of) {}
    void insert(Block *block);
    void erase(Block *block);
    /* The smallest block that has so many bytes, at most half of a segment, or NULL. */
    Block *find(size_t size) const;
    template <class F>
    void each(F f) const
    {
        for (Block *first : lists)
            for (Block *block = first; block; block = block->after)
                f(block);
    }

  private:
    static const size_t kSizes = kSmallSegment / kBlockRound;
    static_assert(kSizes == 64 * 64, "64 words of 64 bits");
    static size_t number_of(const Block *block)
    {
        size_t number = block->size / kBlockRound;
        return number < kSizes ? number : kSizes - 1;
    }
    uint64_t words = 0; /* which of `sizes` are not 0 */
    uint64_t sizes[64] = {};
    Block *lists[kSizes] = {};
};

/* Free blocks, of all streams. */
class Pool {
  public:
    Pool() = default;
    Pool(const Pool &) = delete;
    ~Pool();
    void insert(Block *block);
    void erase(Block *block);
    /* Takes out the smallest block of the stream that has so many bytes, one that cannot
     * grow before one that can; NULL: none. Large blocks, of `undivided` bytes or more, are
     * for requests as large, which waste less than `waste`. */
    Block *take(bool small, size_t size, void *stream, size_t undivided, size_t waste);
    /* The list for a new block while it is free; NULL for large ones. */
    SmallBlocks *lists_for(bool small, void *stream);
    /* f may not change the pool. */
    template <class F>
    void each(F f) const
    {
        for (const SmallBlocks *lists : streams)
            lists->each(f);
        for (Block *block : large)
            f(block);
    }

  private:
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
    std::vector<SmallBlocks *> streams;
    SmallBlocks *last = nullptr; /* of the stream that was asked for last */
    std::set<Block *, ByFit> large;
};

/* Taken blocks by address: a hash table of lists. */
class TakenBlocks {
  public:
    TakenBlocks() = default;
    TakenBlocks(const TakenBlocks &) = delete;
    void insert(Block *block);
    Block *find(const void *data) const; /* NULL: none */
    void erase(Block *block);
    template <class F>
    void each(F f) const
    {
        for (size_t i = 0; i < (size_t)1 << bits; i++)
            for (Block *block = slots[i]; block; block = block->after)
                f(block);
    }

  private:
    /* Multiplication by 2^64 / the golden ratio spreads addresses over the high bits. */
    Block *&slot_of(const void *data) const
    {
        return slots[(uintptr_t)data / 256 * 0x9E3779B97F4A7C15 >> (64 - bits)];
    }
    void grow();
    Block *few[256] = {};
    Block **slots = few;
    int bits = 8;
    size_t count = 0;
};

#endif
