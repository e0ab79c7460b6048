#include "base/interrupt.h"

#include <time.h>

#include "base/error.h"

/* Milliseconds between two checks. */
#define INTERVAL 50

static bool (*is_requested)(void);

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

int dt_interrupt_check_rarely(int64_t *due)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    bool first = !*due;
    if (now < *due)
        return 0;
    *due = now + INTERVAL;
    return first ? 0 : dt_interrupt_check();
}
