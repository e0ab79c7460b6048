/* Which line allocated the memory of a GPU, and what was allocated and freed lately,
 * while a program wants to know. */
#ifndef DT_DEVICE_MEMORY_HISTORY_H
#define DT_DEVICE_MEMORY_HISTORY_H

#include "device/activity.h"
#include "device/memory_settings.h"

typedef struct dt_memory_event {
    int64_t time; /* microseconds since 1970 */
    void *data, *stream;
    int64_t bytes;
    int line; /* the source line that allocated; -1: none, or unknown */
    dt_device device;
    dt_memory_action action;
} dt_memory_event;

/* Keeps the last `capacity` events; 0: none, only the line of each storage. Forgets
 * earlier ones. -1 after dt_fail. Call with the GIL, as all of these. */
int dt_memory_history_start(int64_t capacity);
void dt_memory_history_stop(void);
bool dt_memory_history_running(void);

/* A dt_memory_note_fn. From any thread, without the GIL. */
void dt_memory_history_segment(int device, void *stream, void *data, int64_t bytes,
                               dt_memory_action action);

/* Calls visit for each event kept, the oldest first. */
void dt_memory_history_read(void (*visit)(void *context, const dt_memory_event *event),
                            void *context);

/* The line of this thread's last allocation; -1 if nobody wants to know. */
int dt_memory_history_line(void);

#endif
