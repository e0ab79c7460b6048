/* operator new for the maps and lists of this library. It cannot throw, as no exception
 * passes through the library: if malloc fails, it takes memory from a reserve, whose pages
 * are untouched until then. reserve_is_low() says when to refuse new work. */
#include "base/lock.h"
#include "base/sanitizer.h"
#include "cuda/runtime/backend.h"

#include <new>
#include <stdlib.h>

static const size_t kReserve = (size_t)1 << 20;

/* A sanitizer has its own, and compares how memory is allocated and freed. */
#if DT_ASAN

bool reserve_is_low(void)
{
    return false;
}

#else

namespace {
/* Before each block; `next` is of the freed blocks of one size. */
struct alignas(16) Head {
    int order; /* the size with the head is 2^order */
    Head *next;
};

struct {
    alignas(16) char memory[kReserve];
    size_t used = 0, taken = 0; /* cut into blocks; in use */
    Head *freed[32] = {};
} reserve;

void *take(size_t bytes)
{
    int order = 6;
    while (order < 31 && (size_t)1 << order < bytes + sizeof(Head))
        order++;
    const size_t size = (size_t)1 << order;
    dt_locked guard(DT_LOCK_RESERVE);
    Head *head = reserve.freed[order];
    if (head) {
        reserve.freed[order] = head->next;
    } else {
        if (size > kReserve - reserve.used)
            abort();
        head = new (reserve.memory + reserve.used) Head{order, nullptr};
        reserve.used += size;
    }
    __atomic_add_fetch(&reserve.taken, size, __ATOMIC_RELAXED);
    return head + 1;
}

bool give_back(void *block)
{
    uintptr_t offset = (uintptr_t)block - (uintptr_t)reserve.memory;
    if (offset >= kReserve)
        return false;
    Head *head = (Head *)block - 1;
    dt_locked guard(DT_LOCK_RESERVE);
    __atomic_sub_fetch(&reserve.taken, (size_t)1 << head->order, __ATOMIC_RELAXED);
    head->next = reserve.freed[head->order];
    reserve.freed[head->order] = head;
    return true;
}
} /* namespace */

bool reserve_is_low(void)
{
    return __atomic_load_n(&reserve.taken, __ATOMIC_RELAXED) > kReserve / 4;
}

void *operator new(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    return memory ? memory : take(bytes);
}

void operator delete(void *block) noexcept
{
    if (!give_back(block))
        free(block);
}

void operator delete(void *block, size_t) noexcept
{
    operator delete(block);
}

#endif
