/* Devices as values, and the registry of backends. */
#ifndef DT_DEVICE_DEVICE_H
#define DT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/backend.h"

/* DEVICE_TYPE(ID, name): one line per device type. */
#define DT_DEVICE_TYPES(DEVICE_TYPE)                                                   \
    DEVICE_TYPE(CPU, cpu)                                                              \
    DEVICE_TYPE(CUDA, cuda)

typedef enum dt_device_type {
#define DEVICE_TYPE(ID, name) DT_##ID,
    DT_DEVICE_TYPES(DEVICE_TYPE)
#undef DEVICE_TYPE
        DT_NDEVICE_TYPES
} dt_device_type;

#define DT_MAX_DEVICES   64
#define DT_MAX_SIMULATED 32 /* simulated or virtual devices that a program may choose */

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

/* "cpu" or "cuda:1" into text (DT_DEVICE_TEXT bytes); returns text. */
#define DT_DEVICE_TEXT 16
char *dt_device_text(dt_device device, char *text);

/* --- the registry of backends --- */

/* Initializes the registry, once, before any other call: the CPU backend, the
 * directory of the CUDA backends, and the directories of Python packages in which to
 * look for NVIDIA's libraries (colon-separated). The strings are copied. */
int dt_registry_start(const dt_backend *cpu, const char *libraries,
                      const char *packages);

/* Overrides PYDEVTENSOR_SIM_GPUS (simulated) or PYDEVTENSOR_VIRTUAL_GPUS (virtual GPUs
 * that share the first GPU) by a number from 0 to DT_MAX_SIMULATED, as text. `where` says
 * in messages who gave it. Fails after the first use of a CUDA device. */
int dt_registry_choose(bool simulated, const char *where, const char *text);

/* The backend of a device type, borrowed, loaded on first use. NULL after dt_fail if
 * there is none; dt_cuda_why says why. */
const dt_backend *dt_backend_get(dt_device_type type);

/* The backend of a device in use. Cannot fail: a tensor on the device keeps it
 * loaded. */
extern const dt_backend *dt_backends[DT_NDEVICE_TYPES];
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

/* Number of usable devices of the type. Never fails. */
int dt_device_count(dt_device_type type);

/* Why there is no CUDA device, or why some are unusable; "" if nothing to report.
 * Borrowed. */
const char *dt_cuda_why(void);

/* 0 if the device exists; -1 after dt_fail, naming those that do. */
int dt_device_check(dt_device device);

/* The CUDA backend's library, or NULL: tests find the simulator's controls in it
 * (csrc/sim). */
void *dt_registry_cuda_library(void);

#endif
