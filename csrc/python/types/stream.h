/* `Stream` and `Event`, for the order of work on a GPU. */
#ifndef DT_PYTHON_TYPES_STREAM_H
#define DT_PYTHON_TYPES_STREAM_H

#include "python/errors.h"
#include "python/module.h"

/* The streams that a `with stream:` replaced, to be restored at its end. */
typedef struct dt_stream_before {
    int device;
    void *stream; /* current stream of the stream's device */
    struct dt_stream_before *next;
} dt_stream_before;

typedef struct dt_stream_object {
    PyObject_HEAD dt_device device;
    void *stream; /* NULL: the default stream; streams are never destroyed
                     (device/stream.h) */
    int priority;
    dt_stream_before *before; /* the innermost `with` first */
} dt_stream_object;

/* A Stream object for an existing stream: a new reference. */
PyObject *dt_stream_object_new(dt_device device, void *stream);

static inline bool dt_stream_check(PyObject *value)
{
    return PyObject_TypeCheck(value, dt_py.stream_type);
}

static inline dt_stream dt_stream_of(PyObject *object)
{
    dt_stream_object *self = (dt_stream_object *)object;
    dt_stream stream = {self->device.index, self->stream};
    return stream;
}

/* Converts a Stream or, for None, the device's current stream. -1 with TypeError. */
int dt_stream_from_python(const char *function, PyObject *value, dt_device *device,
                          dt_stream *stream);

/* Records event (an Event) on the stream; makes the stream wait for it. Returns
 * None, or NULL with an exception set. */
PyObject *dt_event_record_on(PyObject *event, dt_device device, dt_stream stream);
PyObject *dt_event_wait_on(PyObject *event, dt_stream stream);

/* Converts None, an int, a string or a device to a GPU. -1 with an exception set. */
int dt_cuda_device_from_python(const char *function, PyObject *value, dt_device *out);

#endif
