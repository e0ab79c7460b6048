#include "device/activity.h"

#include "device/works.h"

int dt_observers, dt_observers_of_lines;
_Thread_local int dt_activity_node = DT_NO_NODE;

static struct {
    const dt_observer *observers[DT_OBSERVERS];
    int of_kernels; /* how many observe kernels */
} registered;

static int (*line_now)(void);
static char *(*line_text)(int line, char text[DT_LINE_TEXT]);

void dt_activity_lines_set(int (*line)(void),
                           char *(*name)(int line, char text[DT_LINE_TEXT]))
{
    line_now = line;
    line_text = name;
}

static _Thread_local int line_instead = -1;

int dt_activity_line_is(int line)
{
    const int before = line_instead;
    line_instead = line;
    return before;
}

int dt_activity_line(void)
{
    if (line_instead >= 0)
        return line_instead;
    return line_now ? line_now() : -1;
}

char *dt_activity_line_text(int line, char text[DT_LINE_TEXT])
{
    *text = 0;
    return line_text && line >= 0 ? line_text(line, text) : text;
}

/* --- notifying the observers --- */

static bool through_backend(dt_activity_kind kind)
{
    return kind == DT_ACTIVITY_KERNEL || kind >= DT_ACTIVITY_ALLOCATE;
}

int dt_activity_begin_observed(dt_observed *observed, const dt_activity *activity)
{
    for (int i = 0; i < DT_OBSERVERS; i++) {
        const dt_observer *observer =
            __atomic_load_n(&registered.observers[i], __ATOMIC_ACQUIRE);
        if (!observer || (!observer->kernels && through_backend(activity->kind)))
            continue;
        void *mark = NULL;
        if (observer->begin(activity, &mark)) {
            dt_activity_end_observed(observed, activity, -1);
            observed->count = 0;
            return -1;
        }
        observed->by[observed->count] = observer;
        observed->marks[observed->count++] = mark;
    }
    return 0;
}

void dt_activity_end_observed(const dt_observed *observed, const dt_activity *activity,
                              int status)
{
    for (int i = observed->count; i--;)
        if (observed->by[i]->end)
            observed->by[i]->end(activity, observed->marks[i], status);
}

/* --- adding and removing observers --- */

static int slot_of(const dt_observer *observer)
{
    int slot = 0;
    while (slot < DT_OBSERVERS && registered.observers[slot] != observer)
        slot++;
    return slot;
}

void dt_observer_add(const dt_observer *observer)
{
    if (slot_of(observer) < DT_OBSERVERS || slot_of(NULL) == DT_OBSERVERS)
        return;
    if (observer->kernels && !registered.of_kernels++)
        dt_works_observe();
    int slot = slot_of(NULL); /* opening a backend may have added an observer */
    __atomic_store_n(&registered.observers[slot], observer, __ATOMIC_RELEASE);
    __atomic_add_fetch(&dt_observers, 1, __ATOMIC_RELAXED);
    dt_observers_of_lines += observer->lines;
}

void dt_observer_remove(const dt_observer *observer)
{
    int slot = slot_of(observer);
    if (slot == DT_OBSERVERS)
        return;
    __atomic_store_n(&registered.observers[slot], NULL, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&dt_observers, 1, __ATOMIC_RELAXED);
    dt_observers_of_lines -= observer->lines;
    if (observer->kernels && !--registered.of_kernels)
        dt_works_restore();
}
