/* The checks of accesses: shadow memory, and what orders two threads. */
#include <algorithm>
#include <string.h>
#include "check_shadow.h"
#include "count.h"
#include "price.h"
#include "intrinsics.h"
#include "services.h"

namespace sim {

unsigned check_thread;
bool check_runs;
Checked checked;
Shadow shadow;

namespace {

/* An access as 64 bits: the time 31, the sort 2, the bytes of the word 4, the thread 10,
 * the site 17. So a later one is larger. Sites are numbered modulo 17 bits: a kernel has
 * no code that is so far from its other code. */
enum Sort : unsigned { kPlain, kByVolatile, kAtomic, kBlockAtomic };
/* Reads are by one thread, or by several that nothing orders: of a warp, of a block, of
 * several blocks. */
enum Readers : unsigned { kOne, kOfWarp, kOfBlock, kOfGrid };
const unsigned kSites = 1u << 17;

uint64_t pack(uint64_t time, unsigned sort, unsigned bytes, unsigned thread,
              unsigned site)
{
    return time << 33 | (uint64_t)sort << 31 | (uint64_t)bytes << 27 |
           (uint64_t)thread << 17 | site;
}
uint64_t time_of(uint64_t access)
{
    return access >> 33;
}
unsigned sort_of(uint64_t access)
{
    return access >> 31 & 3;
}
bool is_atomic(unsigned sort)
{
    return sort >= kAtomic;
}
unsigned bytes_of(uint64_t access)
{
    return access >> 27 & 15;
}
unsigned thread_of(uint64_t access)
{
    return access >> 17 & 1023;
}
unsigned site_of(uint64_t access)
{
    return access & (kSites - 1);
}

unsigned site(const void *from)
{
    const size_t offset = (size_t)((const char *)from - checked.launch->module->base);
    return (unsigned)(offset >> 2) & (kSites - 1);
}

Place place_of(const void *from)
{
    return {(uintptr_t)from - (uintptr_t)checked.launch->module->base - 1, 0};
}

/* near: a location in the same kernel. */
Place place_of(uint64_t access, bool read, Place near)
{
    if (!site_of(access))
        return {};
    if (!read && is_atomic(sort_of(access)))
        return {0, (int)site_of(access)};
    const uintptr_t span = (uintptr_t)kSites << 2;
    uintptr_t at = ((uintptr_t)site_of(access) << 2) - 1;
    while (at + span / 2 < near.at)
        at += span;
    return {at, 0};
}

/* --- order --- */

bool knows(const std::vector<Sync::Link> &links, uint64_t time, unsigned thread,
           int depth)
{
    const size_t block = check_block_at(time), running = shadow.blocks.size() - 1;
    for (const Sync::Link &link : links) {
        auto found = link.sync->known.find(block);
        if (found != link.sync->known.end())
            for (const Known &known : found->second)
                if (known.released < link.acquired && known.begin <= time &&
                    time < known.end && (known.wide || block == running) &&
                    (known.thread < 0 || (unsigned)known.thread == thread))
                    return true;
        if (depth && knows(link.sync->links, time, thread, depth - 1))
            return true;
    }
    return false;
}

/* Whether a release and an acquire, or a barrier of some threads, are between the access
 * and this thread. */
bool acquired(uint64_t time, unsigned thread)
{
    if (check_knows(time, thread))
        return true;
    if (shadow.syncs.empty())
        return false;
    if (knows(shadow.block_acquired, time, thread, 4))
        return true;
    auto own = shadow.acquired.find(check_thread);
    return own != shadow.acquired.end() && knows(own->second, time, thread, 4);
}

bool same_warp(unsigned thread)
{
    return thread / 32 == check_thread / 32;
}

/* Whether __syncwarp is between the access and this thread. */
bool ordered_in_warp(uint64_t time, unsigned thread)
{
    return same_warp(thread) && shadow.met[thread / 32] >= shadow.floor &&
           time < shadow.lanes[check_thread][thread % 32];
}

bool ordered_in_whole_warp(uint64_t time, unsigned thread)
{
    if (!same_warp(thread) || shadow.met[thread / 32] < shadow.floor)
        return false;
    const uint64_t *lanes = shadow.lanes[check_thread];
    return time < *std::min_element(lanes, lanes + 32);
}

/* Whether the write is unordered with this thread's access. */
bool conflicts(uint64_t written, unsigned bytes, Sort sort, Space space)
{
    const uint64_t time = time_of(written);
    const unsigned thread = thread_of(written);
    if (!(bytes_of(written) & bytes))
        return false;
    const bool strong = sort != kPlain && sort_of(written) != kPlain;
    if (time < shadow.block)
        return (!strong || sort == kBlockAtomic || sort_of(written) == kBlockAtomic) &&
               !acquired(time, thread);
    if (thread == check_thread || time < shadow.floor || ordered_in_warp(time, thread))
        return false;
    /* Lanes of a warp that exchange values through volatile shared memory need
     * __syncwarp; a flag with fences does not. */
    if (strong && (space != kShared || !same_warp(thread) || is_atomic(sort) ||
                   is_atomic(sort_of(written)) || shadow.fences || shadow.fenced))
        return false;
    return !acquired(time, thread);
}

/* Whether reads are unordered with this thread's write. */
bool conflicts_with_reads(uint64_t read, unsigned bytes, Sort sort)
{
    const uint64_t time = time_of(read);
    const unsigned thread = thread_of(read), readers = sort_of(read);
    if (!bytes_of(read)) /* volatile, in shared memory */
        return !is_atomic(sort) && thread != check_thread && time >= shadow.floor &&
               (sort == kPlain ||
                (same_warp(thread) && !shadow.fences && !shadow.fenced)) &&
               !ordered_in_warp(time, thread) && !acquired(time, thread);
    if (!(bytes_of(read) & bytes))
        return false;
    if (readers == kOfGrid || time < shadow.block)
        return !acquired(time, thread) && (readers != kOfGrid || shadow.syncs.empty());
    if (time < shadow.floor)
        return false;
    if (readers == kOne)
        return thread != check_thread && !ordered_in_warp(time, thread) &&
               !acquired(time, thread);
    if (readers == kOfWarp && ordered_in_whole_warp(time, thread))
        return false;
    /* The last one of several readers is known. */
    return shadow.syncs.empty() && !check_knows(time, thread);
}

/* The word's reads with one of this thread's. */
uint64_t joined(uint64_t read, uint64_t mine)
{
    const uint64_t time = time_of(read);
    const unsigned thread = thread_of(read), readers = sort_of(read);
    if (!bytes_of(read))
        return mine;
    if (readers == kOfGrid)
        return read;
    if (time < shadow.block)
        return read | (uint64_t)kOfGrid << 31;
    if (time < shadow.floor)
        return mine;
    const uint64_t bytes = (uint64_t)15 << 27, both = read & mine & bytes;
    if (readers == kOne) {
        if (thread == check_thread)
            return mine | (read & bytes);
        if (!both || ordered_in_warp(time, thread) || check_knows(time, thread))
            return mine;
    } else if (readers == kOfWarp && ordered_in_whole_warp(time, thread)) {
        return mine;
    } else if (!both) {
        return read;
    }
    const bool warp = same_warp(thread) && readers != kOfBlock;
    return (mine & ~bytes) | both | (uint64_t)(warp ? kOfWarp : kOfBlock) << 31;
}

/* --- findings --- */

Finding finding(Kind kind, Space space, Place place, const void *address,
                unsigned bytes, bool write)
{
    Finding found;
    found.kind = kind;
    found.space = space;
    found.place = place;
    found.block = (long)shadow.blocks.size() - 1;
    found.thread = check_thread;
    found.address = address;
    found.bytes = bytes;
    found.write = write;
    return found;
}

void settle()
{
    shadow.pending = false;
    if (memcmp(shadow.waiting.address, shadow.before, shadow.waiting.bytes))
        report(shadow.waiting, false);
}

void race(uint64_t other, bool other_writes, Space space, Place place,
          const void *address, unsigned bytes, bool write, Sort sort)
{
    Finding found = finding(kRace, space, place, address, bytes, write);
    const uint64_t time = time_of(other);
    const unsigned readers = other_writes ? (unsigned)kOne : sort_of(other);
    found.other = place_of(other, !other_writes, place);
    found.other_write = other_writes;
    if (time < shadow.block)
        found.other_block = (long)check_block_at(time);
    else
        found.same_warp = same_warp(thread_of(other)) && readers != kOfBlock;
    /* The last of several readers is known, which may be this thread. */
    if (readers == kOne || time < shadow.block || thread_of(other) != check_thread)
        found.other_thread = (long)thread_of(other);
    /* A read before a loop with atomicCAS may be of any value. */
    if (!write && other_writes && is_atomic(sort_of(other))) {
        if (shadow.guess.thread != kNone)
            return;
        shadow.guess = found;
        return;
    }
    if (write && other_writes && !is_atomic(sort) && bytes <= sizeof shadow.before) {
        shadow.pending = true;
        shadow.waiting = found;
        memcpy(shadow.before, address, bytes);
        return;
    }
    report(found, false);
}

/* --- a thread that waits for a value --- */

/* Whether the thread has only looked at a few words for a while. */
void look_at_waiting(const void *address, unsigned how, Place place)
{
    end_if_stopped();
    if (on_own_stack(address)) {
        shadow.budget = 1;
        return;
    }
    if (!shadow.watched) {
        shadow.watched = Shadow::kWatch;
        shadow.addresses = 0;
        shadow.busy = false;
        shadow.plain = false;
    }
    shadow.busy |= (how & kWrites) != 0;
    shadow.plain |= !(how & kVolatile);
    unsigned i = 0;
    while (i < shadow.addresses && shadow.seen_addresses[i] != address)
        i++;
    if (i == Shadow::kAddresses)
        shadow.busy = true;
    else if (i == shadow.addresses)
        shadow.seen_addresses[shadow.addresses++] = address;
    shadow.budget = 1;
    if (--shadow.watched)
        return;
    shadow.budget = Shadow::kPause;
    Shadow::Spin &spin = shadow.spins[check_thread];
    if (shadow.busy || spin.progress != shadow.progress) {
        spin = {shadow.progress, 0};
        if (shadow.busy)
            return;
    }
    if (!shadow.plain)
        shadow.budget = Shadow::kWatch;
    give_way();
    /* A loop over a small table looks alike, so a plain one gets more time. */
    if (spin.progress == shadow.progress && ++spin.rounds > (shadow.plain ? 1000 : 8)) {
        Finding found = finding(kWait, kUnknown, place, address, how & kBytes, false);
        report(found, true);
    }
}

/* --- accesses --- */

struct Target {
    Cell *cell; /* NULL: nothing to check */
    Space space;
    uint64_t since; /* older accesses do not matter */
    uint64_t blank; /* what has no write since this time has no value; 0: unknown */
};

/* The address that was meant where an unsigned index of 32 bits has gone below 0. */
const char *unwrapped(const char *p, unsigned bytes)
{
    for (const Operand &o : shadow.operands)
        for (const size_t item : {o.item, (size_t)bytes}) {
            const uintptr_t meant = (uintptr_t)p - (item << 32), low = (uintptr_t)o.low;
            if (item && meant < low && low - meant <= kApart / 2)
                return (const char *)meant;
        }
    return p;
}

[[gnu::noinline]] void wrong_address(const void *address, unsigned bytes, bool write,
                                     Place place)
{
    const char *p = unwrapped((const char *)address, bytes);
    Kind kind = kOutOfBounds;
    if ((uintptr_t)p < 65536 || (uintptr_t)p > UINTPTR_MAX - 65536)
        kind = kNullPointer;
    else if (check_is_elsewhere(p))
        kind = kWrongMemory;
    Finding found = finding(kind, kUnknown, place, p, bytes, write);
    found.more = describe_place(p, bytes);
    if (p != address)
        found.more += ", \"wrapped\": 1";
    report(found, true);
}

/* The operand whose addresses it is among, or near. */
const Operand *operand_at(const char *p)
{
    auto holds = [p](const Operand &o) {
        return (size_t)(p - o.low) < (size_t)(o.high - o.low) ||
               (o.moved &&
                (size_t)(p - o.low) + kApart / 2 < (size_t)(o.high - o.low) + kApart);
    };
    if (shadow.latest < shadow.operands.size() && holds(shadow.operands[shadow.latest]))
        return &shadow.operands[shadow.latest];
    for (size_t i = 0; i < shadow.operands.size(); i++)
        if (holds(shadow.operands[i])) {
            shadow.latest = i;
            return &shadow.operands[i];
        }
    return nullptr;
}

CheckedVariable *variable_at(CheckedModule &module, const char *p)
{
    auto &list = module.variables;
    auto next = std::upper_bound(
        list.begin(), list.end(), p,
        [](const char *at, const CheckedVariable &v) { return at < v.low; });
    return next == list.begin() ? nullptr : &*std::prev(next);
}

Target target_in_module(const char *p, size_t bytes, bool write, bool *wrong)
{
    CheckedModule &module = *checked.launch->module;
    CheckedVariable *variable = variable_at(module, p);
    if (!variable || p >= variable->high)
        return {}; /* a constant of the compiler's */
    *wrong = p + bytes > variable->high ||
             variable->holder >= (write ? kHeldConstant : kHeldByHost);
    Cell *cell = &module.cells[(size_t)(p - module.variables[0].low) / 4];
    if (variable->holder == kHeldByBlock)
        return {cell, kShared, key(shadow.block), key(shadow.block)};
    return {cell, kGlobal, key(shadow.launch), 0};
}

bool is_of_others(const char *p)
{
    for (const auto &other : checked.launch->others)
        if (p >= other.first && p < other.second)
            return true;
    return false;
}

inline Target target(const void *address, unsigned bytes, bool write, Place place)
{
    const char *p = (const char *)address;
    bool wrong = false;
    Target found = {};
    if (const Operand *operand = operand_at(p)) {
        if (p >= operand->low && p + bytes <= operand->high)
            return {shadow.cells + (size_t)(p - operand->moved - shadow.seen) / 4,
                    kGlobal, key(shadow.launch), key(operand->blank)};
        wrong = true;
    } else if ((size_t)(p - checked.shared) < checked.shared_bytes) {
        const size_t at = (size_t)(p - checked.shared);
        wrong = at + bytes > checked.shared_bytes;
        found = {&shadow.dynamic[at / 4], kShared, key(shadow.block),
                 key(shadow.block)};
    } else if (on_own_stack(p)) {
        return {nullptr, kLocal, 0, 0};
    } else if (p >= checked.launch->module->base && p < checked.launch->module->end) {
        found = target_in_module(p, bytes, write, &wrong);
    } else {
        wrong = !is_of_others(p);
    }
    if (wrong)
        wrong_address(address, bytes, write, place);
    return found;
}

bool is_poison(const void *address, unsigned bytes)
{
    const unsigned char *p = (const unsigned char *)address;
    for (unsigned i = 0; i < bytes; i++)
        if (p[i] != 0xFF)
            return false;
    return true;
}

void word(Cell &cell, const Target &to, unsigned mask, const void *address,
          unsigned bytes, bool write, Sort sort, unsigned at, Place place)
{
    const uint64_t written = cell.written;
    if (is_atomic(sort) && cell.read && thread_of(cell.read) == check_thread &&
        sort_of(cell.read) == kOne && cell.read >= key(shadow.block))
        cell.read = 0; /* part of the same change: the guess of atomicCAS's loop */
    const uint64_t read = cell.read;
    const uint64_t mine = pack(shadow.now, write ? (unsigned)sort : (unsigned)kOne,
                               mask, check_thread, at);
    if (written >= to.since && conflicts(written, mask, sort, to.space))
        race(written, true, to.space, place, address, bytes, write, sort);
    if (write) {
        if (read >= to.since && conflicts_with_reads(read, mask, sort))
            race(read, false, to.space, place, address, bytes, true, sort);
        /* A thread's atomic leaves its plain write, which others race with. */
        if (!is_atomic(sort) || sort_of(written) != kPlain || written < to.since ||
            thread_of(written) != check_thread || bytes_of(written) != mask ||
            time_of(written) < shadow.floor)
            cell.written = mine;
        if (!is_atomic(sort) || written >= to.blank)
            return;
    } else if (sort == kPlain) {
        cell.read = read < to.since ? mine : joined(read, mine);
    } else if (to.space == kShared &&
               (read < key(shadow.floor) || thread_of(read) == check_thread)) {
        cell.read = pack(shadow.now, kOne, 0, check_thread, at);
    }
    if (to.blank && written < to.blank &&
        (to.space == kShared || is_poison(address, bytes))) {
        Finding &found = shadow.deferred[to.space];
        if (found.kind == kUninitialized)
            return;
        found = finding(kUninitialized, to.space, place, address, bytes, write);
        found.more = describe_place(address, bytes);
    }
}

void words(const void *address, unsigned bytes, bool write, Sort sort, unsigned at,
           Place place)
{
    const Target to = target(address, bytes, write, place);
    if (!to.cell)
        return;
    if (count_runs)
        count_access(to.space, address, bytes, write, is_atomic(sort), place);
    if (price_runs && to.space == kGlobal)
        price_touch(to.cell, bytes, write);
    if (to.space != kLocal && write)
        shadow.progress++;
    const unsigned first = (unsigned)((uintptr_t)address & 3);
    if (!first && bytes == 4) {
        word(*to.cell, to, 15, address, 4, write, sort, at, place);
        return;
    }
    Cell *cell = to.cell;
    for (unsigned done = 0, low = first; done < bytes; low = 0) {
        const unsigned some = std::min(4 - low, bytes - done);
        word(*cell++, to, ((1u << some) - 1) << low, (const char *)address + done, some,
             write, sort, at, place);
        done += some;
    }
}

void access(const void *address, unsigned how, const void *from)
{
    if (!check_runs)
        return;
    if (shadow.pending)
        settle();
    if (!--shadow.budget)
        look_at_waiting(address, how, place_of(from));
    const Sort sort = how & kVolatile ? kByVolatile : kPlain;
    words(address, how & kBytes, how & kWrites, sort, site(from), place_of(from));
    if (sort == kByVolatile &&
        (shadow.fences || shadow.fenced || !shadow.syncs.empty()))
        check_synchronizes(address, how & kWrites);
}

void access_range(const void *address, size_t bytes, unsigned how, const void *from)
{
    const char *p = (const char *)address;
    while (bytes && check_runs) {
        const size_t some = std::min<size_t>(bytes, 16);
        access(p, (unsigned)some | how, from);
        p += some;
        bytes -= some;
    }
}

void access_atomic(const void *address, unsigned how, int line)
{
    if (!check_runs)
        return;
    const unsigned bytes = how & kBytes;
    if (shadow.pending)
        settle();
    if (!--shadow.budget)
        look_at_waiting(address, bytes | kVolatile, {0, line});
    const uint64_t progress = shadow.progress; /* made by a change alone */
    words(address, bytes, true, how & kBlockScope ? kBlockAtomic : kAtomic,
          line < (int)kSites ? (unsigned)line : 0, {0, line});
    shadow.progress = progress;
    if (shadow.guess.thread == check_thread && shadow.guess.address == address)
        shadow.guess.thread = kNone;
    check_synchronizes(address, true);
}

void note_change()
{
    shadow.progress++;
}

void note_fence(bool of_block)
{
    if (!check_runs)
        return;
    const Shadow::Fence now = {check_time(), shadow.floor};
    shadow.fence[0][check_thread] = now;
    shadow.fences = true;
    if (of_block)
        return;
    shadow.fence[1][check_thread] = now;
    shadow.wide_fences = true;
}

void note_line(int line)
{
    shadow.lines[check_thread] = line;
}

void index(int line, long long value, const char *array)
{
    if (!check_runs)
        return;
    Finding found = finding(kOutOfBounds, kUnknown, {0, line}, nullptr, 0, false);
    found.more =
        format("\"where\": \"array\", \"index\": %lld, \"name\": \"%s\"", value, array);
    report(found, true);
}

void misaligned(int line, const void *address, unsigned alignment, const char *type)
{
    if (!check_runs || (uintptr_t)address < 65536)
        return;
    Finding found = finding(kMisaligned, kUnknown, {0, line}, address, 1, false);
    found.more = describe_place(address, 1) +
                 format(", \"alignment\": %u, \"type\": \"%s\"", alignment, type);
    report(found, true);
}

} /* namespace */

void check_settle()
{
    if (shadow.pending)
        settle();
}

Checks check_services()
{
    return {access,     access_range, access_atomic, note_change,
            note_fence, note_line,    index,         misaligned};
}

} /* namespace sim */
