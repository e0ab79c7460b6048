/* The cost of a checked kernel's accesses on a card: the counts of kernel.report(), of
 * some of a launch's blocks, for the clock. */
#ifndef DT_SIM_PRICE_H
#define DT_SIM_PRICE_H

#include "check.h"
#include "clock.h"

namespace sim {

/* The running launch has a cost to find out, in price_begin's `cost`. */
extern bool price_runs;
/* A launch begins and ends; `cost` gets its bytes and accesses, if its kind is kKernel
 * before and kCounted afterwards. */
void price_begin(Cost *cost);
void price_end();
/* A block begins, in the order of its index; whether its accesses are counted (all: those of
 * all blocks are). */
bool price_block(uint64_t number, bool all);
/* Whether one more of the running thread's accesses in the block is counted. */
bool price_takes(bool all);
/* An access to device memory, at a word of the shadow memory, of any block. */
void price_touch(const Cell *cell, unsigned bytes, bool write);
/* A request of a warp took so much: sectors of global memory, or turns at the banks of
 * shared memory; `rounds` of an atomic at one address. */
void price_request(bool shared, bool write, unsigned long long sectors,
                   unsigned long long waves, unsigned long long rounds);
/* A request reads these sectors. */
void price_reads(const std::vector<uintptr_t> &sectors);

/* Bytes of device memory, as far as a card's cache does not have them. */
double price_bytes(const dt_sim_card &card, const Cost &cost);
/* Nanoseconds of the busiest multiprocessor of a card, for a cost of the kind kCounted. */
double price_accesses(const dt_sim_card &card, const Cost &cost);

} /* namespace sim */

#endif
