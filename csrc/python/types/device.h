/* `device`: a device as a Python value, and which one is meant where none is named.
 *
 * In a named device (from Python) index may be -1: "cuda" without a number. Resolving
 * fills in the current one and checks that it exists; the core only sees resolved
 * devices. */
#ifndef DT_PYTHON_TYPES_DEVICE_H
#define DT_PYTHON_TYPES_DEVICE_H

#include "python/module.h"

typedef struct dt_device_object {
    PyObject_HEAD dt_device named; /* index -1: none given */
} dt_device_object;

static inline bool dt_device_object_check(PyObject *value)
{
    return Py_TYPE(value) == dt_py.device_type;
}

/* A device object for a named device: a new reference (shared where possible). */
PyObject *dt_device_object_new(dt_device named);

/* The device object of something that lives on `device`: CPU devices then have no
 * index. */
PyObject *dt_device_object_of(dt_device device);

/* What value (a device, a string, an int) names, without looking whether it exists.
 * `function` and `argument` are for the message. -1 with TypeError or RuntimeError. */
int dt_device_from_python(const char *function, const char *argument, PyObject *value,
                          dt_device *out);

/* Fills in the current device for index -1 and checks that the device exists. -1 with
 * an exception set. */
int dt_device_resolve(dt_device named, dt_device *out);

/* Where factories make tensors that name no device: `with device(...)`,
 * set_default_device, else the CPU; by thread. Resolved. -1 with an exception set. */
int dt_default_device(dt_device *out);

/* The calling thread's default device, as named, and setting it. */
dt_device dt_default_device_named(void);
void dt_default_device_set(dt_device named);
int dt_default_device_push(dt_device named); /* -1 with MemoryError */
void dt_default_device_pop(void);

/* The calling thread's current CUDA device, 0 at first: what "cuda" means. Setting does
 * not check. */
int dt_python_current_device(void);
void dt_python_set_current_device(int index);

#endif
