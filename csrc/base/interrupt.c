#include "base/interrupt.h"

#include <time.h>

#include "base/error.h"

/* Milliseconds between two checks. */
#define INTERVAL 50

static bool (*is_requested)(void);
static _Thread_local int64_t due = DT_INTERRUPT_NEVER;

void dt_interrupt_start(bool (*requested)(void))
{
    is_requested = requested;
}

int dt_interrupt_check(void)
{
    if (!is_requested || !is_requested())
        return 0;
    return dt_fail(DT_ERROR_RUNTIME, "interrupted; what is written in place may be so "
                                     "in part");
}

bool dt_interrupt_is_due(void)
{
    if (due == DT_INTERRUPT_NEVER)
        return false;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (now < due)
        return false;
    bool later = due == DT_INTERRUPT_LATER;
    due = now + INTERVAL;
    return !later;
}

int dt_interrupt_check_rarely(void)
{
    return dt_interrupt_is_due() ? dt_interrupt_check() : 0;
}

int64_t dt_interrupt_set_due(int64_t next)
{
    int64_t before = due;
    due = next;
    return before;
}
