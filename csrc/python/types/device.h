/* `device`: devices as Python values, and the current and default device.
 *
 * A "named" device (from Python) may have index -1: "cuda" without an index.
 * Resolving fills in the current device and checks that it exists; the core only
 * gets resolved devices. */
#ifndef DT_PYTHON_TYPES_DEVICE_H
#define DT_PYTHON_TYPES_DEVICE_H

#include "python/module.h"

typedef struct dt_device_object {
    PyObject_HEAD dt_device named; /* index -1: not given */
} dt_device_object;

static inline bool dt_device_object_check(PyObject *value)
{
    return Py_TYPE(value) == dt_py.device_type;
}

/* The device object of a named device: a new reference. */
PyObject *dt_device_object_new(dt_device named);

/* The device object of a tensor's device: CPU devices have no index then. */
PyObject *dt_device_object_of(dt_device device);

/* Converts a device, string or int, without checking that the device exists.
 * `function` and `argument` are for the message. -1 with TypeError or RuntimeError. */
int dt_device_from_python(const char *function, const char *argument, PyObject *value,
                          dt_device *out);

/* The type of devices of this name. -1 with RuntimeError. */
int dt_device_type_from_python(const char *function, const char *name,
                               dt_device_type *out);

/* Converts None, an int, a string or a device to a device of DT_ACCELERATOR that exists:
 * None is the current one. -1 with an exception set. */
int dt_take_accelerator(const char *function, PyObject *value, dt_device *out);

/* (handle, what keeps it alive) of an event, which it takes over. NULL with an exception
 * set. */
PyObject *dt_event_handle(dt_device device, void *event);

/* Fills in the current device for index -1 and checks that the device exists. -1
 * with an exception set. */
int dt_device_resolve(dt_device named, dt_device *out);

/* The device of new tensors if none is given: `with device(...)`,
 * set_default_device, else the CPU; per thread. Resolved. -1 with an exception set. */
int dt_default_device(dt_device *out);

/* `with device(...)`: sets the calling thread's default device, and restores it. */
int dt_default_device_push(dt_device named); /* -1 with MemoryError */
void dt_default_device_pop(void);

/* The calling thread's current device of DT_ACCELERATOR, initially 0: what "cuda" means. Setting
 * it does not check it. */
int dt_python_current_device(void);
void dt_python_set_current_device(int index);

#endif
