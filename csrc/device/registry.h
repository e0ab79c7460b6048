/* The types of devices: a row each, and the backend that serves the devices of a type. */
#ifndef DT_DEVICE_REGISTRY_H
#define DT_DEVICE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_device_type {
    DT_CPU,
    DT_CUDA,
    DT_META,         /* device/meta.h */
    DT_NDEVICE_TYPES /* that the library has backends of; programs in C may add some */
} dt_device_type;

/* A program means a device of this type when it gives an index alone; its driver pins
 * memory of the host. */
#define DT_ACCELERATOR DT_CUDA

#define DT_MAX_BACKENDS     5  /* device/works.c has a set of functions for each */
#define DT_MAX_DEVICE_TYPES 14 /* those, types that have a name alone, and: */
#define DT_RELEASED         13 /* device/released.h */
#define DT_MAX_DEVICES      64 /* of a type */

enum { DT_WHY_TEXT = 1024 };

typedef struct dt_device_row {
    const char *name;    /* "cuda", in "cuda:1" */
    const char *title;   /* "CUDA", in "there is no CUDA device" */
    const char *without; /* a sentence: what to do where there is no such device */
    bool host_memory;    /* dt_device_is_host */
    bool streams;        /* dt_device_has_streams */
    bool single;         /* dt_device_is_single */
    bool no_data;        /* dt_device_has_data is false */
    /* Finds and starts the backend at the first use of a device, once, with the lock of
     * the backends. NULL after it wrote to why, in sentences that end with what to do.
     * *library: that the backend is from, if it is from one. NULL here: the backend is
     * there from the start. */
    const dt_backend *(*open)(char why[DT_WHY_TEXT], void **library);
} dt_device_row;

/* The types of devices, by their numbers. NULL: there is no such type. */
extern const dt_device_row *dt_device_rows[DT_MAX_DEVICE_TYPES];

/* The backends, each from its first use on. */
extern const dt_backend *dt_backends[DT_MAX_DEVICE_TYPES];

/* Given to dt_registry_start, for the functions `open`. */
typedef struct dt_registry {
    const dt_backend *cpu;      /* whose calls nobody observes */
    char *libraries, *packages; /* see dt_registry_start */
} dt_registry;
extern dt_registry dt_registry_given;

/* Initializes the registry, once, before any other call: the CPU's backend, the directory
 * of the other backends' libraries, and the directories of Python packages in which they
 * look for libraries of their vendors (colon-separated). The strings are copied. */
int dt_registry_start(const dt_backend *cpu, const char *libraries,
                      const char *packages);

/* Adds a type with a backend, whose row stays the caller's; returns its number. -1 after dt_fail if the
 * name is taken or there is no room. Call it before devices are used. */
int dt_registry_add(const dt_device_row *row);

/* The type of this name, of `length` characters; -1: there is none. */
int dt_device_type_find(const char *name, size_t length);

/* The backend of a type, borrowed, opened at the first use. NULL after dt_fail if there is
 * none; dt_device_why says why. */
const dt_backend *dt_backend_get(dt_device_type type);

/* Number of usable devices of the type. Never fails. */
int dt_device_count(dt_device_type type);

/* Why there is no device of the type, or why some are unusable; "" if there is nothing to
 * report. Borrowed. */
const char *dt_device_why(dt_device_type type);

/* The library that the type's backend is from, or NULL. Its tests and controls are in it
 * (csrc/sim). */
void *dt_device_library(dt_device_type type);

#ifdef __cplusplus
}
#endif
#endif
