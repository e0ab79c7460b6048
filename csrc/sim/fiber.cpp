/* Threads of a block, on stacks of their own, so that a kernel can be abandoned halfway: a
 * kernel without barriers runs on one fiber that loops over all threads, a kernel with
 * barriers on one fiber per thread of a block. A fiber that waits switches to the next.
 * Blocks of a grid are grid.cpp's. */
#include "check.h"
#include "reductions.h"
#include "runner.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <algorithm>
#if DT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace sim {

enum { kGuard = 16384 };
static const size_t kStack = DT_ASAN ? 256 << 10 : 64 << 10, kWideStack = 1 << 20;

Runner first_runner;
static thread_local Runner *running;

void run_by(Runner *r)
{
    running = r;
}
bool in_kernel()
{
    return running && running->running;
}
const char *running_kernel()
{
    return running->launch->name;
}
const Indices &running_indices()
{
    return running ? running->indices : first_runner.indices;
}
void *dynamic_shared_memory()
{
    return here().shared;
}

char *map_memory(size_t bytes, int access)
{
    void *memory = mmap(nullptr, bytes, access,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : (char *)memory;
}

/* A program's fiber. */
static bool map_stack(Fiber *fiber, size_t bytes)
{
    if (fiber->stack)
        return true;
    char *base = map_memory(bytes + kGuard, PROT_READ | PROT_WRITE);
    if (!base)
        return false;
    if (mprotect(base, kGuard, PROT_NONE)) {
        munmap(base, bytes + kGuard);
        return false;
    }
    fiber->stack = base + kGuard;
    fiber->bytes = bytes;
    return true;
}

/* Reserves addresses for all stacks of the library's kernels. */
static bool reserve_stacks(Runner &r)
{
    if (r.stacks)
        return true;
    char *base = map_memory(2 * kStacks, PROT_NONE);
    if (!base)
        return false;
    char *stacks = (char *)(((uintptr_t)base + kStacks - 1) & ~(kStacks - 1));
    char *end = stacks + kStacks;
    if (stacks > base)
        munmap(base, (size_t)(stacks - base));
    munmap(end, (size_t)(base + kStacks - stacks));
    if (mprotect(end - kGuard, kGuard, PROT_READ | PROT_WRITE)) {
        munmap(stacks, kStacks);
        return false;
    }
    Indices *leads_to = &r.indices;
    memcpy(end - kStacksWords, &leads_to, sizeof leads_to);
    r.stacks = stacks;
    return true;
}

/* Stack i. Each begins at another offset in a page than those near it: they would share
 * the few lines of the processor's cache for such addresses. */
static bool open_stack(Runner &r, Fiber *fiber, size_t i)
{
    static_assert((kMaxThreads + 1) * (kStack + kGuard) + kGuard <= kStacks);
    if (fiber->stack)
        return true;
    char *stack = r.stacks + i * (kStack + kGuard) + kGuard;
    if (mprotect(stack, kStack, PROT_READ | PROT_WRITE))
        return false;
    fiber->stack = stack;
    fiber->bytes = kStack - i * 384 % 4096;
    return true;
}

/* --- switching --- */

static void arrive(Fiber *me)
{
#if DT_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(me ? me->asan : nullptr, &stack, &bytes);
    Runner &r = here();
    if (!r.host_stack) { /* the first fiber was started by the host */
        r.host_stack = stack;
        r.host_bytes = bytes;
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

static void to_host(Runner &r, Fiber *from, bool for_good)
{
    r.running = false;
#if DT_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from->asan, r.host_stack,
                                   r.host_bytes);
#else
    (void)for_good;
#endif
    context_switch(&from->context, &r.host);
}

static Fiber *solo_fiber(Runner &r)
{
    return r.launch->code.begin ? &r.wide_fiber : &r.solo_fiber;
}
static Fiber *current_fiber(Runner &r)
{
    return r.solo ? solo_fiber(r) : r.fibers[r.current];
}

void fail_block(Runner &r, cudaError_t error, const char *text, ...)
{
    Outcome &outcome = r.outcome;
    if (outcome.error)
        return;
    outcome.error = error;
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(outcome.text, sizeof outcome.text, text, arguments);
    va_end(arguments);
}

void abandon(cudaError_t error, const char *text, const void *code)
{
    Runner &r = *running; /* also in a signal's handler, on a stack of its own */
    Fiber *me = current_fiber(r);
    if (!r.outcome.error)
        r.outcome.code = code;
    fail_block(r, error, "%s", text);
    me->begun = false;
    to_host(r, me, true);
    __builtin_unreachable();
}

void abandon_block(const char *what)
{
    const uint3 t = running->indices.thread, b = running->indices.block;
    fail_block(*running, cudaErrorLaunchFailure,
               "kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s",
               running->launch->name, b.x, b.y, b.z, t.x, t.y, t.z, what);
    abandon(cudaErrorLaunchFailure, "");
}

/* The next runnable thread, in the block's order; -1 if there is none. */
static inline int next_ready(const Runner &r)
{
    const unsigned n = r.threads, from = r.current,
                   next = from + (r.backwards ? -1u : 1u);
    if (next < n && r.waiting[next] == kReady) /* mostly */
        return (int)next;
    const void *found;
    if (!r.backwards) {
        found =
            from + 1 < n ? memchr(r.waiting + from + 1, kReady, n - from - 1) : nullptr;
        if (!found)
            found = memchr(r.waiting, kReady, n);
    } else {
        found = memrchr(r.waiting, kReady, from);
        if (!found)
            found = memrchr(r.waiting, kReady, n);
    }
    return found ? (int)((const unsigned char *)found - r.waiting) : -1;
}

/* A thread that the waiting one waits for in vain. */
static unsigned missing_for(const Runner &r, unsigned waits)
{
    const Fiber &mine = *r.fibers[waits];
    if (r.waiting[waits] == kAtWarp)
        for (unsigned l = 0; l < 32; l++) {
            const unsigned i = (waits & ~31u) + l;
            if (mine.mask >> l & 1 && i != waits && i < r.threads &&
                (r.waiting[i] != kAtWarp || r.fibers[i]->what != mine.what ||
                 r.fibers[i]->mask != mine.mask))
                return i;
        }
    for (unsigned i = 0; i < r.threads; i++)
        if (r.waiting[i] != r.waiting[waits])
            return i;
    return waits;
}

/* The same, by the checks. */
static void find_stuck(Runner &r, unsigned first, unsigned barrier, unsigned warp)
{
    for (unsigned i = 0; i < r.threads && warp; i++)
        if (r.waiting[i] == kAtWarp) { /* what waits for lanes holds up the barrier */
            first = i;
            break;
        }
    const unsigned other = missing_for(r, first);
    char text[sizeof r.outcome.text];
    const Stuck stuck = {warp > 0,
                         first,
                         other,
                         r.waiting[other] != kIdle,
                         barrier,
                         warp,
                         r.threads - barrier - warp,
                         warp ? r.fibers[first]->mask : 0};
    if (check_stuck(stuck, text, sizeof text))
        fail_block(r, cudaErrorLaunchFailure, "%s", text);
    else
        r.outcome.error = cudaErrorLaunchFailure; /* the threads do not go on */
}

/* No thread can continue, although some have not finished. */
static void __attribute__((cold, noinline)) report_stuck(Runner &r)
{
    unsigned barrier = 0, warp = 0, first = 0;
    for (unsigned i = r.threads; i-- > 0;) {
        barrier += r.waiting[i] == kAtBarrier || r.waiting[i] == kAtMeeting ||
                   r.waiting[i] == kAtChange;
        warp += r.waiting[i] == kAtWarp;
        if (r.waiting[i] != kIdle)
            first = i;
    }
    if (check_runs) {
        find_stuck(r, first, barrier, warp);
        return;
    }
    const uint3 at = r.fibers[first]->index;
    char mask[64] = "";
    if (r.waiting[first] == kAtWarp)
        snprintf(mask, sizeof mask, " with mask 0x%08x", r.fibers[first]->mask);
    const uint3 block = r.indices.block;
    fail_block(r, cudaErrorLaunchFailure,
               "kernel %s, block (%u, %u, %u): of %u threads %u wait at a "
               "__syncthreads, %u for lanes of their warp, and %u have finished: "
               "they must all reach the same one (thread (%u, %u, %u) waits%s)",
               r.launch->name, block.x, block.y, block.z, r.threads, barrier, warp,
               r.threads - barrier - warp, at.x, at.y, at.z, mask);
}

/* Nothing else of the block can run: lanes that ask which are active get those that ask
 * at the same location. The next runnable thread then; -1 if there is none. */
static int release_active(Runner &r)
{
    for (unsigned i = 0; i < r.threads; i++) {
        if (r.waiting[i] != kAtActive)
            continue;
        const uint64_t place = r.fibers[i]->value;
        const unsigned end = std::min((i | 31u) + 1, r.threads);
        unsigned lanes = 0;
        for (unsigned j = i; j < end; j++)
            if (r.waiting[j] == kAtActive && r.fibers[j]->value == place)
                lanes |= 1u << j % 32;
        for (unsigned j = i; j < end; j++)
            if (lanes >> j % 32 & 1) {
                r.fibers[j]->value = lanes;
                r.waiting[j] = kReady;
            }
    }
    return next_ready(r);
}

/* The thread of the kernel that runs from now on. */
static void continue_as(Runner &r, const Fiber &me)
{
    r.indices.thread = me.index;
    if (check_runs)
        check_thread = r.current;
}

/* Switches to another thread; returns when this one is scheduled again. */
static void hand_over(Fiber *me)
{
    Runner &r = here();
    int next = next_ready(r);
    if (next < 0)
        next = release_active(r);
    if (next >= 0 && (unsigned)next == r.current)
        return;
    if (next < 0) {
        if (r.unfinished)
            report_stuck(r);
        to_host(r, me, false);
    } else {
        r.current = (unsigned)next;
        to_fiber(&me->context, &me->asan, r.fibers[next]);
    }
    arrive(me);
    continue_as(r, *me);
}

/* Parks the block once each of its threads has had a turn and none has come further: the
 * host runs others until they have had theirs. */
void next_turn()
{
    Runner &r = here();
    if (r.solo)
        return;
    Fiber *me = r.fibers[r.current];
    release_active(r);
    if (++r.turns <= 2 * r.unfinished || !r.launch->apart) {
        hand_over(me);
        return;
    }
    r.turns = 0;
    r.parked = true;
    to_host(r, me, false);
    arrive(me);
    r.indices.thread = me->index;
}

static void fiber_main()
{
    arrive(nullptr);
    Runner &r = here();
    Fiber *me = current_fiber(r);
    for (;;) {
        if (r.solo) {
            run_solo_blocks(r);
            to_host(r, me, false);
            arrive(me);
        } else {
            continue_as(r, *me);
            r.body->run();
            r.waiting[r.current] = kIdle;
            r.unfinished--;
            r.turns = 0;
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
    if (!here().solo)
        return;
    char text[128];
    snprintf(text, sizeof text,
             "%s needs LAUNCH_BARRIERS; the kernel was started by LAUNCH", what);
    abandon_block(text);
}

/* Counts a thread in among `count`, of which `first` is the first. True for the last one,
 * which releases the others; they wait until then. */
static bool is_last_to_arrive(Runner &r, unsigned &arrived, Waiting at, unsigned first,
                              unsigned count)
{
    r.turns = 0;
    if (++arrived < count) {
        r.waiting[r.current] = at;
        hand_over(r.fibers[r.current]);
        return false;
    }
    arrived = 0;
    memset(r.waiting + first, kReady, count);
    return true;
}

void barrier()
{
    need_fibers("__syncthreads");
    if (check_runs)
        check_arrives();
    Runner &r = here();
    if (is_last_to_arrive(r, r.arrived, kAtBarrier, 0, r.threads) && check_runs)
        check_barrier();
}

void await_change()
{
    need_fibers("a barrier of some threads");
    Runner &r = here();
    r.turns = 0;
    r.waiting[r.current] = kAtChange;
    hand_over(r.fibers[r.current]);
}

void tell_change()
{
    Runner &r = here();
    for (unsigned i = 0; i < r.threads; i++)
        if (r.waiting[i] == kAtChange)
            r.waiting[i] = kReady;
}

void stop_grid(const char *text)
{
    fail_block(here(), cudaErrorLaunchFailure, "%s", text);
}

bool on_own_stack(const void *address)
{
    const Fiber *me = current_fiber(here());
    return (size_t)((const char *)address - me->stack) < me->bytes;
}

bool give_way()
{
    Runner &r = here();
    if (r.solo)
        return false;
    hand_over(r.fibers[r.current]);
    return true;
}

unsigned lane()
{
    const Runner &r = here();
    return r.solo ? 0 : r.current % 32;
}

/* Completes the exchange of a mask's lanes if all of them wait in it; whether it did. */
static bool __attribute__((noinline)) complete(Runner &r, unsigned first, Exchange what,
                                               unsigned mask)
{
    uint64_t given[32];
    unsigned votes = 0;
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned l = (unsigned)__builtin_ctz(rest), i = first + l;
        if (i >= r.threads || r.waiting[i] != kAtWarp || r.fibers[i]->what != what ||
            r.fibers[i]->mask != mask)
            return false;
        given[l] = r.fibers[i]->value;
        votes |= (given[l] ? 1u : 0u) << l;
    }
    for (unsigned rest = mask; rest; rest &= rest - 1) {
        const unsigned l = (unsigned)__builtin_ctz(rest);
        Fiber *each = r.fibers[first + l];
        const unsigned s = each->source;
        if (what == kBallot)
            each->value = votes;
        else if (what == kShuffle) /* reading from an inactive lane gives garbage */
            each->value = s < 32 && mask >> s & 1 ? given[s] : ~(uint64_t)0;
        r.waiting[first + l] = kReady;
    }
    if (check_runs && what == kSyncWarp)
        check_warp(first, mask);
    return true;
}

uint64_t exchange(Exchange what, unsigned mask, uint64_t value, unsigned source)
{
    need_fibers("a shuffle, vote or __syncwarp");
    Runner &r = here();
    r.turns = 0;
    const unsigned me = r.current, first = me & ~31u, bit = 1u << (me & 31);
    if (what == kActive) {
        r.fibers[me]->value = (uint64_t)__builtin_return_address(0);
        r.waiting[me] = kAtActive;
        hand_over(r.fibers[me]);
        return r.fibers[me]->value;
    }
    if (r.threads - first < 32) /* lanes that do not exist are not waited for */
        mask &= (1u << (r.threads - first)) - 1;
    if (!(mask & bit) && check_runs)
        check_excluded(mask);
    if (!(mask & bit))
        abandon_block("the mask of a shuffle, vote or __syncwarp excludes the caller");
    Fiber *mine = r.fibers[me];
    mine->what = what;
    mine->mask = mask;
    mine->source = source;
    mine->value = value;
    r.waiting[me] = kAtWarp;
    /* Lanes mostly arrive in order, so check the last one first. */
    const unsigned last = first + (unsigned)(r.backwards ? __builtin_ctz(mask)
                                                         : 31 - __builtin_clz(mask));
    if (last < r.threads && r.waiting[last] != kAtWarp) {
        hand_over(mine);
        return mine->value;
    }
    if (!complete(r, first, what, mask)) /* the last arrival completes the exchange */
        hand_over(mine);
    return mine->value;
}

bool groups_meet = true;

void meet(unsigned threads, void *mine, void (*f)(void *with, void *const *all),
          void *with)
{
    need_fibers("a reduction");
    Runner &r = here();
    const unsigned first = threads == 32 ? r.current & ~31u : 0,
                   count = threads == 32 ? std::min(32u, r.threads - first) : r.threads;
    r.brought[r.current] = mine;
    if (is_last_to_arrive(r, r.met[first / 32], kAtMeeting, first, count))
        f(with, r.brought + first);
}

/* --- called by grid.cpp --- */

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

static void enter(Runner &r, Fiber *fiber)
{
    r.host_stack = nullptr;
    r.running = true;
    to_fiber(&r.host, &r.host_asan, fiber);
#if DT_ASAN
    __sanitizer_finish_switch_fiber(r.host_asan, nullptr, nullptr);
#endif
}

bool make_fibers(Runner &r)
{
    const bool program = r.launch->code.begin != nullptr;
    r.fibers = program ? r.program_fibers : r.library_fibers;
    if (!program && !reserve_stacks(r))
        return false;
    for (unsigned i = 0; i < r.threads; i++) {
        if (!r.fibers[i])
            r.fibers[i] = new Fiber;
        if (program ? !map_stack(r.fibers[i], kStack) : !open_stack(r, r.fibers[i], i))
            return false;
    }
    return true;
}

bool make_solo_fiber(Runner &r)
{
    if (r.launch->code.begin)
        return map_stack(&r.wide_fiber, kWideStack);
    return reserve_stacks(r) && open_stack(r, &r.solo_fiber, kMaxThreads);
}

void restart_fibers(Runner &r)
{
    r.solo_fiber.begun = r.wide_fiber.begun = false;
    for (unsigned i = 0; i < kMaxThreads; i++) {
        if (r.library_fibers[i])
            r.library_fibers[i]->begun = false;
        if (r.program_fibers[i])
            r.program_fibers[i]->begun = false;
    }
}

/* Frees a program's fibers, which a parked block may have left elsewhere. */
void drop_fibers(Runner &r)
{
    for (unsigned i = 0; i < r.threads; i++)
        if (r.fibers[i]) {
            munmap(r.fibers[i]->stack - kGuard, kStack + kGuard);
            delete r.fibers[i];
            r.fibers[i] = nullptr;
        }
}

void begin_block(Runner &r)
{
    unsigned i = 0;
    each_index(r.launch->block, [&](uint3 at) {
        start_fiber(r.fibers[i]);
        r.fibers[i++]->index = at;
    });
    memset(r.waiting, kReady, r.threads);
    memset(r.numbered, 0, sizeof r.numbered);
    r.unfinished = r.threads;
    memset(r.met, 0, sizeof r.met);
    r.arrived = 0;
    r.current = r.backwards ? r.threads - 1 : 0;
}

void run_block(Runner &r)
{
    r.turns = 0;
    r.parked = false;
    enter(r, r.fibers[r.current]);
    if (r.outcome.error) /* abandoned fibers are inside the kernel: restart them */
        for (unsigned i = 0; i < r.threads; i++)
            if (r.waiting[i] != kIdle)
                r.fibers[i]->begun = false;
}

void enter_solo(Runner &r)
{
    start_fiber(solo_fiber(r));
    r.current = 0;
    enter(r, solo_fiber(r));
}

} /* namespace sim */
