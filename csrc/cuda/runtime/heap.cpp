#include "cuda/runtime/heap.h"

#include <stdlib.h>

bool heap_keeps()
{
    static const char *text = getenv("PYDEVTENSOR_NO_CACHE");
    static const bool no = text && text[0] == '1';
    return !no;
}

static const dt_memory_settings *(*settings_of_host)(void);
static dt_memory_note_fn note_of_host;

extern "C" __attribute__((visibility("default"))) dt_memory_grows_fn
dt_memory_open(const dt_memory_settings *(*settings)(void), dt_memory_note_fn note)
{
    settings_of_host = settings;
    note_of_host = note;
    return heap_grows;
}

const dt_memory_settings *heap_settings(const Heap &heap)
{
    static const dt_memory_settings defaults = DT_MEMORY_DEFAULTS;
    return settings_of_host && !heap.pinned ? settings_of_host() : &defaults;
}

void heap_note(const Heap &heap, const Block &block, size_t size,
               dt_memory_action action)
{
    if (note_of_host && !heap.pinned)
        note_of_host(heap.device, block.stream, block.data, (int64_t)size, action);
}

Block *block_new(Heap &heap, const Block &like, char *data, size_t size)
{
    Block *block = heap.spare;
    if (block)
        heap.spare = block->after;
    else
        block = new Block;
    *block = {};
    block->data = data;
    block->size = size;
    block->stream = like.stream;
    block->small = like.small;
    block->owner = like.owner;
    block->segment = like.segment;
    block->mapped = like.mapped;
    block->lists = pool_of(heap, like).lists_for(like.small, like.stream);
    return block;
}

void block_drop(Heap &heap, Block *block)
{
    block->after = heap.spare;
    heap.spare = block;
}

Block *block_cut(Heap &heap, Block *block, size_t size)
{
    Block *rest = block_new(heap, *block, block->data + size, block->size - size);
    rest->previous = block;
    rest->next = block->next;
    if (block->next)
        block->next->previous = rest;
    block->next = rest;
    block->size = size;
    return rest;
}

void block_join(Heap &heap, Block *block)
{
    Block *other = block->next;
    block->size += other->size;
    block->next = other->next;
    if (other->next)
        other->next->previous = block;
    block_drop(heap, other);
}

void block_make_free(Heap &heap, Block *block)
{
    Pool &pool = pool_of(heap, *block);
    Block *next = block->next, *previous = block->previous;
    if (block_is_free(next) && next->mapped) {
        pool.erase(next);
        block_join(heap, block);
    }
    if (block_is_free(previous) && previous->mapped) {
        pool.erase(previous);
        block = previous;
        block_join(heap, block);
    }
    block->freed = ++heap.given_back;
    pool.insert(block);
}
