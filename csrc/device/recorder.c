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
    bool on, device_times, places, shapes;
    int open; /* calls between begin and end, which may write their record */
    /* An event of each GPU that was used, and the time of its recording. */
    void *base[DT_MAX_DEVICES];
    int64_t base_time[DT_MAX_DEVICES];
} recorder;

static _Thread_local int thread_id;

/* The clock of a simulated card, if GPUs have one. */
static const dt_backend *clocked(void)
{
    const dt_backend *gpu = dt_backend_unobserved(DT_CUDA);
    return gpu && gpu->clock ? gpu : NULL;
}

int64_t dt_recorder_now(void)
{
    const dt_backend *gpu = clocked();
    if (gpu)
        return gpu->clock();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- records --- */

static void *new_event(const dt_backend *gpu, dt_stream stream)
{
    void *event = NULL;
    if (gpu->event_new(stream.device, DT_EVENT_TIMED, &event) ||
        gpu->event_record(event, stream)) {
        if (event)
            gpu->event_free(event);
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

static int begin(const dt_activity *activity, void **mark)
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
                     .place = -1,
                     .node = dt_activity_node,
                     .thread = thread_id,
                     .waits = activity->waits,
                     .kind = activity->kind,
                     .device = device};
    if (recorder.shapes)
        r->shapes = shapes_of(activity);
    if (!recorder.places)
        r->node = r->node == DT_NO_NODE ? DT_NO_NODE : -1;
    else if (activity->kind < DT_ACTIVITY_ALLOCATE)
        r->place = dt_activity_place();
    if (recorder.device_times && device.type == DT_CUDA &&
        activity->kind < DT_ACTIVITY_WAIT && !clocked() &&
        !dt_graph_is_capturing(device)) {
        const dt_backend *gpu = dt_backend_unobserved(DT_CUDA);
        dt_stream on = {device.index, activity->stream};
        if (!recorder.base[(int)device.index]) {
            recorder.base[(int)device.index] = new_event(gpu, on);
            recorder.base_time[(int)device.index] = dt_recorder_now();
        }
        r->events[0] = new_event(gpu, on);
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
    if (r->events[0]) {
        dt_stream on = {activity->device.index, activity->stream};
        r->events[1] = new_event(dt_backend_unobserved(DT_CUDA), on);
    }
    if (recorder.device_times && activity->device.type == DT_CUDA &&
        activity->kind < DT_ACTIVITY_WAIT && clocked())
        clocked()->span(&r->device_begin, &r->device_end);
    __atomic_sub_fetch(&recorder.open, 1, __ATOMIC_RELEASE);
}

static const dt_observer observer = {.kernels = true, .begin = begin, .end = end};
static const dt_observer observer_of_places = {
    .kernels = true, .places = true, .begin = begin, .end = end};

/* --- start and stop --- */

int dt_recorder_start(int64_t capacity, bool device_times, bool places, bool shapes)
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
    recorder.places = places;
    recorder.shapes = shapes;
    recorder.on = true;
    dt_observer_add(places ? &observer_of_places : &observer);
    return 0;
}

void dt_recorder_stop(void)
{
    dt_observer_remove(recorder.places ? &observer_of_places : &observer);
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
    const dt_backend *gpu = dt_backend_unobserved(DT_CUDA);
    for (int device = 0; device < DT_MAX_DEVICES; device++)
        if (recorder.base[device] && gpu->device_synchronize(device))
            return -1;
    for (int64_t i = 0; i < recorded(); i++) {
        dt_record *r = &recorder.records[i];
        float from, to;
        int device = (int)r->device.index;
        if (!r->events[0] || !r->events[1] || r->device_end)
            continue;
        if (gpu->event_elapsed(recorder.base[device], r->events[0], &from) ||
            gpu->event_elapsed(recorder.base[device], r->events[1], &to))
            return -1;
        r->device_begin = recorder.base_time[device] + (int64_t)((double)from * 1e6);
        r->device_end = recorder.base_time[device] + (int64_t)((double)to * 1e6);
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
    const dt_backend *gpu = dt_backend_unobserved(DT_CUDA);
    for (int64_t i = 0; i < recorded(); i++)
        free(recorder.records[i].shapes);
    for (int64_t i = 0; i < recorded(); i++)
        for (int k = 0; k < 2; k++)
            if (recorder.records[i].events[k])
                gpu->event_free(recorder.records[i].events[k]);
    for (int device = 0; device < DT_MAX_DEVICES; device++) {
        if (recorder.base[device])
            gpu->event_free(recorder.base[device]);
        recorder.base[device] = NULL;
    }
    /* A long call of another thread may outlive the profile: its record stays. */
    if (!__atomic_load_n(&recorder.open, __ATOMIC_ACQUIRE))
        free(recorder.records);
    recorder.records = NULL;
    recorder.capacity = recorder.taken = 0;
}
