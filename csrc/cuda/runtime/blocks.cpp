#include "cuda/runtime/blocks.h"

#include <stdlib.h>

/* --- lists --- */

static void put_first(Block *&first, Block *block)
{
    block->before = nullptr;
    block->after = first;
    if (first)
        first->before = block;
    first = block;
}

static void take_out(Block *&first, Block *block)
{
    (block->before ? block->before->after : first) = block->after;
    if (block->after)
        block->after->before = block->before;
}

/* --- free blocks --- */

void SmallBlocks::insert(Block *block)
{
    const size_t number = number_of(block);
    put_first(lists[number], block);
    sizes[number / 64] |= (uint64_t)1 << number % 64;
    words |= (uint64_t)1 << number / 64;
}

void SmallBlocks::erase(Block *block)
{
    const size_t number = number_of(block);
    take_out(lists[number], block);
    if (lists[number])
        return;
    sizes[number / 64] &= ~((uint64_t)1 << number % 64);
    if (!sizes[number / 64])
        words &= ~((uint64_t)1 << number / 64);
}

Block *SmallBlocks::find(size_t size) const
{
    const size_t number = size / kBlockRound;
    size_t word = number / 64;
    uint64_t found = sizes[word] & ~(uint64_t)0 << number % 64;
    if (!found) {
        const uint64_t later = words & ~(uint64_t)1 << word;
        if (!later)
            return nullptr;
        word = (size_t)__builtin_ctzll(later);
        found = sizes[word];
    }
    return lists[64 * word + (size_t)__builtin_ctzll(found)];
}

Pool::~Pool()
{
    for (SmallBlocks *lists : streams)
        delete lists;
}

void Pool::insert(Block *block)
{
    if (block->lists)
        block->lists->insert(block);
    else
        large.insert(block);
}

void Pool::erase(Block *block)
{
    if (block->lists)
        block->lists->erase(block);
    else
        large.erase(block);
}

SmallBlocks *Pool::lists_for(bool small, void *stream)
{
    if (!small)
        return nullptr;
    if (last && last->stream == stream)
        return last;
    for (SmallBlocks *lists : streams)
        if (lists->stream == stream)
            return last = lists;
    streams.push_back(new SmallBlocks(stream));
    return last = streams.back();
}

Block *Pool::take(bool small, size_t size, void *stream, size_t undivided, size_t waste)
{
    Block *found = nullptr;
    if (small) {
        found = lists_for(small, stream)->find(size);
    } else {
        Block key = {};
        key.size = size;
        key.stream = stream;
        auto at = large.lower_bound(&key);
        for (; at != large.end() && (*at)->stream == stream; ++at) {
            if ((*at)->size >= undivided &&
                (size < undivided || (*at)->size - size >= waste))
                break;
            const bool grows = (*at)->next && !(*at)->next->mapped;
            if (!found || !grows)
                found = *at;
            if (!grows)
                break;
        }
    }
    if (found)
        erase(found);
    return found;
}

/* --- taken blocks --- */

void TakenBlocks::insert(Block *block)
{
    if (count >> bits)
        grow();
    put_first(slot_of(block->data), block);
    count++;
}

Block *TakenBlocks::find(const void *data) const
{
    Block *block = slot_of(data);
    while (block && block->data != data)
        block = block->after;
    return block;
}

void TakenBlocks::erase(Block *block)
{
    take_out(slot_of(block->data), block);
    count--;
}

/* Without memory for more slots, lists become longer. */
void TakenBlocks::grow()
{
    Block **before = slots;
    const size_t nbefore = (size_t)1 << bits;
    Block **more = (Block **)calloc(2 * nbefore, sizeof *more);
    if (!more)
        return;
    slots = more;
    bits++;
    for (size_t i = 0; i < nbefore; i++)
        while (Block *block = before[i]) {
            before[i] = block->after;
            put_first(slot_of(block->data), block);
        }
    if (before != few)
        free(before);
}
