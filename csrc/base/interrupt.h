/* Requests to stop (Ctrl-C), which long work answers where it can stop: between nodes of
 * a backward pass, between chunks of a kernel, between steps of a layer. The work then
 * fails as any other does; what it has written stays. */
#ifndef DT_BASE_INTERRUPT_H
#define DT_BASE_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets what tells whether the calling thread is to stop. */
void dt_interrupt_start(bool (*requested)(void));

/* -1 after dt_fail if the calling thread is to stop. May run a signal handler of the
 * program, and take the GIL: not for where a lock is held. */
int dt_interrupt_check(void);

/* The same for loops of short chunks: checks every 50 ms. */
int dt_interrupt_check_rarely(void);

/* Whether dt_interrupt_check_rarely would check now; the next check is then 50 ms later.
 * For a caller that must release a lock first. */
bool dt_interrupt_is_due(void);

/* When the calling thread's next check is due: a time, or one of these. */
#define DT_INTERRUPT_NEVER INT64_MAX /* no long call has begun */
#define DT_INTERRUPT_LATER 0         /* 50 ms after the first loop of a call begins */

/* Sets the time of the next check and returns the previous one. A call begins with
 * DT_INTERRUPT_LATER, so that a short call always completes. */
int64_t dt_interrupt_set_due(int64_t due);

#ifdef __cplusplus
}
#endif
#endif
