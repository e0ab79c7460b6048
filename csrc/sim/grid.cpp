/* Runs grids: their blocks one after another, those of the program's kernels that wait
 * for others in turns, and those of the library's on all threads that the CPU's operations
 * may use. */
#include "check.h"
#include "core.h"
#include "runner.h"
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>
#include <vector>

namespace sim {

static const unsigned char kCanary = 0xC9;
enum { kCanaryBytes = 64 };
/* Threads of the host that run blocks of a grid at most. */
enum { kRunners = 64 };
/* Threads of a grid from which on it is worth waking them, and of a share. */
enum { kWorthWaking = 1024, kShare = 1024 };
/* Bytes that a runner reserves for the STATIC_SHARED arrays of all kernels. A page takes
 * memory when a kernel writes to it. */
static const size_t kArrays = 8 << 20;
static const uint64_t kNone = UINT64_MAX;

/* The running grid; the process runs one at a time. */
static struct Grid {
    const Launch *launch;
    Body *body;
    unsigned turn;              /* counts grids */
    uint64_t order;             /* of blocks: a seed */
    uint64_t blocks, share;     /* all; how many a runner claims at once */
    std::atomic<uint64_t> next; /* that no runner has claimed */
    /* The block that each runner has come to: 0 before it claims one, kNone if it runs
     * none. */
    std::atomic<uint64_t> at[kRunners];
    std::atomic<uint64_t>
        failed; /* the first block with an error, which is `outcome` */
    Outcome *outcome;
} grid;

bool blocks_overlap;

/* --- the order of blocks --- */

/* Block `number` of the grid. Seed 0: x first. Each other seed has an order of its own,
 * in which one comes before all that are kWindow after it: step by step round a ring of
 * so many. */
enum { kWindow = 64 };
static uint3 block_at(const dim3 extent, uint64_t seed, uint64_t number)
{
    if (seed) {
        const uint64_t first = number - number % kWindow,
                       n = std::min<uint64_t>(grid.blocks - first, kWindow);
        uint64_t step = 1 + (seed >> 32) % n;
        while (std::gcd(step, n) != 1)
            step = step % n + 1;
        number = first + (seed % n + (number - first) * step) % n;
    }
    const uint64_t plane = (uint64_t)extent.x * extent.y;
    return {(unsigned)(number % extent.x), (unsigned)(number % plane / extent.x),
            (unsigned)(number / plane)};
}

/* Claims blocks *begin to *end - 1: those before them have been claimed, so the blocks that
 * a block may wait for have ended or are running. */
static bool claim(uint64_t *begin, uint64_t *end)
{
    *begin = grid.next.fetch_add(grid.share);
    *end = std::min(grid.blocks, *begin + grid.share);
    return *begin < grid.blocks && *begin < grid.failed;
}

static void come_to(Runner &r, uint64_t number)
{
    r.block = number;
    grid.at[r.number] = number;
    r.indices.block = block_at(grid.launch->grid, grid.order, number);
    if (check_runs) {
        check_thread = 0;
        check_block();
    }
}

void await_blocks_before(const void *changed)
{
    const Runner &r = here();
    const auto is_own = [changed](const void *from, size_t bytes) {
        return (size_t)((const char *)changed - (const char *)from) < bytes;
    };
    if (is_own(r.indices.arrays, kArrays) || is_own(r.shared, r.launch->shared))
        return;
    for (const auto &other : grid.at)
        for (int spins = 0; other < r.block; spins++)
            if (spins > 1000)
                sched_yield();
}

/* --- shared memory --- */

size_t array_offset(size_t bytes)
{
    static std::atomic<size_t> used;
    const size_t offset = used.fetch_add((bytes + 63) / 64 * 64);
    if (offset + bytes > kArrays)
        abort(); /* the kernels of the library have more: enlarge it */
    return offset;
}

static void *make_shared(size_t bytes)
{
    const size_t extra = DT_ASAN ? 0 : kCanaryBytes;
    void *memory = nullptr;
    if (posix_memalign(&memory, 32, bytes + extra)) /* as DYNAMIC_SHARED says */
        return nullptr;
    memset(memory, 0xFF, bytes);
    memset((char *)memory + bytes, kCanary, extra);
    return memory;
}

static void check_shared(Runner &r)
{
#if !DT_ASAN
    const uint3 block = r.indices.block;
    const unsigned char *end = (unsigned char *)r.shared + r.launch->shared;
    for (int i = 0; r.shared && i < kCanaryBytes; i++)
        if (end[i] != kCanary)
            fail_block(
                r, cudaErrorIllegalAddress,
                "kernel %s, block (%u, %u, %u) wrote past the end of its %zu bytes of "
                "dynamic shared memory",
                r.launch->name, block.x, block.y, block.z, r.launch->shared);
#else
    (void)r;
#endif
}

/* --- blocks that wait for others --- */

/* Its part of a runner. */
struct Parked {
    uint3 index;
    std::vector<Fiber *> fibers;
    std::vector<unsigned char> waiting;
    unsigned current, unfinished, arrived;
    bool backwards;
    void *shared;
};

/* How many blocks are under way at most, as many as a GPU might hold. A block may wait for
 * any before it: those are then under way too, in whatever order. */
enum { kResident = kWindow };

static Parked park(Runner &r)
{
    const unsigned n = r.threads;
    Parked block = {r.indices.block,
                    {r.fibers, r.fibers + n},
                    {r.waiting, r.waiting + n},
                    r.current,
                    r.unfinished,
                    r.arrived,
                    r.backwards,
                    r.shared};
    memset(r.fibers, 0, n * sizeof *r.fibers);
    r.shared = nullptr;
    return block;
}

static void unpark(Runner &r, const Parked &block)
{
    r.indices.block = block.index;
    std::copy(block.fibers.begin(), block.fibers.end(), r.fibers);
    std::copy(block.waiting.begin(), block.waiting.end(), r.waiting);
    r.current = block.current;
    r.unfinished = block.unfinished;
    r.arrived = block.arrived;
    r.backwards = block.backwards;
    r.shared = block.shared;
}

/* Frees the stacks and shared memory of a block that has ended. */
static void drop_block(Runner &r)
{
    drop_fibers(r);
    free(r.shared);
    r.shared = nullptr;
}

static void run_turn(Runner &r)
{
    run_block(r);
    if (!r.parked)
        check_shared(r);
}

/* Gives each block that waits a turn, in the order in which they began. */
static void run_parked(Runner &r, std::deque<Parked> &parked)
{
    drop_block(r);
    for (size_t left = parked.size(); left && !r.outcome.error; left--) {
        unpark(r, parked.front());
        parked.pop_front();
        run_turn(r);
        if (r.parked)
            parked.push_back(park(r));
        else
            drop_block(r);
    }
}

/* --- running blocks --- */

void run_solo_blocks(Runner &r)
{
    uint64_t number, end;
    while (claim(&number, &end))
        for (; number < end; number++) {
            come_to(r, number);
            r.body->run();
        }
}

/* Whether there is memory for stacks and shared memory. */
static bool is_ready(Runner &r)
{
    if (r.launch->shared && !r.shared)
        r.shared = make_shared(r.launch->shared);
    if ((!r.launch->shared || r.shared) &&
        (r.solo ? make_solo_fiber(r) : make_fibers(r)))
        return true;
    fail_block(r, cudaErrorLaunchOutOfResources,
               "kernel %s: no host memory for the stacks of %u threads and their "
               "shared memory",
               r.launch->name, r.threads);
    return false;
}

static void run_blocks(Runner &r)
{
    std::deque<Parked> parked;
    uint64_t number, end;
    while (!r.outcome.error && claim(&number, &end))
        for (; number < end && !r.outcome.error; number++) {
            while (parked.size() >= kResident && !r.outcome.error)
                run_parked(r, parked);
            /* A block that has parked keeps its fibers. */
            if (r.outcome.error || (!r.fibers[0] && !is_ready(r)))
                break;
            come_to(r, number);
            /* Alternate the order of threads, so that a missing barrier shows whatever
             * order would hide it. */
            r.backwards = (grid.turn + number) & 1;
            if (r.shared)
                memset(r.shared, 0xFF, r.launch->shared);
            begin_block(r);
            run_turn(r);
            if (r.parked)
                parked.push_back(park(r));
        }
    while (!parked.empty() && !r.outcome.error)
        run_parked(r, parked);
    for (const Parked &block : parked) { /* of a grid that was abandoned */
        drop_block(r);
        unpark(r, block);
    }
    if (!parked.empty())
        drop_block(r);
}

/* NULL: no memory. */
static Runner *runner_by(int number)
{
    static Runner *all[kRunners] = {&first_runner};
    Runner *&r = all[number];
    if (!r)
        r = new Runner();
    r->number = number;
    if (r->indices.arrays)
        return r;
    r->indices.arrays = map_memory(kArrays, PROT_READ | PROT_WRITE);
    return r->indices.arrays ? r : nullptr;
}

static bool begin_launch(Runner &r, const Launch &launch)
{
    const dim3 b = launch.block;
    r.launch = &launch;
    r.body = grid.body;
    r.outcome = {};
    r.block = 0;
    r.threads = b.x * b.y * b.z;
    r.solo = !launch.barriers;
    r.shared = nullptr;
    if (!pthread_equal(r.owner, pthread_self()))
        restart_fibers(r);
    r.owner = pthread_self();
    r.indices.grid_dim = launch.grid;
    r.indices.block_dim = launch.block;
    arm_faults();
    return is_ready(r);
}

/* Claims and runs blocks. */
static void run_as(Runner &r)
{
    const Launch &launch = *grid.launch;
    run_by(&r);
    if (begin_launch(r, launch)) {
        if (r.body->checks)
            check_begin(*r.body->checks, launch.grid, launch.block, (char *)r.shared,
                        launch.shared);
        if (r.solo) {
            enter_solo(r);
            check_shared(r);
        } else {
            run_blocks(r);
        }
        check_end();
    }
    free(r.shared);
    r.shared = nullptr;
    run_by(nullptr);
}

static void record_error(uint64_t block, const Outcome &error)
{
    static std::mutex lock;
    std::lock_guard<std::mutex> hold(lock);
    if (block >= grid.failed)
        return;
    grid.failed = block;
    *grid.outcome = error;
}

/* One of the tasks of a grid, for a thread of the host. */
static void run_share(void *, int64_t number, int64_t)
{
    grid.at[number] = 0;
    if (grid.next < grid.blocks) {
        Runner *r = runner_by((int)number);
        if (r)
            run_as(*r);
        else if (number == 0)
            record_error(0,
                         {cudaErrorLaunchOutOfResources, "no host memory for arrays"});
        if (r && r->outcome.error)
            record_error(r->block, r->outcome);
    }
    grid.at[number] = kNone;
}

/* Kernels of the program may count on one block at a time, and so do checks. */
static bool is_shared(const Launch &launch, const Body &body, uint64_t threads)
{
    return !SIM_ONE_BLOCK && core.cpu_parallel && !launch.code.begin && !body.checks &&
           !check_library && grid.blocks > 1 && threads >= kWorthWaking;
}

void run_grid(const Launch &launch, Body &body, Outcome *outcome)
{
    const dim3 g = launch.grid, b = launch.block;
    const uint64_t each = (uint64_t)b.x * b.y * b.z;
    grid.launch = &launch;
    grid.body = &body;
    grid.turn++;
    /* A GPU promises no order of blocks. */
    grid.order = state().options.schedule == kRandom ? roll() : 0;
    grid.blocks = (uint64_t)g.x * g.y * g.z;
    grid.next = 0;
    grid.failed = kNone;
    grid.outcome = outcome;
    *outcome = {};
    for (auto &at : grid.at)
        at = kNone;
    turns_begin(launch);
    blocks_overlap = is_shared(launch, body, grid.blocks * each);
    if (blocks_overlap) {
        const uint64_t runners = std::min<uint64_t>(kRunners, grid.blocks);
        grid.share = std::clamp<uint64_t>(kShare / each, 1, grid.blocks / 8 + 1);
        core.cpu_parallel(run_share, nullptr, (int64_t)runners);
    } else {
        grid.share = grid.blocks;
        run_share(nullptr, 0, 1);
    }
    turns_end();
}

} /* namespace sim */
