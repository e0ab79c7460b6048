/* Requests to stop (Ctrl-C), which long work answers where it can stop: between nodes of
 * a backward pass, between pieces of a kernel, while it waits for a stream. It then
 * fails as on any other error, and keeps what it has written. */
#ifndef DT_BASE_INTERRUPT_H
#define DT_BASE_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

/* Sets what tells whether the calling thread is to stop. */
void dt_interrupt_start(bool (*requested)(void));

/* -1 after dt_fail if the calling thread is to stop. May run a signal handler of the
 * program, and take the GIL: not for where a lock is held. */
int dt_interrupt_check(void);

/* The same for loops of short pieces, whose first call passes a 0: checks now and then. */
int dt_interrupt_check_rarely(int64_t *due);

#endif
