/* A clock for simulated GPUs: how long the program would take on a card
 * (docs/clock.md).
 *
 * Work gets its times when it is queued, in the order of the program, from the host's
 * time then; when a schedule runs it has no influence. Several cards may have a clock
 * each over the same run; the first answers queries and events. Times are nanoseconds
 * since the devices were opened. */
#ifndef DT_SIM_CLOCK_H
#define DT_SIM_CLOCK_H

#include <stdint.h>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "sim/cards.h"

namespace sim {

struct Stream;
struct Moment;
struct Work;

enum { kMaxCards = 8 };

/* A time for each clock. */
struct Times {
    int64_t of[kMaxCards] = {};
};

/* The end of a copy: a device's number, or the host. */
enum { kOnHost = -1 };

/* The work of a launch's threads on memory (price.h), in all multiprocessors. */
struct Accesses {
    double requests = 0; /* of warps */
    double waves = 0;    /* cycles of a multiprocessor's own memory */
    double sectors = 0;  /* of 32 bytes, between it and the second-level cache */
    double waiting = 0;  /* cycles that warps wait for data */
    double once = 0;     /* bytes of device memory, each counted once */
    size_t shared = 0;   /* bytes of dynamic shared memory of a block */
};

/* The known cost of a unit of work when it is queued. */
struct Cost {
    /* kProduct: of matrices, by a library, which tensor cores compute. kCounted: of a kernel
     * whose accesses were counted. */
    enum Kind { kNothing, kKernel, kCounted, kProduct, kCopy, kFill } kind = kNothing;
    double blocks = 0, threads = 0; /* of a kernel's grid */
    double bytes = 0, flops = 0; /* of what is counted, a product, a copy and a fill */
    Accesses accesses;           /* of what is counted */
    dt_dtype dtype = DT_FLOAT32; /* of a product */
    bool tf32 = false;
    int target = 0, source = 0; /* of a copy */
    bool pinned = false;        /* its host memory is */
};

/* Of `batch` products of m by k with k by n matrices. */
Cost product_cost(double m, double n, double k, double batch, dt_dtype dtype,
                  bool tf32);

enum Host { kMeasured, kFixed };

extern bool clock_started;
/* This thread's calls take no time: they stand for what a card would do otherwise. */
extern thread_local bool clock_hidden;
/* Whether there is a card, and so a clock: all functions below need it. */
inline bool clock_runs()
{
    return clock_started && !clock_hidden;
}

/* The clocks for the cards begin at 0. */
void clock_start(const std::vector<const dt_sim_card *> &cards, Host host, int devices);

/* The host enters and leaves the simulator: what passes in between is not its time. */
void clock_enter();
void clock_leave();

/* Gives the work its times. kRun, kRecord and kWait. */
void clock_queue(Stream &stream, Work &work);
/* Work that a stream captures: no card runs it, and a replay of it will cost what its
 * operation says. */
void clock_capture(Stream &stream, Work &work);
/* The host launches a graph. */
void clock_launch();
/* The host copies from memory that is not pinned to memory that is. */
void clock_stage(size_t bytes);
/* Work may wait for the end of its operation to get its times: now is the end. */
void clock_settle();
/* The stream goes on when the moment has come. */
void clock_order(Stream &stream, const Moment &moment);

/* The first card's time at which work that others share, as a collective, could begin on a
 * stream; the host queues it. Its own time for nullptr. */
int64_t clock_ready(const Stream *stream);
/* The stream goes on at a time of the first card, or the host for nullptr. When it had
 * nothing else to do. */
int64_t clock_meet(Stream *stream, int64_t time);

/* The host waits: for a stream's work, a moment, a device, or all devices. */
void clock_wait(const Stream &stream);
void clock_wait(const Moment &moment);
void clock_wait(int device);
void clock_wait_all();
/* The host asks whether the first card has done a stream's work, or come to a
 * moment. */
bool clock_reached(const Stream &stream);
bool clock_reached(const Moment &moment);
/* Milliseconds of the first card. */
float clock_between(const Moment &from, const Moment &to);

/* This thread begins and ends an operation of the backend: the kernels that it queues
 * share the operation's bytes and FLOPs. Operations nest: a fused kernel, which the program
 * has not asked for, runs before the operation that does not join it. */
void clock_begin_operation(double bytes, double flops, dt_dtype dtype,
                           bool asked = true);
void clock_end_operation();
/* When the work of this thread's operation begins and ends on the first card, or of the
 * last one, if it is in none; false if there is no work. */
bool clock_span(int64_t *begin, int64_t *end);

/* The first card's time. */
int64_t clock_now();
/* All clocks as JSON. */
std::string clock_report();

} /* namespace sim */

#endif
