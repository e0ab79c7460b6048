#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/relax.h"
#include "cpu/runtime/group_block.h"

/* No rank misses a wakeup, on any processor: a rank that counts up writes the counter, then
 * reads the number of sleepers; a rank that sleeps adds itself to that number, then reads
 * the counter. The four accesses have one order that all ranks agree on
 * (SEQ_CST), so at least one of the two sees the other's write. A counter that is read as
 * reached also makes visible what its rank wrote before: SEQ_CST includes ACQUIRE and
 * RELEASE. */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wake(dt_group_count *count)
{
    if (__atomic_load_n(&count->sleepers, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &count->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void dt_group_count_up(dt_group_count *count)
{
    __atomic_fetch_add(&count->value, 1, __ATOMIC_SEQ_CST);
    wake(count);
}

/* Wakes all that may wait for this rank, so that they look at its state. */
void dt_group_state_set(dt_group *group, dt_group_state state)
{
    __atomic_store_n(&group->slots[group->rank].state, state, __ATOMIC_SEQ_CST);
    dt_group_count_up(group->bell);
    for (int r = 0; r < group->size; r++) {
        wake(&dt_group_way(group, group->rank, r)->sent);
        wake(&dt_group_way(group, r, group->rank)->taken);
    }
}

/* --- failures --- */

static const char given_up[] = "has given up after an error of its own";

/* Writes why a rank will not arrive. Whether that is so. */
static bool find_problem(const dt_group *group, int rank, char text[DT_GROUP_NEWS])
{
    const char *found = "";
    switch (__atomic_load_n(&group->slots[rank].state, __ATOMIC_SEQ_CST)) {
    case DT_GROUP_LEFT:
        snprintf(text, DT_GROUP_NEWS, "has left the process group%s%.*s%s",
                 *group->slots[rank].why ? " (" : "", DT_GROUP_NEWS - 40,
                 group->slots[rank].why, *group->slots[rank].why ? ")" : "");
        return true;
    case DT_GROUP_FAILED:
        found = given_up;
        break;
    case DT_GROUP_HERE:
        if (rank != group->rank && !dt_group_lives(group, rank))
            found = "has ended without leaving the process group";
        break;
    default:
        break;
    }
    snprintf(text, DT_GROUP_NEWS, "%s", found);
    return *text;
}

void dt_group_tell(const dt_group *group, int rank, char problem[DT_GROUP_NEWS],
                   char last[DT_GROUP_NEWS])
{
    dt_group_text call = group->slots[rank].last; /* which it may be writing now */
    call.key[sizeof call.key - 1] = call.line[sizeof call.line - 1] = 0;
    snprintf(last, DT_GROUP_NEWS, "%s%s%s%s", *call.key ? "was " : "is not made yet",
             call.key, dt_group_at(call.line), call.line);
    find_problem(group, rank, problem);
}

/* Fails a call of this rank because of another one. The group cannot be used any more: no
 * rank knows how far the others have come. */
static int give_up(dt_group *group, const dt_group_call *call, int rank,
                   const char *problem)
{
    char now[DT_GROUP_NEWS], last[DT_GROUP_NEWS];
    dt_group_tell(group, rank, now, last);
    dt_group_state_set(group, DT_GROUP_FAILED);
    return dt_fail(
        DT_ERROR_RUNTIME,
        "rank %d %s, while rank %d waits for it in %s%s%s%s; its last call %s",
        dt_group_name(call, rank), problem, dt_group_name(call, group->rank),
        call->name, call->key, dt_group_at(call->line), call->line, last);
}

static int check_time(dt_group *group, const dt_group_call *call, int rank,
                      double start)
{
    char problem[80];
    if (now() - start < call->seconds)
        return 0;
    snprintf(problem, sizeof problem, "has not come within %g seconds", call->seconds);
    return give_up(group, call, rank, problem);
}

/* Fails if this rank has to stop waiting: it has left the group, or was interrupted. */
static int check_self(dt_group *group)
{
    if (dt_group_check_left(group) < 0)
        return -1;
    if (!dt_interrupt_check())
        return 0;
    dt_group_state_set(group, DT_GROUP_FAILED);
    return -1;
}

/* --- waiting --- */

/* A call waits until the counter of a rank, or with count NULL those of all ranks of the
 * group, have reached target. */
typedef struct wait {
    dt_group *group;
    dt_group_count *count;
    uint32_t target;
    int rank; /* the first that has not arrived */
} wait;

static bool reached(const dt_group_count *count, uint32_t target)
{
    return (int32_t)(__atomic_load_n(&count->value, __ATOMIC_SEQ_CST) - target) >= 0;
}

static bool is_over(wait *w)
{
    if (w->count)
        return reached(w->count, w->target);
    while (w->rank < w->group->size &&
           reached(&w->group->slots[w->rank].steps, w->target))
        w->rank++;
    return w->rank == w->group->size;
}

/* Polls for some microseconds before the thread sleeps, since waking it takes longer.
 * Yields between polls: the rank that it waits for may need this core. */
static bool spin(wait *w)
{
    double limit = 0;
    do {
        for (int i = 0; i < (w->group->crowded ? 5 : 50); i++) {
            if (is_over(w))
                return true;
            DT_RELAX();
        }
        sched_yield();
        if (!limit)
            limit = now() + 1e-4;
    } while (now() < limit);
    return false;
}

static void sleep_until_changed(wait *w)
{
    struct timespec limit = {.tv_nsec = 50000000};
    dt_group_count *on = w->count ? w->count : w->group->bell;
    __atomic_fetch_add(&on->sleepers, 1, __ATOMIC_SEQ_CST);
    uint32_t value = __atomic_load_n(&on->value, __ATOMIC_SEQ_CST);
    if (!is_over(w))
        syscall(SYS_futex, &on->value, FUTEX_WAIT, value, &limit, NULL, 0);
    __atomic_fetch_sub(&on->sleepers, 1, __ATOMIC_SEQ_CST);
}

static int wait_for(wait *w, const dt_group_call *call)
{
    char problem[DT_GROUP_NEWS];
    if (spin(w))
        return 0;
    double start = now();
    for (;;) {
        sleep_until_changed(w);
        if (is_over(w))
            return 0;
        /* Tests is_over again: a rank may leave right after it has arrived. */
        if (find_problem(w->group, w->rank, problem) && !is_over(w))
            return give_up(w->group, call, w->rank, problem);
        if (check_time(w->group, call, w->rank, start) < 0 || check_self(w->group) < 0)
            return -1;
    }
}

int dt_group_await(dt_group *group, const dt_group_call *call, int rank,
                   dt_group_count *count, uint32_t target)
{
    return wait_for(&(wait){group, count, target, rank}, call);
}

/* Fails if a rank has given up. */
static int check(dt_group *group, const dt_group_call *call, int rank)
{
    dt_group_state state = __atomic_load_n(&group->slots[rank].state, __ATOMIC_SEQ_CST);
    return state == DT_GROUP_FAILED ? give_up(group, call, rank, given_up) : 0;
}

/* The last one to arrive rings the bell: each rank is woken once in a step. Of two that
 * arrive last at the same time, at least one sees that all are there. */
int dt_group_meet(dt_group *group, const dt_group_call *call)
{
    dt_group_count *mine = &group->slots[group->rank].steps;
    wait all = {group, NULL, mine->value + 1, 0};
    __atomic_store_n(&mine->value, all.target, __ATOMIC_SEQ_CST);
    if (is_over(&all)) {
        if (__atomic_load_n(&group->bell->sleepers, __ATOMIC_SEQ_CST))
            dt_group_count_up(group->bell);
    } else if (wait_for(&all, call) < 0)
        return -1;
    for (int r = 0; r < group->size; r++)
        if (r != group->rank && check(group, call, r) < 0)
            return -1;
    return 0;
}

int dt_group_look(dt_group *group, const dt_group_call *call, int rank, double *start)
{
    struct timespec step = {.tv_nsec = 100000};
    if (*start == 0)
        *start = now();
    nanosleep(&step, NULL);
    return check_time(group, call, rank, *start) < 0 ? -1 : check_self(group);
}
