/* Records the activity of devices (device/activity.h) while a program wants to know. */
#ifndef DT_DEVICE_RECORDER_H
#define DT_DEVICE_RECORDER_H

#include "device/activity.h"

typedef struct dt_record {
    const char *name; /* a literal */
    char *shapes;     /* of what a kernel reads, "[2, 3], [3, 4]"; NULL: not recorded */
    int64_t begin, end; /* of the host's call, by dt_recorder_now */
    int64_t bytes;      /* read and written, copied, or allocated */
    double flops;
    void *stream;
    void *events[2]; /* around the work of a GPU; NULL: none */
    /* The work on a GPU, in the same clock; 0 until dt_recorder_resolve. */
    int64_t device_begin, device_end;
    int line;   /* dt_activity_line */
    int node;   /* dt_activity_node */
    int thread; /* gettid() */
    bool waits; /* the host waits for the device */
    dt_activity_kind kind;
    dt_device device;
} dt_record;

/* Records up to `capacity` events, and counts those beyond. device_times: also when the
 * work of GPUs begins and ends, by events. lines: also the line of the program. -1
 * after dt_fail; DT_ERROR_RUNTIME if it records already. Call with the GIL, as all of
 * these. */
int dt_recorder_start(int64_t capacity, bool device_times, bool lines, bool shapes);
void dt_recorder_stop(void);
bool dt_recorder_running(void);

/* Nanoseconds of CLOCK_MONOTONIC, or of a simulated card (docs/clock.md). */
int64_t dt_recorder_now(void);

/* Waits for the work of GPUs and reads its times. -1 after dt_fail. */
int dt_recorder_resolve(void);

/* The records of the last start, borrowed until the next or dt_recorder_clear;
 * *dropped: how many found no room. */
const dt_record *dt_recorder_read(int64_t *count, int64_t *dropped);
void dt_recorder_clear(void);

#endif
