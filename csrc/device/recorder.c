#include "device/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/shape.h"
#include "device/activity.h"
#include "device/graph.h"
#include "device/stream.h"

static struct {
    dt_record *records;
    int64_t capacity, taken; /* taken also counts the dropped */
    bool on, device_times, lines, shapes;
    int open; /* calls between begin and end, which may write their record */
    /* An event of each device that was used, and the time of its recording. */
    struct {
        void *event;
        int64_t time;
        dt_device device;
    } bases[DT_DEVICE_SLOTS];
} recorder;

static _Thread_local int thread_id;

/* The backend whose devices have a clock of their own, as simulated cards have, or NULL. */
static const dt_backend *clocked(void)
{
    for (int type = 0; type < DT_MAX_DEVICE_TYPES; type++) {
        const dt_backend *backend = dt_backend_unobserved((dt_device_type)type);
        if (backend && backend->clock)
            return backend;
    }
    return NULL;
}

static const dt_backend *backend_of(dt_device device)
{
    return dt_backend_unobserved((dt_device_type)device.type);
}

int64_t dt_recorder_now(void)
{
    const dt_backend *clock = clocked();
    if (clock)
        return clock->clock();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- records --- */

static void *new_event(dt_device device, void *stream)
{
    const dt_backend *backend = backend_of(device);
    void *event = NULL;
    if (backend->event_new(device.index, DT_EVENT_TIMED, &event) ||
        backend->event_record(event, (dt_stream){device.index, stream})) {
        if (event)
            backend->event_free(event);
        dt_error_clear(); /* the program does not fail because of recording */
        return NULL;
    }
    return event;
}

enum { SHAPES_TEXT = 512 };

static void append_shape(void *context, const dt_extent *extent)
{
    char *text = context, shape[DT_SHAPE_TEXT];
    size_t used = strlen(text);
    /* A product of two matrices is a batch of one. */
    int skipped = extent->ndim > 2 && extent->shape[0] == 1;
    if (!extent->reads || !extent->item || extent->ndim - skipped > DT_MAX_NDIM)
        return;
    dt_shape_text(extent->ndim - skipped, extent->shape + skipped, shape, sizeof shape);
    snprintf(text + used, SHAPES_TEXT - used, "%s%s", used ? ", " : "", shape);
}

/* NULL where they are unknown. */
static char *shapes_of(const dt_activity *activity)
{
    char text[SHAPES_TEXT] = "";
    if (activity->kind == DT_ACTIVITY_KERNEL)
        dt_extents(activity->work, activity->name, activity->call, append_shape, text);
    return *text ? strdup(text) : NULL;
}

/* Whether it is recorded when the device begins and ends this. */
static bool is_timed(const dt_activity *activity)
{
    return recorder.device_times && dt_device_has_streams(activity->device) &&
           activity->kind < DT_ACTIVITY_WAIT;
}

static int begin_record(const dt_activity *activity, void **mark)
{
    if (activity->kind == DT_ACTIVITY_HOST_USE)
        return 0;
    int64_t at = __atomic_fetch_add(&recorder.taken, 1, __ATOMIC_RELAXED);
    if (at >= recorder.capacity)
        return 0;
    __atomic_add_fetch(&recorder.open, 1, __ATOMIC_RELAXED);
    if (!thread_id)
        thread_id = (int)gettid();
    const dt_device device = activity->device;
    dt_record *r = *mark = &recorder.records[at];
    *r = (dt_record){.name = activity->name,
                     .bytes = activity->bytes,
                     .flops = activity->flops,
                     .stream = activity->stream,
                     .line = -1,
                     .node = dt_activity_node,
                     .thread = thread_id,
                     .waits = activity->waits,
                     .kind = activity->kind,
                     .device = device};
    if (recorder.shapes)
        r->shapes = shapes_of(activity);
    if (!recorder.lines)
        r->node = r->node == DT_NO_NODE ? DT_NO_NODE : -1;
    else if (activity->kind < DT_ACTIVITY_ALLOCATE)
        r->line = dt_activity_line();
    if (is_timed(activity) && !clocked() && !dt_graph_is_capturing(device)) {
        const int slot = dt_device_slot(device);
        if (!recorder.bases[slot].event) {
            recorder.bases[slot].event = new_event(device, activity->stream);
            recorder.bases[slot].time = dt_recorder_now();
            recorder.bases[slot].device = device;
        }
        r->events[0] = new_event(device, activity->stream);
    }
    r->begin = dt_recorder_now();
    return 0;
}

static void end(const dt_activity *activity, void *mark, int status)
{
    dt_record *r = mark;
    if (!r)
        return;
    if (!status) /* what failed or was forbidden is not an event */
        r->end = dt_recorder_now();
    if (r->events[0])
        r->events[1] = new_event(activity->device, activity->stream);
    if (is_timed(activity) && clocked())
        clocked()->span(&r->device_begin, &r->device_end);
    __atomic_sub_fetch(&recorder.open, 1, __ATOMIC_RELEASE);
}

static const dt_observer observer = {
    .kernels = true, .begin = begin_record, .end = end};
static const dt_observer observer_of_lines = {
    .kernels = true, .lines = true, .begin = begin_record, .end = end};

/* --- start and stop --- */

int dt_recorder_start(int64_t capacity, bool device_times, bool lines, bool shapes)
{
    if (recorder.on)
        return dt_fail(DT_ERROR_RUNTIME,
                       "a profile is running already; stop it before another starts");
    dt_recorder_clear();
    recorder.records = calloc((size_t)capacity, sizeof *recorder.records);
    if (!recorder.records)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the events of a profile");
    recorder.capacity = capacity;
    recorder.device_times = device_times;
    recorder.lines = lines;
    recorder.shapes = shapes;
    recorder.on = true;
    dt_observer_add(lines ? &observer_of_lines : &observer);
    return 0;
}

void dt_recorder_stop(void)
{
    dt_observer_remove(recorder.lines ? &observer_of_lines : &observer);
    recorder.on = false;
}

bool dt_recorder_running(void)
{
    return recorder.on;
}

static int64_t recorded(void)
{
    return recorder.taken < recorder.capacity ? recorder.taken : recorder.capacity;
}

int dt_recorder_resolve(void)
{
    for (int slot = 0; slot < DT_DEVICE_SLOTS; slot++) {
        const dt_device device = recorder.bases[slot].device;
        if (recorder.bases[slot].event &&
            backend_of(device)->device_synchronize(device.index))
            return -1;
    }
    for (int64_t i = 0; i < recorded(); i++) {
        dt_record *r = &recorder.records[i];
        float from, to;
        if (!r->events[0] || !r->events[1] || r->device_end)
            continue;
        const int slot = dt_device_slot(r->device);
        const dt_backend *backend = backend_of(r->device);
        void *base = recorder.bases[slot].event;
        if (backend->event_elapsed(base, r->events[0], &from) ||
            backend->event_elapsed(base, r->events[1], &to))
            return -1;
        r->device_begin = recorder.bases[slot].time + (int64_t)((double)from * 1e6);
        r->device_end = recorder.bases[slot].time + (int64_t)((double)to * 1e6);
    }
    return 0;
}

const dt_record *dt_recorder_read(int64_t *count, int64_t *dropped)
{
    *count = recorded();
    *dropped = recorder.taken - *count;
    return recorder.records;
}

void dt_recorder_clear(void)
{
    for (int64_t i = 0; i < recorded(); i++) {
        const dt_record *r = &recorder.records[i];
        free(r->shapes);
        for (int k = 0; k < 2; k++)
            if (r->events[k])
                backend_of(r->device)->event_free(r->events[k]);
    }
    for (int slot = 0; slot < DT_DEVICE_SLOTS; slot++) {
        if (recorder.bases[slot].event)
            backend_of(recorder.bases[slot].device)
                ->event_free(recorder.bases[slot].event);
        recorder.bases[slot].event = NULL;
    }
    /* A long call of another thread may outlive the profile: its record stays. */
    if (!__atomic_load_n(&recorder.open, __ATOMIC_ACQUIRE))
        free(recorder.records);
    recorder.records = NULL;
    recorder.capacity = recorder.taken = 0;
}
