/* Barriers of some threads of a block (cuda/kernels/warpgroup.h), and what a checked kernel
 * learns at them: each thread has for each other one the time up to which it knows what
 * that one has done. */
#include <algorithm>
#include <string.h>
#include "check_shadow.h"
#include "runner.h"
#include "warpgroup.h"

namespace sim {

/* --- barriers by number --- */

void meet_at(unsigned number, unsigned threads, bool waits)
{
    Runner::Numbered &barrier = here().numbered[number];
    const unsigned times = barrier.times;
    const bool last = ++barrier.arrived == threads;
    check_arrives_at(&barrier, last);
    if (last) {
        barrier.arrived = 0;
        barrier.times++;
        tell_change();
    }
    while (waits && barrier.times == times)
        await_change();
    if (waits)
        check_passes(&barrier);
}

/* --- barriers in shared memory: 20 bits of arrivals that are missing, 20 of those of a
 * phase, and the number of the phase --- */

void phase_arrives(uint64_t *state)
{
    if (!(*state & 0xFFFFF))
        trap();
    const bool last = !(--*state & 0xFFFFF);
    if (last)
        *state += (*state >> 20 & 0xFFFFF) + ((uint64_t)1 << 40);
    check_arrives_at(state, last);
    if (!last)
        return;
    tell_change();
    give_way(); /* to those that waited, before this thread does what comes next */
}

void phase_ends(const uint64_t *state, unsigned parity)
{
    while ((*(const volatile uint64_t *)state >> 40 & 1) == parity)
        await_change();
    check_passes(state);
}

/* --- what threads know --- */

static unsigned threads_of_block()
{
    return checked.block.x * checked.block.y * checked.block.z;
}

static uint64_t *known_by(unsigned thread)
{
    return &shadow.known[(size_t)thread * threads_of_block()];
}

static void learn(uint64_t *known, const uint64_t *more)
{
    for (unsigned i = 0; i < threads_of_block(); i++)
        known[i] = std::max(known[i], more[i]);
}

void check_arrives_at(const void *barrier, bool last)
{
    if (!check_runs)
        return;
    check_settle();
    const unsigned n = threads_of_block(), me = check_thread;
    if (shadow.known.empty())
        shadow.known.resize((size_t)n * n);
    uint64_t *mine = known_by(me);
    mine[me] = check_time();
    if (shadow.met[me / 32] >= shadow.floor)
        for (unsigned i = 0; i < 32 && (me & ~31u) + i < n; i++) {
            uint64_t &of_lane = mine[(me & ~31u) + i];
            of_lane = std::max(of_lane, shadow.lanes[me][i]);
        }
    Shadow::Phase &phase = shadow.phases[barrier];
    phase.arrived.resize(n);
    learn(phase.arrived.data(), mine);
    if (last)
        phase.ended = phase.arrived;
}

void check_passes(const void *barrier)
{
    auto phase = shadow.phases.find(barrier);
    if (check_runs && phase != shadow.phases.end() && !phase->second.ended.empty())
        learn(known_by(check_thread), phase->second.ended.data());
}

void check_lanes_learn(unsigned first, unsigned mask)
{
    if (shadow.known.empty())
        return;
    std::vector<uint64_t> all(threads_of_block());
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1)
            learn(all.data(), known_by(first + i));
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1)
            learn(known_by(first + i), all.data());
}

bool check_knows(uint64_t time, unsigned thread)
{
    return !shadow.known.empty() && time >= shadow.block &&
           time < known_by(check_thread)[thread];
}

} /* namespace sim */
