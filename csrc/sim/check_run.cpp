/* The checks of a launch: its blocks, barriers, fences, and words that threads
 * synchronize by. */
#include <algorithm>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "check_shadow.h"
#include "count.h"
#include "price.h"

namespace sim {

/* Shadow memory of a launch with more bytes of tensors than this is given back at its
 * end: it takes four times as much. */
static const size_t kLarge = (size_t)256 << 20;

uint64_t check_time()
{
    return ++shadow.now;
}

size_t check_block_at(uint64_t time)
{
    const auto &blocks = shadow.blocks;
    return (size_t)(std::upper_bound(blocks.begin(), blocks.end(), time) -
                    blocks.begin()) -
           1;
}

/* --- shadow memory --- */

static bool map_cells()
{
    State &all = state();
    if (shadow.cells && shadow.seen == all.seen)
        return true;
    shadow.seen = all.seen;
    shadow.span = all.stride * all.devices.size();
    const size_t bytes = shadow.span / 4 * sizeof(Cell);
    void *cells = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED)
        return false;
    madvise(cells, bytes, MADV_HUGEPAGE);
    madvise(cells, bytes, MADV_DONTDUMP);
    shadow.cells = (Cell *)cells;
    return true;
}

static void drop_cells(const char *seen, size_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t from = (uintptr_t)(shadow.cells + (size_t)(seen - shadow.seen) / 4);
    uintptr_t to = from + bytes / 4 * sizeof(Cell);
    from = (from + page - 1) & ~(page - 1);
    to &= ~(page - 1);
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

void check_forget(char *base, size_t bytes)
{
    if (shadow.cells)
        drop_cells(seen_from(base), bytes);
}

/* After the last moment: all that was known is forgotten. */
static void begin_again(CheckedModule &module)
{
    madvise(shadow.cells, shadow.span / 4 * sizeof(Cell), MADV_DONTNEED);
    std::fill(module.cells.begin(), module.cells.end(), Cell{});
    std::fill(shadow.dynamic.begin(), shadow.dynamic.end(), Cell{});
    shadow.now = 1;
    shadow.wrapped = true;
}

/* --- the tensors' own addresses --- */

/* Maps the operand's memory once more, far from all other memory: so that what is past
 * its end is not another tensor. Those with the same elements share it. */
static void move_apart(std::vector<Operand> &operands, size_t number)
{
    Operand &operand = operands[number];
    for (size_t i = 0; i < number; i++)
        if (operands[i].low - operands[i].moved == operand.low &&
            operands[i].high - operands[i].moved == operand.high) {
            operand.moved = operands[i].moved;
            return;
        }
    Device *device = device_of(operand.data);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *first = (char *)((uintptr_t)operand.low & ~(page - 1));
    const size_t bytes = ((size_t)(operand.high - first) + page - 1) & ~(page - 1);
    if (!device || !bytes)
        return;
    char *room = (char *)mmap(nullptr, bytes + 2 * kApart, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == (char *)MAP_FAILED)
        return;
    if (!map_again(*device, first, bytes, room + kApart)) {
        munmap(room, bytes + 2 * kApart);
        return;
    }
    shadow.rooms.push_back({room, bytes + 2 * kApart});
    operand.moved = room + kApart - first;
}

static Block *block_of(const char *held)
{
    Device *device = device_of(held);
    if (!device)
        return nullptr;
    auto taken = entry_before(device->taken, held);
    if (taken != device->taken.end() &&
        held < taken->second->base + taken->second->rounded)
        return taken->second.get();
    auto segment = entry_before(device->segments, held);
    if (segment == device->segments.end())
        return nullptr;
    if (!segment->second.carved)
        return segment->second.whole.get();
    /* One past the end of a tensor, where no other begins. */
    return taken != device->taken.end() &&
                   held == taken->second->base + taken->second->rounded
               ? taken->second.get()
               : nullptr;
}

void check_add_block(CheckedLaunch &launch, int argument, void *value, int field)
{
    char *data;
    memcpy(&data, value, sizeof data);
    const Block *block = data ? block_of(data) : nullptr;
    if (block) {
        /* To the end of a word: an atomic of a byte changes the word that has it, and
         * of the allocator's memory nothing else is in it. */
        const size_t whole = (block->bytes + 3) & ~(size_t)3;
        char *low = seen_from(block->base);
        Operand made = {argument, value, data, low, low + whole, 0, 1, 0, field};
        for (Operand &other : launch.operands) {
            if (field < 0 || other.field < 0 || other.high != seen_from(data))
                continue;
            /* The end of a range that is in the struct, or another tensor's begin. */
            if (block->base == data)
                other.stays = made.stays = true;
            else
                made.low = other.low, made.high = other.high;
        }
        launch.operands.push_back(made);
    } else if (const char *end = data ? pinned_end(data) : nullptr) {
        launch.others.push_back({data, end});
    }
}

void check_describe(const char *name, Body &body, size_t bytes,
                    const std::vector<Slot> &slots)
{
    const char *own = (const char *)&body;
    body.checks.reset(
        new CheckedLaunch{name, check_library, check_mode(), {}, {{own, own + bytes}}});
    int number = 0;
    for (const Slot &slot : slots)
        check_add_block(*body.checks, number++, slot.at, -1);
}

static void move_operands()
{
    std::vector<Operand> &operands = shadow.operands;
    for (size_t i = 0; i < operands.size(); i++) {
        Operand &operand = operands[i];
        if (!operand.stays)
            move_apart(operands, i);
        operand.low += operand.moved;
        operand.high += operand.moved;
        char *value = seen_from(operand.data) + operand.moved;
        memcpy(operand.value, &value, sizeof value);
    }
}

static void leave_rooms()
{
    for (auto &room : shadow.rooms)
        munmap(room.first, room.second);
    shadow.rooms.clear();
}

/* --- launches and blocks --- */

void check_guess()
{
    const Finding found = shadow.guess;
    shadow.guess.thread = kNone;
    if (found.thread != kNone)
        report(found, false);
}

void check_uninitialized(Space space)
{
    const Finding found = shadow.deferred[space];
    shadow.deferred[space] = {};
    if (found.kind == kUninitialized)
        report(found, false);
}

void check_begin(const CheckedLaunch &launch, dim3 grid, dim3 block, char *bytes,
                 size_t shared)
{
    if (!launch.mode || !map_cells())
        return;
    checked = {&launch, grid, block, bytes, shared};
    if (shadow.dynamic.size() < shared / 4 + 4)
        shadow.dynamic.resize(shared / 4 + 4);
    /* Blocks and barriers of one launch never come near. */
    if (shadow.now > kLastTime / 2)
        begin_again(*launch.module);
    shadow.operands = launch.operands;
    for (Operand &operand : shadow.operands) {
        const Block *memory = block_of(operand.data);
        operand.blank = memory && !memory->filled && !shadow.wrapped ? memory->born : 0;
    }
    move_operands();
    shadow.latest = 0;
    shadow.launch = check_time();
    shadow.blocks.clear();
    shadow.syncs.clear();
    shadow.pending = false;
    shadow.guess.thread = kNone;
    for (Finding &deferred : shadow.deferred)
        deferred = {};
    shadow.budget = Shadow::kPause;
    shadow.watched = 0;
    if (launch.counted)
        price_begin(launch.counted.get());
    check_runs = true;
}

void check_end()
{
    if (!check_runs)
        return;
    check_settle();
    check_guess();
    check_uninitialized(kShared);
    check_uninitialized(kGlobal);
    check_runs = false;
    if (count_runs)
        count_settle();
    price_end();
    shadow.pending = false;
    check_time();
    leave_rooms();
    size_t sum = 0;
    for (const Operand &operand : shadow.operands)
        sum += (size_t)(operand.high - operand.low);
    for (const Operand &operand : shadow.operands) {
        const size_t bytes = (size_t)(operand.high - operand.low);
        if (sum < kLarge)
            break;
        drop_cells(operand.low - operand.moved, bytes);
        if (Block *memory = block_of(operand.data))
            memory->filled = true;
    }
}

void check_block()
{
    check_settle();
    count_block();
    check_guess();
    check_uninitialized(kShared);
    if (shadow.now > kLastTime - 4)
        begin_again(*checked.launch->module), shadow.blocks.clear(),
            shadow.launch = check_time();
    shadow.block = shadow.floor = check_time();
    shadow.blocks.push_back(shadow.block);
    shadow.fenced = shadow.wide_fenced = 0;
    shadow.fences = shadow.wide_fences = false;
    shadow.acquired.clear();
    shadow.block_acquired.clear();
    shadow.known.clear();
    shadow.phases.clear();
    shadow.at_barrier = false;
    const unsigned n = checked.block.x * checked.block.y * checked.block.z;
    memset(shadow.lines, 0, n * sizeof *shadow.lines);
    memset(shadow.spins, 0, n * sizeof *shadow.spins);
}

/* --- barriers and warps --- */

void check_arrives()
{
    check_settle();
    const int line = shadow.lines[check_thread];
    if (!shadow.at_barrier) {
        shadow.at_barrier = true;
        shadow.barrier_line = line;
        shadow.barrier_thread = check_thread;
    } else if (line != shadow.barrier_line && line && shadow.barrier_line) {
        Finding found;
        found.kind = kBarrier;
        found.thread = check_thread;
        found.place.line = line;
        found.other.line = shadow.barrier_line;
        found.other_thread = (long)shadow.barrier_thread;
        found.more = "\"where\": \"lines\"";
        report(found, false);
        shadow.barrier_line = line; /* of a warning, one */
    }
}

void check_barrier()
{
    end_if_stopped();
    if (count_runs)
        count_settle();
    shadow.at_barrier = false;
    check_guess();
    check_uninitialized(kShared);
    shadow.floor = check_time();
    if (shadow.fences)
        shadow.fenced = shadow.floor;
    if (shadow.wide_fences)
        shadow.wide_fenced = shadow.floor;
    shadow.fences = shadow.wide_fences = false;
    for (auto &each : shadow.acquired)
        for (Sync::Link link : each.second)
            shadow.block_acquired.push_back(link);
    shadow.acquired.clear();
}

void check_warp(unsigned first, unsigned mask)
{
    uint64_t &met = shadow.met[first / 32];
    uint64_t (*lanes)[32] = shadow.lanes + first;
    if (met < shadow.floor)
        for (int i = 0; i < 32; i++)
            std::fill(lanes[i], lanes[i] + 32, shadow.floor);
    met = check_time();
    uint64_t joined[32] = {};
    for (unsigned i = 0; i < 32; i++)
        for (int j = 0; mask >> i & 1 && j < 32; j++)
            joined[j] = std::max(joined[j], mask >> j & 1 ? met : lanes[i][j]);
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1)
            memcpy(lanes[i], joined, sizeof joined);
    check_lanes_learn(first, mask);
}

/* --- releases --- */

/* Adds the accesses that others know of who see the thread's next change of a word, by
 * its fences. */
static void add_released(std::vector<Known> &known, bool wide)
{
    const unsigned me = check_thread;
    const Shadow::Fence fence = shadow.fence[wide][me];
    const bool fenced = fence.at >= shadow.block;
    uint64_t whole = wide ? shadow.wide_fenced : shadow.fenced;
    if (fenced)
        whole = std::max(whole, fence.floor);
    if (whole > shadow.block)
        known.push_back({shadow.block, whole, 0, -1, wide});
    if (!fenced)
        return;
    known.push_back({shadow.block, fence.at, 0, (int)me, wide});
    if (shadow.met[me / 32] >= shadow.floor)
        for (unsigned i = 0; i < 32; i++)
            known.push_back(
                {shadow.block, shadow.lanes[me][i], 0, (int)(me / 32 * 32 + i), wide});
}

static std::vector<Known> released()
{
    std::vector<Known> known;
    add_released(known, true);
    if (shadow.fence[0][check_thread].at != shadow.fence[1][check_thread].at ||
        shadow.fenced != shadow.wide_fenced)
        add_released(known, false);
    return known;
}

void check_synchronizes(const void *address, bool releases)
{
    const uintptr_t word = (uintptr_t)address & ~(uintptr_t)3;
    const unsigned me = check_thread;
    auto found = shadow.syncs.find(word);
    if (found != shadow.syncs.end()) {
        auto &mine = shadow.acquired[me];
        if (mine.empty() || mine.back().sync != &found->second)
            mine.push_back({&found->second, 0, 0});
        mine.back().acquired = shadow.now + 1;
    }
    if (!releases)
        return;
    std::vector<Known> known = released();
    if (known.empty())
        return;
    Sync &sync = shadow.syncs[word];
    const uint64_t now = check_time();
    std::vector<Known> &own = sync.known[shadow.blocks.size() - 1];
    for (Known &each : known) {
        each.released = now;
        own.push_back(each);
    }
    auto add = [&sync](const std::vector<Sync::Link> &links) {
        for (const Sync::Link &link : links)
            if (link.sync != &sync)
                sync.links.push_back(link);
    };
    add(shadow.block_acquired);
    add(shadow.acquired[me]);
}

} /* namespace sim */
