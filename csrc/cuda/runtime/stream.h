/* Streams and events. */
#ifndef DT_CUDA_RUNTIME_STREAM_H
#define DT_CUDA_RUNTIME_STREAM_H

#include "device/backend.h"

int stream_new(int device, int priority, void **out_stream);
void stream_free(int device, void *stream);
int stream_query(dt_stream stream);
int stream_synchronize(dt_stream stream);
int event_new(int device, bool timing, void **out_event);
void event_free(void *event);
int event_record(void *event, dt_stream stream);
int event_query(void *event);
int event_synchronize(void *event);
int stream_wait_event(void *event, dt_stream stream);
int event_elapsed(void *start, void *end, float *out_milliseconds);

#endif
