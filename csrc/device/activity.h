/* Notifications of what a backend is asked to do: kernels, copies, waits, allocations.
 *
 * The first observer replaces the entries of dt_backends by backends that notify and
 * then make the call, so nothing is paid while there is no observer. */
#ifndef DT_DEVICE_ACTIVITY_H
#define DT_DEVICE_ACTIVITY_H

#include "device/device.h"
#include "device/extents.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_activity_kind {
    DT_ACTIVITY_KERNEL,
    DT_ACTIVITY_HOST_TO_DEVICE,
    DT_ACTIVITY_DEVICE_TO_HOST,
    DT_ACTIVITY_DEVICE_TO_DEVICE,
    DT_ACTIVITY_WAIT,
    DT_ACTIVITY_ALLOCATE,
    DT_ACTIVITY_FREE,
    DT_ACTIVITY_HOST_USE /* of pinned memory, outside of a backend */
} dt_activity_kind;

struct dt_tensor;

typedef struct dt_activity {
    dt_activity_kind kind;
    const char *name; /* a literal */
    dt_device device;
    void *stream;  /* NULL: the default stream, or none */
    int64_t bytes; /* read and written, copied, or allocated */
    double flops;
    dt_dtype dtype; /* of a kernel's numbers */
    bool waits;     /* the host waits for the device */
    bool asked;     /* the program asked for this wait or copy by its name */
    const struct dt_tensor *tensor; /* that is copied, where it is known */
    void *data; /* of an allocation, once it is made, and of a free */
    /* The description of a kernel or a use by the host (device/extents.h). */
    const void *call;
    dt_work work;
} dt_activity;

/* begin(activity, &mark) is called on the thread of the operation before it starts; -1
 * after dt_fail forbids it (a free cannot be). end(activity, mark, status) follows.
 * Neither needs the GIL, and either may have it. */
typedef struct dt_observer {
    bool kernels; /* of kernels, allocations and frees too */
    bool lines;   /* the nodes of a graph keep the line that made them */
    int (*begin)(const dt_activity *activity, void **mark);
    void (*end)(const dt_activity *activity, void *mark, int status); /* may be NULL */
} dt_observer;

/* Adds an observer, which stays the caller's; nothing if it observes already. Call with
 * the GIL. A call that runs on another thread may still end after the removal. */
void dt_observer_add(const dt_observer *observer);
void dt_observer_remove(const dt_observer *observer);

/* Whether an observer wants to know lines of nodes. */
extern int dt_observers_of_lines;

/* The node that this thread's backward pass runs: the line that made it, or -1. */
enum { DT_NO_NODE = -2 };
#ifndef __cplusplus /* of the core alone */
extern _Thread_local int dt_activity_node;
#endif

/* Around an operation that does not go through dt_backends alone. */
enum { DT_OBSERVERS = 8 };
typedef struct dt_observed {
    int count;
    const dt_observer *by[DT_OBSERVERS];
    void *marks[DT_OBSERVERS];
} dt_observed;

extern int dt_observers; /* how many there are */
int dt_activity_begin_observed(dt_observed *observed, const dt_activity *activity);
void dt_activity_end_observed(const dt_observed *observed, const dt_activity *activity,
                              int status);

static inline int dt_activity_begin(dt_observed *observed, const dt_activity *activity)
{
    observed->count = 0;
    return __atomic_load_n(&dt_observers, __ATOMIC_RELAXED)
               ? dt_activity_begin_observed(observed, activity)
               : 0;
}

static inline int dt_activity_end(const dt_observed *observed,
                                  const dt_activity *activity, int status)
{
    if (observed->count)
        dt_activity_end_observed(observed, activity, status);
    return status;
}

/* A number for the line of the program that runs on this thread, which the binding
 * turns into file, line and function; -1: unknown. Takes the GIL. */
int dt_activity_line(void);
/* Until the next call, all work of this thread is of that line; -1: of the line that runs.
 * Returns what was so far. */
int dt_activity_line_is(int line);
/* "train.py:31" of such a number; "" where it is unknown. Takes the GIL. */
enum { DT_LINE_TEXT = 256 };
char *dt_activity_line_text(int line, char text[DT_LINE_TEXT]);
void dt_activity_lines_set(int (*line)(void),
                           char *(*name)(int line, char text[DT_LINE_TEXT]));

/* The backend itself, whose calls nobody observes. */
const dt_backend *dt_backend_unobserved(dt_device_type type);

#ifdef __cplusplus
}
#endif

#endif
