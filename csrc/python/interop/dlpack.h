/* DLPack: what a capsule of memory holds, as every library lays it out. */
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

/* What a capsule named "dltensor" holds. */
typedef struct dl_legacy {
    dl_array array;
    void *context;
    void (*deleter)(struct dl_legacy *);
} dl_legacy;

/* What one named "dltensor_versioned" holds. */
typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_array array;
} dl_versioned;

/* The capsules' names; a consumed one is renamed, so that nobody consumes it again. */
#define LEGACY         "dltensor"
#define VERSIONED      "dltensor_versioned"
#define USED_LEGACY    "used_dltensor"
#define USED_VERSIONED "used_dltensor_versioned"

/* The type of elements in DLPack's words. */
void dt_dlpack_type(dt_dtype dtype, uint8_t *code, uint8_t *bits);

/* 1: others can reach the memory of the device, whose properties are in *p unless it is
 * the CPU; 0: it is simulated; -1 with an exception set. */
int dt_dlpack_is_real(dt_device device, dt_device_properties *p);

/* Our device for one in DLPack's words, the current one where several are on that card.
 * -1 with BufferError, which begins with what. */
int dt_dlpack_find_device(const char *what, dl_device named, dt_device *out);

#endif
