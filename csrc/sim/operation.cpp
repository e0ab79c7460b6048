/* The operations of the backend that the work belongs to: an observer of its activity
 * (device/activity.h), while a clock wants to know. */
#include "device/activity.h"
#include "internal.h"

using namespace sim;

static bool has_work(const dt_activity *activity)
{
    return activity->device.type == DT_CUDA && activity->kind < DT_ACTIVITY_WAIT;
}

static int begin_operation(const dt_activity *activity, void **)
{
    if (!has_work(activity))
        return 0;
    Entry in(Entry::kNothing);
    if (clock_runs() && !in.error) {
        const bool kernel = activity->kind == DT_ACTIVITY_KERNEL;
        clock_begin_operation(kernel ? (double)activity->bytes : 0, activity->flops,
                              activity->dtype, activity->work != DT_WORK_CHAIN);
    }
    return 0;
}

static void end(const dt_activity *activity, void *, int)
{
    if (!has_work(activity))
        return;
    Entry in(Entry::kNothing);
    if (clock_runs() && !in.error)
        clock_end_operation();
}

/* The observer, if it is needed; else NULL. */
const dt_observer *sim_observer()
{
    static const dt_observer observer = [] {
        dt_observer made = {};
        made.kernels = true;
        made.begin = begin_operation;
        made.end = end;
        return made;
    }();
    Entry in(Entry::kNothing);
    return state().options.cards.empty() ? nullptr : &observer;
}

void sim::host_staged(size_t bytes)
{
    Entry in(Entry::kNothing);
    if (clock_runs())
        clock_stage(bytes);
}

/* The clock of the first card, and the times of this thread's last operation on it. */
int64_t sim_clock()
{
    Entry in(Entry::kNothing);
    return clock_runs() ? clock_now() : 0;
}

bool sim_span(int64_t *begin, int64_t *end)
{
    Entry in(Entry::kNothing);
    return clock_runs() && clock_span(begin, end);
}
