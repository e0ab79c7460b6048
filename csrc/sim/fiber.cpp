/* Runs grids. Kernels run on their own stacks, so that they can be abandoned
 * halfway: a kernel without barriers on one fiber that loops over all threads, a
 * kernel with barriers on one fiber per thread of a block. A fiber that waits
 * switches to the next. */
#include "check.h"
#include "internal.h"
#include "context.h"
#include "reductions.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <algorithm>
#include <deque>
#include <vector>
#if DT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace sim {

enum { kGuard = 16384 };
static const size_t kThreadStack = DT_ASAN ? 256 << 10 : 64 << 10;
static const size_t kSoloStack = 1 << 20;
static const unsigned char kCanary = 0xC9;
enum { kCanaryBytes = 64 };

enum Waiting : unsigned char {
    kIdle,
    kReady,
    kAtBarrier,
    kAtMeeting,
    kAtWarp,
    kAtActive,
    kAtChange
};

struct Fiber {
    Context context;
    char *stack = nullptr;
    size_t bytes = 0;
    bool begun = false; /* its context is inside the loop of fiber_main */
    void *asan = nullptr;
    uint3 index;
    /* While it waits for its warp: the operation, its partners, and its value. */
    Exchange what;
    unsigned mask, source;
    uint64_t value;
};

/* The running grid; the process runs one at a time. */
static struct Grid {
    const Launch *launch;
    Body *body;
    Outcome *outcome;
    bool running, solo;
    unsigned threads; /* per block */
    unsigned current; /* index in the block */
    unsigned unfinished;
    bool backwards;   /* run threads from the last to the first */
    unsigned arrived; /* at the barrier */
    unsigned met;     /* for a reduction */
    uint64_t order;   /* of blocks: a seed */
    void *shared;
    unsigned turns; /* since a thread last waited or finished */
    bool parked;    /* the block waits for other blocks */
    Context host;
    const void *host_stack;
    size_t host_bytes;
    void *host_asan;
} grid;

static Fiber solo;
static Fiber *fibers[kMaxThreads];
static unsigned char waiting[kMaxThreads];

bool in_kernel()
{
    return grid.running;
}
const char *running_kernel()
{
    return grid.launch->name;
}
void *dynamic_shared_memory()
{
    return grid.shared;
}

static bool make_stack(Fiber *fiber, size_t bytes)
{
    if (fiber->stack)
        return true;
    char *base = (char *)mmap(nullptr, bytes + kGuard, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == (char *)MAP_FAILED)
        return false;
    if (mprotect(base, kGuard, PROT_NONE)) {
        munmap(base, bytes + kGuard);
        return false;
    }
    fiber->stack = base + kGuard;
    fiber->bytes = bytes;
    return true;
}

/* --- switching --- */

static void arrive(Fiber *me)
{
#if DT_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(me ? me->asan : nullptr, &stack, &bytes);
    if (!grid.host_stack) { /* the first fiber was started by the host */
        grid.host_stack = stack;
        grid.host_bytes = bytes;
    }
#else
    (void)me;
#endif
}

static void to_fiber(Context *from, void **from_asan, Fiber *to)
{
#if DT_ASAN
    __sanitizer_start_switch_fiber(from_asan, to->stack, to->bytes);
#else
    (void)from_asan;
#endif
    context_switch(from, &to->context);
}

static void to_host(Fiber *from, bool for_good)
{
    grid.running = false;
#if DT_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from->asan, grid.host_stack,
                                   grid.host_bytes);
#else
    (void)for_good;
#endif
    context_switch(&from->context, &grid.host);
}

static Fiber *current_fiber()
{
    return grid.solo ? &solo : fibers[grid.current];
}

/* Records the grid's first error. */
static void __attribute__((format(printf, 2, 3))) fail_grid(cudaError_t error,
                                                            const char *text, ...)
{
    if (grid.outcome->error)
        return;
    grid.outcome->error = error;
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(grid.outcome->text, sizeof grid.outcome->text, text, arguments);
    va_end(arguments);
}

void abandon(cudaError_t error, const char *text, const void *code)
{
    Fiber *me = current_fiber();
    if (!grid.outcome->error)
        grid.outcome->code = code;
    fail_grid(error, "%s", text);
    me->begun = false;
    to_host(me, true);
    __builtin_unreachable();
}

void abandon_block(const char *what)
{
    fail_grid(cudaErrorLaunchFailure,
              "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s",
              grid.launch->name, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
              threadIdx.y, threadIdx.z, what);
    abandon(cudaErrorLaunchFailure, "");
}

/* The next runnable thread, in the block's order; -1 if there is none. */
static int next_ready()
{
    const unsigned n = grid.threads, from = grid.current;
    const void *found;
    if (!grid.backwards) {
        found =
            from + 1 < n ? memchr(waiting + from + 1, kReady, n - from - 1) : nullptr;
        if (!found)
            found = memchr(waiting, kReady, n);
    } else {
        found = memrchr(waiting, kReady, from);
        if (!found)
            found = memrchr(waiting, kReady, n);
    }
    return found ? (int)((const unsigned char *)found - waiting) : -1;
}

/* A thread that the waiting one waits for in vain. */
static unsigned missing_for(unsigned waits)
{
    if (waiting[waits] == kAtWarp)
        for (unsigned l = 0; l < 32; l++) {
            const unsigned i = (waits & ~31u) + l;
            if (fibers[waits]->mask >> l & 1 && i != waits && i < grid.threads &&
                (waiting[i] != kAtWarp || fibers[i]->what != fibers[waits]->what ||
                 fibers[i]->mask != fibers[waits]->mask))
                return i;
        }
    for (unsigned i = 0; i < grid.threads; i++)
        if (waiting[i] != waiting[waits])
            return i;
    return waits;
}

/* The same, by the checks. */
static void find_stuck(unsigned first, unsigned barrier, unsigned warp)
{
    for (unsigned i = 0; i < grid.threads && warp; i++)
        if (waiting[i] == kAtWarp) { /* what waits for lanes holds up the barrier */
            first = i;
            break;
        }
    const unsigned other = missing_for(first);
    char text[sizeof grid.outcome->text];
    const Stuck stuck = {warp > 0,
                         first,
                         other,
                         waiting[other] != kIdle,
                         barrier,
                         warp,
                         grid.threads - barrier - warp,
                         warp ? fibers[first]->mask : 0};
    if (check_stuck(stuck, text, sizeof text))
        fail_grid(cudaErrorLaunchFailure, "%s", text);
    else
        grid.outcome->error = cudaErrorLaunchFailure; /* the threads do not go on */
}

/* No thread can continue, although some have not finished. */
static void report_stuck()
{
    unsigned barrier = 0, warp = 0, first = 0;
    for (unsigned i = grid.threads; i-- > 0;) {
        barrier += waiting[i] == kAtBarrier || waiting[i] == kAtMeeting ||
                   waiting[i] == kAtChange;
        warp += waiting[i] == kAtWarp;
        if (waiting[i] != kIdle)
            first = i;
    }
    if (check_runs) {
        find_stuck(first, barrier, warp);
        return;
    }
    const uint3 at = fibers[first]->index;
    char mask[64] = "";
    if (waiting[first] == kAtWarp)
        snprintf(mask, sizeof mask, " with mask 0x%08x", fibers[first]->mask);
    fail_grid(cudaErrorLaunchFailure,
              "kernel %s, block (%u, %u, %u): of %u threads %u wait at a "
              "__syncthreads, %u for lanes of their warp, and %u have finished: "
              "they must all reach the same one (thread (%u, %u, %u) waits%s)",
              grid.launch->name, blockIdx.x, blockIdx.y, blockIdx.z, grid.threads,
              barrier, warp, grid.threads - barrier - warp, at.x, at.y, at.z, mask);
}

/* Nothing else of the block can run: lanes that ask which are active get those that ask
 * at the same place. Whether there were any. */
static bool release_active()
{
    bool any = false;
    for (unsigned i = 0; i < grid.threads; i++) {
        if (waiting[i] != kAtActive)
            continue;
        const uint64_t place = fibers[i]->value;
        const unsigned end = std::min((i | 31u) + 1, grid.threads);
        unsigned lanes = 0;
        for (unsigned j = i; j < end; j++)
            if (waiting[j] == kAtActive && fibers[j]->value == place)
                lanes |= 1u << j % 32;
        for (unsigned j = i; j < end; j++)
            if (lanes >> j % 32 & 1) {
                fibers[j]->value = lanes;
                waiting[j] = kReady;
            }
        any = true;
    }
    return any;
}

/* Switches to another thread; returns when this one is scheduled again. */
static void hand_over(Fiber *me)
{
    int next = next_ready();
    if (next < 0 && release_active())
        next = next_ready();
    if (next >= 0 && (unsigned)next == grid.current)
        return;
    if (next < 0) {
        if (grid.unfinished)
            report_stuck();
        to_host(me, false);
    } else {
        grid.current = (unsigned)next;
        to_fiber(&me->context, &me->asan, fibers[next]);
    }
    arrive(me);
    threadIdx = me->index;
    check_thread = grid.current;
}

/* Parks the block once each of its threads has had a turn and none has come further: the
 * host runs others until they have had theirs. */
void next_turn()
{
    if (grid.solo)
        return;
    Fiber *me = fibers[grid.current];
    release_active();
    if (++grid.turns <= 2 * grid.unfinished || !grid.launch->apart) {
        hand_over(me);
        return;
    }
    grid.turns = 0;
    grid.parked = true;
    to_host(me, false);
    arrive(me);
    threadIdx = me->index;
}

static void fiber_main()
{
    arrive(nullptr);
    Fiber *me = current_fiber();
    for (;;) {
        if (grid.solo) {
            each_index(grid.launch->grid, grid.order, [](uint3 at) {
                blockIdx = at;
                check_thread = 0;
                if (check_runs)
                    check_block();
                grid.body->run();
            });
            to_host(me, false);
            arrive(me);
        } else {
            threadIdx = me->index;
            check_thread = grid.current;
            grid.body->run();
            waiting[grid.current] = kIdle;
            grid.unfinished--;
            grid.turns = 0;
            hand_over(me);
        }
    }
}

/* --- called by kernels --- */

void trap()
{
    abandon_block("__trap was called");
}

static void need_fibers(const char *what)
{
    if (!grid.running)
        abort(); /* host code called a device function: it would not compile with
                    nvcc */
    if (!grid.solo)
        return;
    char text[128];
    snprintf(text, sizeof text,
             "%s needs LAUNCH_BARRIERS; the kernel was started by LAUNCH", what);
    abandon_block(text);
}

/* Counts a thread of the block in. True for the last one, which releases the others; they
 * wait until then. */
static bool is_last_to_arrive(unsigned &arrived, Waiting at)
{
    grid.turns = 0;
    if (++arrived < grid.threads) {
        waiting[grid.current] = at;
        hand_over(fibers[grid.current]);
        return false;
    }
    arrived = 0;
    memset(waiting, kReady, grid.threads);
    return true;
}

void barrier()
{
    need_fibers("__syncthreads");
    if (check_runs)
        check_arrives();
    if (is_last_to_arrive(grid.arrived, kAtBarrier) && check_runs)
        check_barrier();
}

void await_change()
{
    need_fibers("a barrier of some threads");
    grid.turns = 0;
    waiting[grid.current] = kAtChange;
    hand_over(fibers[grid.current]);
}

void tell_change()
{
    for (unsigned i = 0; i < grid.threads; i++)
        if (waiting[i] == kAtChange)
            waiting[i] = kReady;
}

void stop_grid(const char *text)
{
    fail_grid(cudaErrorLaunchFailure, "%s", text);
}

bool on_own_stack(const void *address)
{
    const Fiber *me = current_fiber();
    return (size_t)((const char *)address - me->stack) < me->bytes;
}

bool give_way()
{
    if (grid.solo)
        return false;
    hand_over(fibers[grid.current]);
    return true;
}

unsigned lane()
{
    return grid.solo ? 0 : grid.current % 32;
}

/* The last lane of a warp to arrive calls f. */
static struct {
    void (*f)(void *with, void *const *all);
    void *with;
} meeting;

uint64_t exchange(Exchange what, unsigned mask, uint64_t value, unsigned source)
{
    need_fibers("a shuffle, vote or __syncwarp");
    grid.turns = 0;
    const unsigned me = grid.current, first = me & ~31u, bit = 1u << (me & 31);
    if (what == kActive) {
        fibers[me]->value = (uint64_t)__builtin_return_address(0);
        waiting[me] = kAtActive;
        hand_over(fibers[me]);
        return fibers[me]->value;
    }
    if (grid.threads - first < 32) /* lanes that do not exist are not waited for */
        mask &= (1u << (grid.threads - first)) - 1;
    if (!(mask & bit) && check_runs)
        check_excluded(mask);
    if (!(mask & bit))
        abandon_block("the mask of a shuffle, vote or __syncwarp excludes the caller");
    Fiber *mine = fibers[me];
    mine->what = what;
    mine->mask = mask;
    mine->source = source;
    mine->value = value;
    waiting[me] = kAtWarp;
    /* Lanes mostly arrive in order, so check the last one first. */
    const unsigned last = first + (unsigned)(grid.backwards ? __builtin_ctz(mask)
                                                            : 31 - __builtin_clz(mask));
    if (last < grid.threads && waiting[last] != kAtWarp) {
        hand_over(mine);
        return mine->value;
    }
    uint64_t given[32];
    unsigned votes = 0;
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned l = (unsigned)__builtin_ctz(rest), i = first + l;
        if (i >= grid.threads || waiting[i] != kAtWarp || fibers[i]->what != what ||
            fibers[i]->mask != mask) {
            hand_over(mine); /* the last arrival completes the exchange */
            return mine->value;
        }
        given[l] = fibers[i]->value;
        votes |= (given[l] ? 1u : 0u) << l;
    }
    if (what == kMeet)
        meeting.f(meeting.with, (void *const *)given);
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned l = (unsigned)__builtin_ctz(rest);
        Fiber *each = fibers[first + l];
        const unsigned s = each->source;
        if (what == kBallot)
            each->value = votes;
        else if (what == kShuffle) /* reading from an inactive lane gives garbage */
            each->value = s < 32 && mask >> s & 1 ? given[s] : ~(uint64_t)0;
        waiting[first + l] = kReady;
    }
    if (check_runs && what == kSyncWarp)
        check_warp(first, mask);
    return mine->value;
}

bool groups_meet = true;

void meet(unsigned threads, void *mine, void (*f)(void *with, void *const *all),
          void *with)
{
    if (threads == 32) {
        meeting = {f, with};
        exchange(kMeet, ~0u, (uint64_t)mine, 0);
        return;
    }
    need_fibers("a reduction");
    fibers[grid.current]->value = (uint64_t)mine;
    if (!is_last_to_arrive(grid.met, kAtMeeting))
        return;
    void *all[kMaxThreads];
    for (unsigned i = 0; i < grid.threads; i++)
        all[i] = (void *)fibers[i]->value;
    f(with, all);
}

/* --- called by the host --- */

static void start_fiber(Fiber *fiber)
{
    if (!fiber->begun) {
#if DT_ASAN
        __asan_unpoison_memory_region(fiber->stack, fiber->bytes);
#endif
        fiber->asan = nullptr;
        context_make(&fiber->context, fiber->stack, fiber->bytes, fiber_main);
        fiber->begun = true;
    }
}

static void enter(Fiber *fiber)
{
    grid.host_stack = nullptr;
    grid.running = true;
    to_fiber(&grid.host, &grid.host_asan, fiber);
#if DT_ASAN
    __sanitizer_finish_switch_fiber(grid.host_asan, nullptr, nullptr);
#endif
}

static bool make_fibers(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!fibers[i])
            fibers[i] = new Fiber;
        if (!make_stack(fibers[i], kThreadStack))
            return false;
    }
    return true;
}

static void check_shared(const unsigned char *end)
{
#if !DT_ASAN
    for (int i = 0; i < kCanaryBytes; i++)
        if (end[i] != kCanary)
            fail_grid(
                cudaErrorIllegalAddress,
                "kernel %s, block (%u, %u, %u) wrote past the end of its %zu bytes of "
                "dynamic shared memory",
                grid.launch->name, blockIdx.x, blockIdx.y, blockIdx.z,
                grid.launch->shared);
#else
    (void)end;
#endif
}

/* A block that waits for others: what the grid has of the running one. */
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

static void *make_shared()
{
    const size_t extra = DT_ASAN ? 0 : kCanaryBytes;
    void *memory = nullptr;
    if (posix_memalign(&memory, 16, grid.launch->shared + extra))
        return nullptr;
    memset(memory, 0xFF, grid.launch->shared);
    memset((char *)memory + grid.launch->shared, kCanary, extra);
    return memory;
}

static Parked park()
{
    const unsigned n = grid.threads;
    Parked block = {blockIdx,       {fibers, fibers + n}, {waiting, waiting + n},
                    grid.current,   grid.unfinished,      grid.arrived,
                    grid.backwards, grid.shared};
    memset(fibers, 0, n * sizeof *fibers);
    grid.shared = nullptr;
    return block;
}

static void unpark(const Parked &block)
{
    blockIdx = block.index;
    std::copy(block.fibers.begin(), block.fibers.end(), fibers);
    std::copy(block.waiting.begin(), block.waiting.end(), waiting);
    grid.current = block.current;
    grid.unfinished = block.unfinished;
    grid.arrived = block.arrived;
    grid.backwards = block.backwards;
    grid.shared = block.shared;
}

static void drop_fibers()
{
    for (unsigned i = 0; i < grid.threads; i++)
        if (fibers[i]) {
            munmap(fibers[i]->stack - kGuard, fibers[i]->bytes + kGuard);
            delete fibers[i];
            fibers[i] = nullptr;
        }
}

static void begin_block()
{
    unsigned i = 0;
    each_index(grid.launch->block, [&](uint3 at) {
        start_fiber(fibers[i]);
        fibers[i++]->index = at;
    });
    memset(waiting, kReady, grid.threads);
    grid.unfinished = grid.threads;
    grid.arrived = grid.met = 0;
    begin_numbered_barriers();
    grid.current = grid.backwards ? grid.threads - 1 : 0;
}

/* Until the block has finished, was abandoned, or parks. */
static void run_block()
{
    grid.turns = 0;
    grid.parked = false;
    enter(fibers[grid.current]);
    if (grid.outcome->error) /* abandoned fibers are inside the kernel: restart them */
        for (unsigned i = 0; i < grid.threads; i++)
            if (waiting[i] != kIdle)
                fibers[i]->begun = false;
    if (grid.shared && !grid.parked)
        check_shared((unsigned char *)grid.shared + grid.launch->shared);
}

/* Gives each block that waits a turn, in the order in which they began. */
static void run_parked(std::deque<Parked> &parked)
{
    for (size_t left = parked.size(); left && !grid.outcome->error; left--) {
        unpark(parked.front());
        parked.pop_front();
        run_block();
        if (grid.parked) {
            parked.push_back(park());
        } else {
            drop_fibers();
            free(grid.shared);
            grid.shared = nullptr;
        }
    }
}

static bool ready_for_a_block()
{
    if (!make_fibers(grid.threads))
        return false;
    if (grid.launch->shared && !grid.shared)
        grid.shared = make_shared();
    return !grid.launch->shared || grid.shared;
}

static void run_blocks()
{
    static unsigned turn;
    std::deque<Parked> parked;
    each_index(grid.launch->grid, grid.order, [&](uint3 at) {
        while (parked.size() >= kResident && !grid.outcome->error)
            run_parked(parked);
        if (grid.outcome->error)
            return;
        if (!ready_for_a_block()) {
            fail_grid(cudaErrorLaunchOutOfResources,
                      "kernel %s: no host memory for the stacks of %u threads",
                      grid.launch->name, grid.threads);
            return;
        }
        /* Alternate the order of threads, so that a missing barrier shows whatever
         * order would hide it. */
        grid.backwards = turn++ & 1;
        blockIdx = at;
        if (check_runs)
            check_block();
        if (grid.shared)
            memset(grid.shared, 0xFF, grid.launch->shared);
        begin_block();
        run_block();
        if (grid.parked)
            parked.push_back(park());
    });
    free(grid.shared);
    grid.shared = nullptr;
    while (!parked.empty() && !grid.outcome->error)
        run_parked(parked);
    for (const Parked &block : parked) { /* of a grid that was abandoned */
        free(grid.shared);
        drop_fibers();
        unpark(block);
    }
    if (!parked.empty())
        drop_fibers();
}

void run_grid(const Launch &launch, Body &body, Outcome *outcome)
{
    const dim3 b = launch.block;
    outcome->error = cudaSuccess;
    outcome->text[0] = 0;
    grid.launch = &launch;
    grid.body = &body;
    grid.outcome = outcome;
    grid.threads = b.x * b.y * b.z;
    grid.solo = !launch.barriers;
    grid.shared = nullptr;
    /* A GPU promises no order of blocks. */
    grid.order = state().options.schedule == kRandom ? roll() : 0;
    gridDim = launch.grid;
    blockDim = launch.block;
    const bool memory = (!grid.solo || make_stack(&solo, kSoloStack)) &&
                        (!launch.shared || (grid.shared = make_shared()) != nullptr);
    if (!memory) {
        fail_grid(cudaErrorLaunchOutOfResources,
                  "kernel %s: no host memory for the stacks of %u threads", launch.name,
                  grid.threads);
        return;
    }
    arm_faults();
    if (body.checks)
        check_begin(*body.checks, launch.grid, launch.block, (char *)grid.shared,
                    launch.shared);
    turns_begin(launch);
    if (grid.solo) {
        start_fiber(&solo);
        grid.current = 0;
        enter(&solo);
        if (grid.shared)
            check_shared((unsigned char *)grid.shared + launch.shared);
    } else {
        run_blocks();
    }
    turns_end();
    check_end();
    free(grid.shared);
    grid.shared = nullptr;
}

} /* namespace sim */
