/* Records what reaches the backends while a program wants to know: kernels, copies,
 * waits, allocations.
 *
 * Recording puts backends of its own into dt_backends, which note the call and pass it
 * on. So it costs nothing while it is off. */
#ifndef DT_DEVICE_RECORDER_H
#define DT_DEVICE_RECORDER_H

#include "device/device.h"

typedef enum dt_record_kind {
    DT_RECORD_KERNEL,
    DT_RECORD_HOST_TO_DEVICE,
    DT_RECORD_DEVICE_TO_HOST,
    DT_RECORD_DEVICE_TO_DEVICE,
    DT_RECORD_WAIT,
    DT_RECORD_ALLOCATE,
    DT_RECORD_FREE
} dt_record_kind;

typedef struct dt_record {
    const char *name;   /* a literal */
    int64_t begin, end; /* of the host's call, in nanoseconds of CLOCK_MONOTONIC */
    int64_t bytes;      /* read and written, copied, or allocated */
    double flops;
    void *stream;
    void *events[2]; /* around the work of a GPU; NULL: none */
    /* Of the work on a GPU, in the same clock; 0 until dt_recorder_resolve. */
    int64_t device_begin, device_end;
    int line;   /* what `where` gave; -1: nothing */
    int thread; /* gettid() */
    bool waits; /* the host waits for the device */
    dt_record_kind kind;
    dt_device device;
} dt_record;

/* Records up to `capacity` events, and counts those beyond. device_times: also when the
 * work of GPUs begins and ends, by events. where() gives a number for the program's place
 * that called, or is NULL. -1 after dt_fail; DT_ERROR_RUNTIME if it records already. Call
 * with the GIL, as all of these. */
int dt_recorder_start(int64_t capacity, bool device_times, int (*where)(void));
void dt_recorder_stop(void);

/* Waits for the work of GPUs and reads its times. -1 after dt_fail. */
int dt_recorder_resolve(void);

/* The records of the last start, borrowed until the next or dt_recorder_clear; *dropped:
 * how many found no room. */
const dt_record *dt_recorder_read(int64_t *count, int64_t *dropped);
void dt_recorder_clear(void);

extern bool dt_recording;

/* A call of the core that is noted, for what does not go through dt_backends alone: NULL
 * while nothing is recorded. */
dt_record *dt_record_begin(dt_record_kind kind, const char *name, dt_device device,
                           void *stream, int64_t bytes, double flops);
void dt_record_end(dt_record *record);

#endif
