/* Counts of a checked kernel's accesses to memory, for kernel.report() and the clock. */
#ifndef DT_SIM_COUNT_H
#define DT_SIM_COUNT_H

#include "check.h"

namespace sim {

extern bool count_runs; /* in the running block */
void count_begin();     /* forgets what was counted; the next launch counts */
void count_access(Space space, const void *address, unsigned bytes, bool write,
                  bool atomic, Place place);
/* At a barrier and at the end of a block: lanes meet. */
void count_settle();
void count_block(); /* the next block begins */
/* Ends the counting. The module, and rows by location, from number `first` on, as many
 * as a reply holds. */
std::string count_rows(size_t first);

} /* namespace sim */

#endif
