/* Blocks: exactly the bytes that a program requested. Pointers are checked when work
 * is queued, since a correct program frees nothing before it has queued the last
 * use. Poison and canaries are written in the order of the block's stream where queued
 * work still uses the memory, and else at once: so a stream that does not wait for the
 * one that fills a new block finds poison there, and not what was there before. */
#include "check.h"
#include "internal.h"
#include "mapping.h"
#include <algorithm>
#include <string.h>

namespace sim {

static const int kPoison = 0xFF; /* NaN as a float, -1 as an integer, not a valid
                                    bool */
static const unsigned char kCanary = 0xC9;
/* Memory of a card that the host may not have: of larger blocks only both ends are
 * poisoned, since poison takes memory of the host. */
static const size_t kPoisonWhole = (size_t)16 << 20, kPoisonEnd = (size_t)1 << 20;

void lay_out(Block &block)
{
    char *seen = seen_from(block.base);
    open_pages(seen, block.rounded);
    if (clock_started && block.bytes > kPoisonWhole) {
        memset(seen, kPoison, kPoisonEnd);
        memset(seen + block.bytes - kPoisonEnd, kPoison, kPoisonEnd);
    } else {
        memset(seen, kPoison, block.bytes);
    }
    memset(seen + block.bytes, kCanary, block.rounded - block.bytes);
    close_pages(seen, block.rounded);
    block.laid_out = true;
    block.born = check_time();
}

void block_filled(const Work &work, const void *pointer)
{
    const char *p = (const char *)pointer;
    for (auto &block : work.blocks)
        if (p >= block->base && (size_t)(p - block->base) < block->rounded)
            block->filled = true;
}

static size_t first_harm(const unsigned char *slack, size_t from, size_t to)
{
    while (from < to && slack[from] == kCanary)
        from++;
    return from;
}

bool check_canary(Block &block, const std::string &who, int blamed, bool all)
{
    if (block.overtaken)
        return true;
    /* The slack of a large block can be a megabyte: after a kernel, check only its
     * ends. */
    const size_t near = 4096, far = 512, slack = block.rounded - block.bytes;
    unsigned char *seen = (unsigned char *)seen_from(block.base) + block.bytes;
    open_pages((char *)seen, slack);
    size_t harm;
    if (all || slack <= near + far) {
        harm = first_harm(seen, 0, slack);
    } else {
        harm = first_harm(seen, 0, near);
        if (harm == near)
            harm = first_harm(seen, slack - far, slack);
    }
    if (harm < slack)
        memset(seen, kCanary, slack);
    close_pages((char *)seen, slack);
    if (harm >= slack)
        return true;
    blame(
        blamed, cudaErrorIllegalAddress,
        format("%s wrote past the end of a block of %zu bytes of simulated cuda:%d, at "
               "offset %zu",
               who.c_str(), block.bytes, block.device, block.bytes + harm));
    return false;
}

void set_fault(Work &work, const std::string &text)
{
    if (work.fault)
        return;
    work.fault = cudaErrorIllegalAddress;
    work.fault_text = text;
}

static std::string words(const Work &work, const Reach &how)
{
    std::string title = work.title();
    return how.number ? format("%s %d of %s", how.role, how.number, title.c_str())
                      : format("the %s of %s", how.role, title.c_str());
}

static void reach_host(Work &work, const Reach &how, const void *pointer, size_t bytes,
                       void **seen)
{
    auto &pinned = state().pinned;
    auto found = entry_before(pinned, pointer);
    if (how.pinned && found != pinned.end()) {
        size_t offset = (size_t)((const char *)pointer - found->first);
        if (offset <= found->second &&
            (!how.range || bytes <= found->second - offset)) {
            *seen = (void *)pointer;
            return;
        }
    }
    set_fault(work, format("%s is %p, not an address in device memory",
                           words(work, how).c_str(), pointer));
}

void reach(Work &work, const Reach &how, const void *pointer, size_t bytes, void **seen)
{
    const char *p = (const char *)pointer;
    *seen = nullptr;
    if (!p && !how.range)
        return;
    Device *device = device_of(p);
    if (!device) {
        reach_host(work, how, pointer, bytes, seen);
        return;
    }
    if (how.through_peer && device->index != how.device &&
        !device_at(how.device).reaches[device->index] &&
        reservation_of(*device, p) == device->reserved.end()) {
        set_fault(work,
                  format("%s is on simulated cuda:%d, which work on cuda:%d cannot "
                         "access without peer access",
                         words(work, how).c_str(), device->index, how.device));
        return;
    }
    /* A pointer may be one past the end. */
    auto holds = [p](const Block &block) {
        return (size_t)(p - block.base) <= block.rounded;
    };
    auto segment = entry_before(device->segments, p);
    if (segment == device->segments.end() || !holds(*segment->second.whole)) {
        set_fault(
            work,
            format("%s points into memory of simulated cuda:%d that is not allocated",
                   words(work, how).c_str(), device->index));
        return;
    }
    BlockRef block = segment->second.whole;
    const int from = how.through_peer ? how.device : device->index;
    if (segment->second.carved) {
        auto found = entry_before(device->taken, p);
        if (found == device->taken.end() || !holds(*found->second)) {
            set_fault(work,
                      format("%s points into a block of simulated cuda:%d that was "
                             "released to the allocator",
                             words(work, how).c_str(), device->index));
            return;
        }
        block = found->second;
    }
    if (!may_reach(*block, from)) {
        set_fault(work, format("%s is mapped memory of simulated cuda:%d, to which "
                               "cuMemSetAccess gives cuda:%d no access",
                               words(work, how).c_str(), device->index, from));
        return;
    }
    if (!segment->second.carved && !block->laid_out)
        lay_out(*block); /* its first use: no queued work sees it yet */
    size_t offset = (size_t)(p - block->base);
    if (how.range && (offset > block->bytes || bytes > block->bytes - offset)) {
        set_fault(work,
                  format("%s: %zu bytes at offset %zu go past the end of a block of "
                         "%zu bytes of "
                         "simulated cuda:%d",
                         words(work, how).c_str(), bytes, offset, block->bytes,
                         device->index));
        return;
    }
    *seen = seen_from(p);
    for (auto &known : work.blocks)
        if (known == block)
            return;
    work.blocks.push_back(block);
}

/* Removes the blocks that overlap [base, base + bytes) from `blocks`. */
static std::vector<BlockRef> overlapping(std::map<char *, BlockRef> &blocks, char *base,
                                         size_t bytes)
{
    std::vector<BlockRef> found;
    auto at = blocks.upper_bound(base);
    if (at != blocks.begin() &&
        std::prev(at)->second->base + std::prev(at)->second->rounded > base)
        --at;
    while (at != blocks.end() && at->first < base + bytes) {
        found.push_back(at->second);
        at = blocks.erase(at);
    }
    return found;
}

/* Before the memory is laid out anew. */
static void end_of(Block &block)
{
    if (block.laid_out && !block.reused)
        check_canary(block, "work", block.device, true);
    block.reused = true;
}

void overtake(Block &block)
{
    for (auto &old : block.before) {
        old->overtaken = true;
        overtake(*old);
    }
}

void forget_blocks(Device &device, char *base, size_t bytes)
{
    std::vector<BlockRef> left = overlapping(device.taken, base, bytes);
    std::vector<BlockRef> past = overlapping(device.past, base, bytes);
    left.insert(left.end(), past.begin(), past.end());
    for (auto &block : left)
        end_of(*block);
    auto &captured = device.captured;
    captured.erase(std::remove_if(captured.begin(), captured.end(),
                                  [&](const BlockRef &block) {
                                      return block->base < base + bytes &&
                                             base < block->base + block->rounded;
                                  }),
                   captured.end());
}

bool is_in_queue(const char *base, size_t bytes)
{
    bool found = false;
    each_stream([&](const Stream &stream) {
        for (auto &work : stream.queue)
            for (auto &block : work.blocks)
                found |=
                    block->base < base + bytes && base < block->base + block->rounded;
    });
    return found;
}

static bool meet(const Block &a, const Block &b)
{
    return a.base < b.base + b.rounded && b.base < a.base + a.rounded;
}

bool is_live(const Block &block)
{
    if (block.captured)
        return true;
    Device &device = device_at(block.device);
    auto segment = entry_before(device.segments, block.base);
    if (segment == device.segments.end())
        return false;
    auto found = device.taken.find(block.base);
    return segment->second.whole.get() == &block ||
           (found != device.taken.end() && found->second.get() == &block);
}

/* A replay may find other blocks of its graph, or of one with the same pool, in the
 * memory. A block that shares its memory with none, and that the program holds, keeps
 * what it has. */
void lay_out_again(const BlockRef &block)
{
    Device &device = device_at(block->device);
    bool alone = device.taken.count(block->base) != 0;
    for (const BlockRef &other : device.captured) {
        if (other == block || !meet(*other, *block))
            continue;
        alone = false;
        end_of(*other);
    }
    block->reused = false;
    if (!alone || !block->laid_out)
        lay_out(*block);
}

/* An allocator cuts a block that is to end at `limit` from a segment, or from those after it
 * too that are mapped in the same reservation. Returns where they end. */
static const char *carve(Device &device, std::map<char *, Segment>::iterator at,
                         const char *limit)
{
    const auto reserved = reservation_of(device, at->first);
    const bool joined = reserved != device.reserved.end();
    const char *end = at->first;
    do {
        at->second.carved = true;
        end = at->first + at->second.whole->rounded;
        ++at;
    } while (joined && end < limit && at != device.segments.end() && at->first == end &&
             end < reserved->first + reserved->second);
    return end;
}

void block_opened(void *pointer, size_t bytes)
{
    Entry in;
    char *base = (char *)pointer;
    Device *device = device_of(base);
    if (in.error || !device)
        return;
    auto found = device->segments.find(base);
    if (found == device->segments.end())
        return;
    carve(*device, found, base + bytes);
    BlockRef block = std::make_shared<Block>(Block{device->index, base, bytes, bytes});
    block->laid_out = block->filled = true;
    device->taken[base] = block;
}

void block_taken(void *pointer, size_t bytes, size_t rounded, cudaStream_t handle)
{
    Entry in;
    if (in.error)
        return;
    char *base = (char *)pointer;
    Device *device = device_of(base);
    if (!device) /* pinned memory is handed out when its copies are over */
        race_forget(base, rounded);
    if (!device || bytes > rounded)
        return;
    auto found = entry_before(device->segments, base);
    if (found == device->segments.end())
        return;
    const char *end = carve(*device, found, base + rounded);
    std::vector<BlockRef> live = overlapping(device->taken, base, rounded);
    if (base > end || rounded > (size_t)(end - base) || !live.empty())
        blame(
            device->index, cudaErrorIllegalAddress,
            format(
                "the allocator took a block of %zu bytes on simulated cuda:%d that %s",
                rounded, device->index,
                live.empty() ? "leaves its segment" : "overlaps a live one"));
    if (base > end || rounded > (size_t)(end - base))
        return;

    BlockRef block =
        std::make_shared<Block>(Block{device->index, base, bytes, rounded});
    device->taken[base] = block;

    std::vector<BlockRef> before = overlapping(device->past, base, rounded);
    before.insert(before.end(), live.begin(), live.end());
    /* NULL is the default stream of the block's device, not of the current device. */
    Stream *stream = handle ? stream_of(handle) : device->own_stream.get();
    if (!stream)
        stream = device->own_stream.get();
    Work work;
    work.kind = Work::kHousekeeping;
    work.blocks = before;
    work.blocks.push_back(block);
    block->before = std::move(before);
    work.run = [block] {
        if (block->laid_out)
            return;
        for (auto &old : block->before)
            end_of(*old);
        block->before.clear();
        lay_out(*block);
    };
    if (!is_in_queue(base, rounded))
        work.run();
    if (stream->capture) {
        block->captured = true;
        device->captured.push_back(block);
        work.run = [block] { lay_out_again(block); };
    }
    push(*stream, std::move(work));
}

void block_given_back(void *pointer, size_t rounded)
{
    Entry in;
    Device *device = in.error ? nullptr : device_of(pointer);
    if (!device)
        return;
    auto found = device->taken.find((char *)pointer);
    if (found == device->taken.end() || found->second->rounded != rounded) {
        blame(device->index, cudaErrorIllegalAddress,
              format("the allocator released a block of %zu bytes on simulated cuda:%d "
                     "that it had not allocated",
                     rounded, device->index));
        return;
    }
    device->past[(char *)pointer] = found->second;
    device->taken.erase(found);
}

} /* namespace sim */
