/* Runners: each thread of the host that runs blocks of a grid has one. */
#ifndef DT_SIM_RUNNER_H
#define DT_SIM_RUNNER_H

#include <pthread.h>
#include "context.h"
#include "internal.h"

namespace sim {

enum Waiting : unsigned char {
    kIdle,
    kReady,
    kAtBarrier,
    kAtMeeting,
    kAtWarp,
    kAtActive,
    kAtChange
};

/* A stack on which threads of blocks run, one after another. */
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

struct Runner {
    Indices indices; /* first: stacks lead to it */
    int number;
    const Launch *launch;
    Body *body;
    Outcome outcome; /* the first error */
    uint64_t block;  /* the running one, in the order of the grid */
    bool running, solo;
    bool parked;      /* the block waits for other blocks */
    bool backwards;   /* run threads from the last to the first */
    unsigned threads; /* per block */
    unsigned current; /* index in the block */
    unsigned unfinished;
    unsigned arrived; /* at the barrier */
    unsigned turns;   /* since a thread last waited or finished */
    void *shared;     /* dynamic shared memory */
    /* Barriers by number: threads that have arrived, and how often all have. */
    struct Numbered {
        unsigned arrived, times;
    } numbered[16];
    Context host;
    const void *host_stack;
    size_t host_bytes;
    void *host_asan;
    pthread_t owner;  /* who ran the fibers last */
    Fiber solo_fiber; /* of kernels without barriers */
    Fiber wide_fiber; /* of the program's: with room for large local arrays */
    char *stacks;     /* of all but the program's fibers */
    Fiber **fibers;   /* the block's: one of these */
    Fiber *library_fibers[kMaxThreads], *program_fibers[kMaxThreads];
    unsigned char waiting[kMaxThreads];
    unsigned met[kMaxThreads / 32]; /* for a reduction, of a warp or the block */
    void *brought[kMaxThreads];     /* there */
};

/* The one that runs grids whose blocks do not overlap. */
extern SIM_HIDDEN Runner first_runner;
/* In a kernel. */
inline Runner &here()
{
    return blocks_overlap ? (Runner &)indices() : first_runner;
}

/* --- fiber.cpp --- */
/* Memory that costs nothing before it is used; NULL: no addresses. */
char *map_memory(size_t bytes, int access);
/* Records the first error. */
void __attribute__((format(printf, 3, 4))) fail_block(Runner &r, cudaError_t error,
                                                      const char *text, ...);
/* Stacks for a block, and for all threads of the grid in turn; false: no memory. */
bool make_fibers(Runner &r);
bool make_solo_fiber(Runner &r);
/* Another thread of the host is to run them. */
void restart_fibers(Runner &r);
void drop_fibers(Runner &r);
void begin_block(Runner &r);
/* Until the block has finished, was abandoned, or parks. */
void run_block(Runner &r);
/* Calls run_solo_blocks, until it returns or the kernel is abandoned. */
void enter_solo(Runner &r);

/* The thread of the host runs blocks by this runner; NULL: none. */
void run_by(Runner *r);

/* --- grid.cpp --- */
/* Runs blocks of a kernel without barriers. */
void run_solo_blocks(Runner &r);

} /* namespace sim */

#endif
