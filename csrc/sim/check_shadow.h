/* The state of the checks while a kernel runs: shadow memory, and what orders threads. */
#ifndef DT_SIM_CHECK_SHADOW_H
#define DT_SIM_CHECK_SHADOW_H

#include <unordered_map>
#include "check.h"
#include "internal.h"

namespace sim {

const unsigned kNone = ~0u; /* no thread */
/* Bytes beside an operand whose addresses lead nowhere. */
const size_t kApart = (size_t)64 << 20;
/* Times end here, and begin again. */
const uint64_t kLastTime = ((uint64_t)1 << 31) - 2;

/* Accesses of [begin, end) by `thread`, -1: by any, that a release lets others know;
 * wide: of other blocks too. */
struct Known {
    uint64_t begin, end, released;
    int thread;
    bool wide;
};
/* A word that threads synchronize by, and what its values say, by block. */
struct Sync {
    struct Link {
        Sync *sync;
        uint64_t acquired, released;
    };
    std::unordered_map<size_t, std::vector<Known>> known;
    std::vector<Link> links; /* what those knew who released it */
};

struct Shadow {
    uint64_t now = 1, launch = 1, block = 1, floor = 1;
    bool wrapped = false; /* the times of blocks of memory mean nothing any more */
    /* Device memory. */
    Cell *cells = nullptr;
    size_t mapped = 0;
    char *seen = nullptr;
    size_t span = 0;
    std::vector<Cell> dynamic;                    /* of dynamic shared memory */
    std::vector<Operand> operands;                /* of the launch */
    size_t latest = 0;                            /* the one that was accessed last */
    std::vector<std::pair<void *, size_t>> rooms; /* of their own addresses */
    std::vector<uint64_t> blocks; /* the times at which those of the launch began */
    /* Warps: up to when a lane knows what another has done, valid if `met` is not before
     * the floor. */
    uint64_t lanes[kMaxThreads][32];
    uint64_t met[kMaxThreads / 32];
    /* Barriers of some threads: up to when a thread knows what another has done, a row for
     * each thread; no rows before the first such barrier of a block. */
    std::vector<uint64_t> known;
    struct Phase {
        std::vector<uint64_t> arrived, ended; /* what those know who have arrived */
    };
    std::unordered_map<const void *, Phase> phases; /* by barrier */
    /* Fences and releases: of any scope, and the wide ones, for other blocks too. */
    struct Fence {
        uint64_t at, floor;
    } fence[2][kMaxThreads];
    /* A barrier after which all is fenced that was before it. */
    uint64_t fenced = 0, wide_fenced = 0;
    bool fences = false, wide_fences = false; /* since the last barrier */
    std::unordered_map<uintptr_t, Sync> syncs;
    std::unordered_map<unsigned, std::vector<Sync::Link>> acquired; /* by thread */
    std::vector<Sync::Link> block_acquired;
    /* Lines of barriers and warp operations. */
    int lines[kMaxThreads];
    int barrier_line;
    unsigned barrier_thread;
    bool at_barrier;
    /* A write that is a race unless it leaves the value. */
    bool pending = false;
    Finding waiting;
    unsigned char before[16];
    /* A read beside atomic writes, a race unless the thread makes an atomic change there;
     * thread kNone: no such read. */
    Finding guess;
    /* The first reads without a value, by space: races if a thread writes there yet. */
    Finding deferred[kUnknown];
    /* Threads that wait for a value. */
    enum { kPause = 1 << 16, kWatch = 256, kAddresses = 8 };
    unsigned budget = kPause, watched = 0, addresses = 0;
    bool busy = false, plain = false;
    const void *seen_addresses[kAddresses];
    uint64_t progress = 0;
    struct Spin {
        uint64_t progress;
        unsigned rounds;
    } spins[kMaxThreads];
};
extern Shadow shadow;

inline uint64_t key(uint64_t time)
{
    return time << 33;
}

/* A word that the running thread changes or reads as one that others wait for. */
void check_synchronizes(const void *address, bool releases);
/* Whether a barrier of some threads is between the access and the running thread. */
bool check_knows(uint64_t time, unsigned thread);
/* The lanes have met: each knows what the others do. */
void check_lanes_learn(unsigned first, unsigned mask);
/* Reports the write that waits for its value, if it has changed it. */
void check_settle();
/* Reports the read beside atomic writes, if there was one. */
void check_guess();
/* Reports the read of the space that had no value, if there was one. */
void check_uninitialized(Space space);
/* The number of the launch's block that ran then. */
size_t check_block_at(uint64_t time);

} /* namespace sim */

#endif
