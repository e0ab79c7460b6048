#include "device/memory_history.h"

#include <stdlib.h>
#include <time.h>

#include "base/lock.h"

/* Events wrap around. */
static struct {
    dt_memory_event *events;
    int64_t capacity, count;
    bool on;
} history;

static _Thread_local int last_line = -1;
static _Thread_local bool allocating; /* for a line, between begin and end */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void note(const dt_memory_event *event)
{
    dt_lock(DT_LOCK_MEMORY_HISTORY);
    if (history.capacity) {
        dt_memory_event *to = &history.events[history.count++ % history.capacity];
        *to = *event;
        to->time = now();
    }
    dt_unlock(DT_LOCK_MEMORY_HISTORY);
}

static int begin_event(const dt_activity *activity, void **mark)
{
    (void)mark;
    if (activity->kind == DT_ACTIVITY_ALLOCATE &&
        !dt_device_is_host(activity->device)) {
        last_line = dt_activity_line();
        allocating = true;
    }
    return 0;
}

static void end(const dt_activity *activity, void *mark, int status)
{
    const bool freed = activity->kind == DT_ACTIVITY_FREE;
    (void)mark;
    allocating = false;
    if (status || dt_device_is_host(activity->device) ||
        (!freed && activity->kind != DT_ACTIVITY_ALLOCATE))
        return;
    note(&(dt_memory_event){.data = activity->data,
                            .stream = activity->stream,
                            .bytes = activity->bytes,
                            .line = freed ? -1 : last_line,
                            .device = activity->device,
                            .action = freed ? DT_MEMORY_FREED : DT_MEMORY_ALLOCATED});
}

void dt_memory_history_segment(int device, void *stream, void *data, int64_t bytes,
                               dt_memory_action action)
{
    const bool taken =
        action == DT_MEMORY_SEGMENT_ALLOCATED || action == DT_MEMORY_SEGMENT_MAPPED;
    note(&(dt_memory_event){.data = data,
                            .stream = stream,
                            .bytes = bytes,
                            .line = taken && allocating ? last_line : -1,
                            .device = dt_device_make(DT_CUDA, device),
                            .action = action});
}

static const dt_observer observer = {.kernels = true, .begin = begin_event, .end = end};

static void keep(dt_memory_event *events, int64_t capacity)
{
    dt_lock(DT_LOCK_MEMORY_HISTORY);
    dt_memory_event *old = history.events;
    history.events = events;
    history.capacity = capacity;
    history.count = 0;
    dt_unlock(DT_LOCK_MEMORY_HISTORY);
    free(old);
}

int dt_memory_history_start(int64_t capacity)
{
    dt_memory_event *events = calloc((size_t)capacity + 1, sizeof *events);
    if (!events)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "no memory for %lld events of a memory history",
                       (long long)capacity);
    keep(events, capacity);
    history.on = true;
    dt_observer_add(&observer);
    return 0;
}

void dt_memory_history_stop(void)
{
    dt_observer_remove(&observer);
    history.on = false;
    keep(NULL, 0);
}

bool dt_memory_history_running(void)
{
    return history.on;
}

int dt_memory_history_line(void)
{
    return history.on ? last_line : -1;
}

void dt_memory_history_read(void (*visit)(void *context, const dt_memory_event *event),
                            void *context)
{
    dt_lock(DT_LOCK_MEMORY_HISTORY);
    int64_t count = history.count, capacity = history.capacity;
    dt_memory_event *copy = calloc((size_t)capacity + 1, sizeof *copy);
    for (int64_t i = count > capacity ? count - capacity : 0; copy && i < count; i++)
        copy[i % capacity] = history.events[i % capacity];
    dt_unlock(DT_LOCK_MEMORY_HISTORY);
    /* visit may free memory of a GPU, and so wait for the lock. */
    for (int64_t i = count > capacity ? count - capacity : 0; copy && i < count; i++)
        visit(context, &copy[i % capacity]);
    free(copy);
}
