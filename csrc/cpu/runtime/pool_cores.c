/* Keeps the pool's workers off the core of the thread that wakes them.
 *
 * In a KVM guest Linux takes a halted core for one that the host has given to another guest
 * (vcpu_is_preempted). It then often wakes a worker on the waking thread's core, and leaves
 * both there for up to 100 ms while another core is idle: two threads are as slow as one.
 * So before a worker waits, it removes its last caller's core from its affinity. A caller on
 * another core moves the workers that wait on that core. */
#include "cpu/runtime/pool_cores.h"

#include <sched.h>
#include <unistd.h>

static struct worker {
    pid_t thread;
    int core;          /* where it waits; -1: it is working, or is being moved */
    int excluded;      /* the core removed from `allowed`; -1: none */
    cpu_set_t allowed; /* the affinity that the program has set */
    cpu_set_t bound;   /* its affinity now */
} workers[DT_POOL_MAX_THREADS];

void dt_pool_cores_add(int worker)
{
    workers[worker] = (struct worker){.core = -1, .excluded = -1};
}

/* If this fails, the scheduler chooses the core. */
static void exclude(struct worker *w, int core)
{
    cpu_set_t now;
    if (core < 0 || core >= CPU_SETSIZE ||
        sched_getaffinity(w->thread, sizeof now, &now))
        return;
    /* The program may have set another affinity meanwhile. */
    if (!CPU_EQUAL(&now, &w->bound))
        w->allowed = now;
    w->bound = w->allowed;
    CPU_CLR(core, &w->bound);
    w->excluded = core;
    if (!CPU_COUNT(&w->bound) ||
        sched_setaffinity(w->thread, sizeof w->bound, &w->bound))
        w->bound = now;
}

void dt_pool_cores_wait(int worker, int caller)
{
    struct worker *w = &workers[worker];
    if (!w->thread)
        w->thread = gettid();
    if (caller != w->excluded)
        exclude(w, caller);
    w->core = sched_getcpu();
}

void dt_pool_cores_work(int worker)
{
    workers[worker].core = -1;
}

int dt_pool_cores_post(int count)
{
    int here = sched_getcpu();
    for (int i = 0; i < count; i++) {
        if (workers[i].core != here)
            continue;
        exclude(&workers[i], here);
        workers[i].core = -1;
    }
    return here;
}
