/* A device as a value, and the backends behind device types. */
#ifndef DT_DEVICE_DEVICE_H
#define DT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/backend.h"

/* DEVICE_TYPE(ID, name): one row is one type of device. */
#define DT_DEVICE_TYPES(DEVICE_TYPE)                                                   \
    DEVICE_TYPE(CPU, cpu)                                                              \
    DEVICE_TYPE(CUDA, cuda)

typedef enum dt_device_type {
#define DEVICE_TYPE(ID, name) DT_##ID,
    DT_DEVICE_TYPES(DEVICE_TYPE)
#undef DEVICE_TYPE
        DT_NDEVICE_TYPES
} dt_device_type;

#define DT_MAX_DEVICES 64

/* Below the binding a device always has an index; the CPU's is 0. */
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

/* Starts the registry, once, before anything else of the core: the CPU's backend, the
 * directory in which the CUDA backends lie, and those in which Python packages with
 * NVIDIA's libraries may (colon-separated). The strings are copied. */
int dt_registry_start(const dt_backend *cpu, const char *libraries,
                      const char *packages);

/* Chooses simulated GPUs (simulated > 0), and virtual GPUs that share the first card
 * (virtual > 0), instead of what the environment says (PYDEVTENSOR_SIM_GPUS,
 * PYDEVTENSOR_VIRTUAL_GPUS). -1 keeps the choice as it is. Fails once a device of type
 * CUDA has been used. */
int dt_registry_choose(int simulated, int virtual_devices);

/* The backend of a device type, lent, loading it on first use. NULL after dt_fail where
 * there is none; why is then also what dt_cuda_why says. */
const dt_backend *dt_backend_get(dt_device_type type);

/* The backend of a device that something lives on, so that it is there. */
extern const dt_backend *dt_backends[DT_NDEVICE_TYPES];
static inline const dt_backend *dt_backend_of(dt_device device)
{
    return dt_backends[(int)device.type];
}

/* How many devices of the type can be used. Never fails. */
int dt_device_count(dt_device_type type);

/* Why there is no CUDA device, or why not all; "" when there is nothing to say. Lent.
 */
const char *dt_cuda_why(void);

/* 0 when the device exists; -1 after dt_fail naming those that do. */
int dt_device_check(dt_device device);

/* The library of the simulator or NULL, for its own controls in tests: see
 * csrc/cuda/sim. */
void *dt_registry_cuda_library(void);

#endif
