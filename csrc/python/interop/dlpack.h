/* DLPack: the structs that every library shares. */
#ifndef DT_PYTHON_INTEROP_DLPACK_H
#define DT_PYTHON_INTEROP_DLPACK_H

#include "python/types/device.h"
#include "python/functions.h"

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_BOOL = 6 };
enum { DL_READ_ONLY = 1, DL_COPIED = 2 };
enum { DL_MAJOR = 1, DL_MINOR = 0 };

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_array {
    void *data;
    dl_device device;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements; strides NULL: row-major */
    uint64_t byte_offset;
} dl_array;

/* Contents of a capsule named "dltensor". */
typedef struct dl_legacy {
    dl_array array;
    void *context;
    void (*deleter)(struct dl_legacy *);
} dl_legacy;

/* Contents of a capsule named "dltensor_versioned". */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_array array;
} dl_versioned;

/* Names of capsules; a consumer renames the capsule, so that it is consumed once. */
#define LEGACY         "dltensor"
#define VERSIONED      "dltensor_versioned"
#define USED_LEGACY    "used_dltensor"
#define USED_VERSIONED "used_dltensor_versioned"

/* The DLPack code of an element type. */
void dt_dlpack_type(dt_dtype dtype, uint8_t *code, uint8_t *bits);

/* 1: other libraries can access the device's memory; *p has its properties unless it
 * is the CPU. 0: it is simulated. -1 with an exception set. */
int dt_dlpack_is_real(dt_device device, dt_device_properties *p);

/* The device of a DLPack device, the current one if several share that GPU. -1 with
 * BufferError, prefixed with op_name. */
int dt_dlpack_find_device(const char *op_name, dl_device named, dt_device *out);

#endif
