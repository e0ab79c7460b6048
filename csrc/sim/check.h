/* Checks of the program's kernels: what its threads do with memory and barriers.
 *
 * The compiler calls the simulator before each access (check_module.h). Shadow memory
 * has a cell for each word of device and shared memory: its last write and its last
 * reads in this launch. Time is a number that grows with each block, barrier and
 * __syncwarp, so that one comparison says whether a barrier is between two accesses. */
#ifndef DT_SIM_CHECK_H
#define DT_SIM_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <memory>
#include <string>
#include <vector>
#include "cuda_runtime.h"

struct dt_module_call;

namespace sim {

struct Body;
struct Checks;
struct Cost;
struct Slot;

/* A location in the program: an address in the module, or a line. */
struct Place {
    uintptr_t at = 0; /* from the module's base on; 0: unknown */
    int line = 0;
};

/* A tensor that the launch was passed. */
struct Operand {
    int argument;       /* its number */
    void *value;        /* where the parameter is */
    char *data;         /* the pointer that was passed */
    char *low, *high;   /* the bytes of its elements, at addresses of their own */
    ptrdiff_t moved;    /* from where other kernels see them to there */
    size_t item;        /* bytes of an element */
    uint64_t blank;     /* the time its block was taken at, if only checked kernels have
                         written to it since; else 0 */
    int field = -1;     /* of a struct: the byte of the parameter that has the pointer,
                         which leads to a whole block */
    bool stays = false; /* where it is: another one begins at its end */
};

/* A variable of a module, or the memory between two. */
enum Holder : int { kHeldByDevice, kHeldByBlock, kHeldConstant, kHeldByHost };
struct CheckedVariable {
    char *low, *high;
    Holder holder;
    std::string name;
};

/* The accesses to a word: the last write, and the last reads; 0: none. */
struct Cell {
    uint64_t written, read;
};

struct CheckedModule {
    void *handle;
    char *base, *end;
    std::vector<CheckedVariable> variables; /* in the order of addresses */
    std::vector<Cell> cells; /* of the words from the first variable on */
};

enum CheckMode : unsigned char { kCheckOff, kCheckWarn, kCheckError };

/* The linear number of the running thread in its block. */
extern unsigned check_thread;
/* A checked kernel is running. */
extern bool check_runs;
/* The library's own kernels, if they are compiled with checks; else NULL. */
extern CheckedModule *check_library;

/* The module has been compiled with checks: "HANDLE BASE_TO_END FROM TO HOLDER NAME ...",
 * numbers relative to its base. NULL, or what is wrong. */
const char *check_module_add(const char *text);
/* The module that has the function, or NULL if it has no checks. */
CheckedModule *check_module_of(const void *function);
/* "off", "warn" or "error", of this thread's launches from now on, and of those of
 * threads that have not chosen. */
bool check_set(const char *text);
CheckMode check_mode();
/* A finding by number, as JSON; "" if it is not known any more. */
std::string check_finding(long number);
/* The number of a finding that is to be a warning; -1: none. */
long check_warning();
extern bool check_has_warnings;
Checks check_services();

/* --- what the running of a grid calls --- */

struct CheckedLaunch {
    const char *name;
    CheckedModule *module; /* NULL: not checked */
    CheckMode mode;
    std::vector<Operand> operands;
    std::vector<std::pair<const char *, const char *>> others; /* not looked at */
    std::shared_ptr<Cost> counted = {}; /* what the clock is to know; NULL: nothing */
};
/* Describes a launch of the library's, whose operands are whole blocks. */
void check_describe(const char *name, Body &body, size_t bytes,
                    const std::vector<Slot> &slots);
/* Adds the block that the pointer leads to, if it is one; its field is given. */
void check_add_block(CheckedLaunch &launch, int argument, void *value, int field);
void check_begin(const CheckedLaunch &launch, dim3 grid, dim3 block, char *shared,
                 size_t bytes);
void check_end();
void check_block();   /* a block begins */
void check_arrives(); /* the running thread, at a barrier */
void check_barrier(); /* all threads of the block have reached it */
/* These lanes of the warp whose first thread is `first` have met at __syncwarp. */
void check_warp(unsigned first, unsigned mask);
/* The running thread arrives at a barrier of some threads, and whether all have with it;
 * it goes on after one. */
void check_arrives_at(const void *barrier, bool last);
void check_passes(const void *barrier);

/* Threads wait that cannot continue, one of them for lanes of its warp or at a barrier. */
struct Stuck {
    bool warp;
    unsigned thread, other; /* one that waits, and one that it waits for */
    bool other_waits;       /* too, elsewhere; else it has finished */
    unsigned barrier, lanes, finished;
    unsigned mask;
};
/* The grid's fault, in `text`; false: it is a warning alone. */
bool check_stuck(const Stuck &stuck, char *text, size_t size);
/* The running thread is not in the mask that it passes. */
void check_excluded(unsigned mask);

/* Takes a moment of the clock that accesses have. */
uint64_t check_time();
void check_forget(char *base, size_t bytes); /* the memory is given back */

/* --- what the checks call (fiber.cpp) --- */
/* Gives the grid, whose threads do not run, an error; without a text, of a warning. */
void stop_grid(const char *text);
bool on_own_stack(const void *address);
/* Lets the other threads of the block run; false if they cannot. */
bool give_way();

/* --- between the files of the checks --- */

enum Kind : unsigned char {
    kRace,
    kOutOfBounds,
    kMisaligned,
    kNullPointer,
    kWrongMemory,
    kUninitialized,
    kBarrier,
    kWarp,
    kWait
};
enum Space : unsigned char { kGlobal, kShared, kLocal, kUnknown };

struct Finding {
    Kind kind = kRace;
    Space space = kUnknown;
    bool write = false, other_write = false, same_warp = false;
    Place place, other;
    long block = -1; /* linear; -1: the running one */
    unsigned thread = 0;
    long other_thread = -1; /* -1: unknown */
    long other_block = -1;  /* linear; -1: the same, or unknown */
    const void *address = nullptr;
    unsigned bytes = 0;
    std::string more; /* members of the JSON */
};

/* The running launch, for what reports. */
struct Checked {
    const CheckedLaunch *launch = nullptr;
    dim3 grid, block;
    char *shared = nullptr;
    size_t shared_bytes = 0;
};
extern Checked checked;
/* Reports; returns in the mode "warn" unless the access must not happen (`last`). */
void report(const Finding &finding, bool last);
std::string describe_place(const void *address, size_t bytes);
/* Whether it is neither in memory of the launch nor near it. */
bool check_is_elsewhere(const void *address);

} /* namespace sim */

#endif
