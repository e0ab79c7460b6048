/* Devices as values, and what is asked of them. */
#ifndef DT_DEVICE_DEVICE_H
#define DT_DEVICE_DEVICE_H

#include "device/registry.h"

/* A device with its index (the CPU's is 0); only the binding knows devices without
 * one. */
typedef struct dt_device {
    signed char type; /* a dt_device_type */
    signed char index;
} dt_device;

static inline dt_device dt_device_make(dt_device_type type, int index)
{
    dt_device device = {(signed char)type, (signed char)index};
    return device;
}
static inline bool dt_device_equal(dt_device a, dt_device b)
{
    return a.type == b.type && a.index == b.index;
}
static inline bool dt_device_is_cpu(dt_device device)
{
    return device.type == DT_CPU;
}

/* Whether its memory is the host's: host code reads and writes its tensors. Bytes have to
 * be copied to and from any other device. */
static inline bool dt_device_is_host(dt_device device)
{
    return dt_device_rows[(int)device.type]->host_memory;
}

/* Whether there is one device of its type, which is named without an index. */
static inline bool dt_device_is_single(dt_device device)
{
    return dt_device_rows[(int)device.type]->single;
}

/* Whether its tensors have elements. Those of any other device have a shape and a type. */
static inline bool dt_device_has_data(dt_device device)
{
    return !dt_device_rows[(int)device.type]->no_data;
}

/* Whether its work is queued on streams, and may run after the call that queued it has
 * returned. Work of any other device is done then. */
static inline bool dt_device_has_streams(dt_device device)
{
    return dt_device_rows[(int)device.type]->streams;
}

/* The device that a storage was on before its memory was released (device/released.h), and
 * is on again when it has some; any other device itself. */
static inline dt_device dt_device_home(dt_device device)
{
    const bool cpu = device.index == DT_MAX_DEVICES - 1;
    return __builtin_expect(device.type != DT_RELEASED, 1)
               ? device
               : dt_device_make(cpu ? DT_CPU : DT_ACCELERATOR, cpu ? 0 : device.index);
}
static inline dt_device dt_device_released(dt_device home)
{
    return dt_device_make((dt_device_type)DT_RELEASED,
                          dt_device_is_cpu(home) ? DT_MAX_DEVICES - 1 : home.index);
}

/* The device's number among those of all types, for arrays. */
#define DT_DEVICE_SLOTS (DT_MAX_DEVICE_TYPES * DT_MAX_DEVICES)
static inline int dt_device_slot(dt_device device)
{
    return device.type * DT_MAX_DEVICES + device.index;
}

/* "cpu" or "cuda:1" into text (DT_DEVICE_TEXT bytes); returns text. */
#define DT_DEVICE_TEXT 32
char *dt_device_text(dt_device device, char *text);

/* The backend of a device in use. Cannot fail: a tensor on the device keeps it
 * loaded. */
static inline const dt_backend *dt_backend_of(dt_device device)
{
    return dt_backends[(int)device.type];
}

/* How calls that dt_backend.halves names take floats of this type: float16 and bfloat16 as
 * float32, in copies, where the backend does not take them as they are. */
static inline dt_dtype dt_stored_dtype(dt_device device, dt_dtype dtype)
{
    return dt_backend_of(device)->halves ? dtype : dt_dtype_compute(dtype);
}

/* 0 if the device exists; -1 after dt_fail, naming those that do. */
int dt_device_check(dt_device device);

#endif
