/* DLPack's capsules: one over a tensor's memory, and a tensor over one's. The protocol
 * around them is Python (pydevtensor/_functions/interop.py). A capsule comes from
 * outside, so everything in it is checked. */
#include "device/released.h"
#include "python/functions.h"
#include "python/types/dtype.h"

#include <stdlib.h>

/* --- what every library shares --- */

enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };
enum { DL_READ_ONLY = 1, DL_COPIED = 2 };
enum { DL_MAJOR = 1, DL_MINOR = 0 };

typedef struct dl_array {
    void *data;
    int32_t device_type, device_id;
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

static uint8_t code_of(dt_dtype dtype)
{
    if (dtype == DT_BOOL)
        return DL_BOOL;
    if (dt_dtype_is_complex(dtype))
        return DL_COMPLEX;
    if (dt_dtype_is_float(dtype))
        return dtype == DT_BFLOAT16 ? DL_BFLOAT : DL_FLOAT;
    return dt_dtype_is_signed(dtype) ? DL_INT : DL_UINT;
}

static int bits_of(dt_dtype dtype)
{
    return 8 * (int)dt_dtype_size(dtype);
}

/* Calls the deleter of a capsule's contents. Other libraries' may use Python, and take
 * the GIL themselves. */
static void delete_legacy(void *contents)
{
    dl_legacy *managed = contents;
    if (managed->deleter && Py_IsInitialized())
        managed->deleter(managed);
}
static void delete_versioned(void *contents)
{
    dl_versioned *managed = contents;
    if (managed->deleter && Py_IsInitialized())
        managed->deleter(managed);
}

/* --- exporting --- */

/* The owner of an export's memory, behind the capsule's struct. No Python objects: the
 * consumer may release it in any thread. */
typedef struct export {
    union {
        dl_legacy legacy;
        dl_versioned versioned;
    };
    dt_storage *storage;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
} export;

static void free_export(void *kept)
{
    dt_storage_release(((export *)kept)->storage);
    free(kept);
    dt_concurrent_end();
}
static void free_legacy(dl_legacy *managed)
{
    free_export(managed->context);
}
static void free_versioned(dl_versioned *managed)
{
    free_export(managed->context);
}

/* Releases the contents of a capsule that was not consumed. */
static void drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, LEGACY))
        delete_legacy(PyCapsule_GetPointer(capsule, LEGACY));
    else if (PyCapsule_IsValid(capsule, VERSIONED))
        delete_versioned(PyCapsule_GetPointer(capsule, VERSIONED));
}

DT_PUBLIC(to_capsule, "_to_capsule(input: Tensor, type: int, id: int, versioned: bool, "
                      "copied: bool)")
{
    const dt_tensor *t = v[0].tensor;
    bool versioned = v[3].b, copied = v[4].b;
    if (dt_device_check_memory(dt_tensor_device(t)))
        return dt_raise();
    export *kept = calloc(1, sizeof *kept);
    if (!kept)
        return PyErr_NoMemory();
    dl_array *array = versioned ? &kept->versioned.array : &kept->legacy.array;
    for (int d = 0; d < t->ndim; d++) {
        kept->shape[d] = t->shape[d];
        kept->strides[d] = t->strides[d];
    }
    array->data = dt_tensor_lend(t);
    array->device_type = (int32_t)v[1].i;
    array->device_id = (int32_t)v[2].i;
    array->ndim = t->ndim;
    array->lanes = 1;
    array->shape = kept->shape;
    array->strides = kept->strides;
    array->code = code_of((dt_dtype)t->dtype);
    array->bits = (uint8_t)bits_of((dt_dtype)t->dtype);
    kept->storage = dt_storage_retain(t->storage);
    dt_concurrent_begin(); /* the consumer may free it in a thread without the GIL */
    if (versioned) {
        kept->versioned.major = DL_MAJOR;
        kept->versioned.minor = DL_MINOR;
        kept->versioned.context = kept;
        kept->versioned.deleter = free_versioned;
        kept->versioned.flags = (t->storage->read_only ? (uint64_t)DL_READ_ONLY : 0) |
                                (copied ? (uint64_t)DL_COPIED : 0);
    } else {
        kept->legacy.context = kept;
        kept->legacy.deleter = free_legacy;
    }
    PyObject *capsule =
        PyCapsule_New(kept, versioned ? VERSIONED : LEGACY, drop_capsule);
    if (!capsule)
        free_export(kept);
    return capsule;
}

/* --- importing --- */

/* A capsule that was not consumed: its array, and how to release its contents. */
typedef struct opened {
    const dl_array *array;
    uint64_t flags;
    void *contents;
    void (*release)(void *contents);
    const char *used; /* its name when it is consumed */
} opened;

static int open_capsule(PyObject *capsule, opened *out)
{
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        *out = (opened){&managed->array, managed->flags, managed, delete_versioned,
                        USED_VERSIONED};
        if (managed->major == DL_MAJOR)
            return 0;
        return DT_SET_ERROR(
            PyExc_BufferError,
            "from_dlpack(): the capsule has DLPack version %u.%u, and version %d "
            "is supported; ask its producer with max_version=(%d, %d)",
            (unsigned)managed->major, (unsigned)managed->minor, DL_MAJOR, DL_MAJOR,
            DL_MINOR);
    }
    if (PyCapsule_IsValid(capsule, LEGACY)) {
        dl_legacy *managed = PyCapsule_GetPointer(capsule, LEGACY);
        *out = (opened){&managed->array, 0, managed, delete_legacy, USED_LEGACY};
        return 0;
    }
    char text[DT_DESCRIBE_TEXT];
    bool used = PyCapsule_IsValid(capsule, USED_LEGACY) ||
                PyCapsule_IsValid(capsule, USED_VERSIONED);
    return DT_SET_ERROR(
        PyExc_RuntimeError,
        used ? "from_dlpack(): the capsule was already consumed%.0s; ask for "
               "another with __dlpack__()"
             : "from_dlpack(): the argument is %s; give an object with "
               "__dlpack__(), or its capsule",
        dt_describe(capsule, text, sizeof text));
}

static int refuse(const char *reason)
{
    return DT_SET_ERROR(PyExc_BufferError, "from_dlpack(): %s", reason);
}

static int dtype_from(const dl_array *array)
{
    for (int d = 0; d < DT_NDTYPES && array->lanes == 1; d++)
        if (code_of((dt_dtype)d) == array->code && bits_of((dt_dtype)d) == array->bits)
            return d;
    return DT_SET_ERROR(
        PyExc_BufferError,
        "from_dlpack(): no tensor type matches DLPack's type code %d with %d "
        "bits and %d lanes; convert first, e.g. to float32",
        array->code, array->bits, array->lanes);
}

/* Reads and checks the array's geometry into t, and the bytes from its first element
 * to the end of its last. */
static int read_geometry(const dl_array *array, dt_tensor *t, size_t *reach)
{
    int dtype = dtype_from(array);
    if (dtype < 0)
        return -1;
    if (array->ndim < 0 || array->ndim > DT_MAX_NDIM)
        return DT_SET_ERROR(
            PyExc_BufferError,
            "from_dlpack(): the array has %d dimensions, a tensor has 0 to "
            "%d; reshape it first",
            (int)array->ndim, DT_MAX_NDIM);
    if (array->ndim && !array->shape)
        return refuse("the capsule has no shape; ask its producer for a valid one");
    t->dtype = (unsigned char)dtype;
    t->ndim = (unsigned char)array->ndim;
    for (int d = 0; d < t->ndim; d++)
        t->shape[d] = array->shape[d];
    size_t size = dt_dtype_size((dt_dtype)dtype);
    int64_t numel = dt_shape_numel("from_dlpack", t->ndim, t->shape, size);
    if (numel < 0)
        return dt_raise_status();
    dt_shape_strides(t->ndim, t->shape, t->strides);
    int64_t last = 0, bytes = 0;
    for (int d = 0; d < t->ndim && numel; d++) {
        int64_t steps;
        if (array->strides && t->shape[d] > 1)
            t->strides[d] = array->strides[d];
        if (t->strides[d] < 0)
            return refuse("the array has a negative stride, which tensors cannot have; "
                          "copy it first");
        if (__builtin_mul_overflow(t->shape[d] - 1, t->strides[d], &steps) ||
            __builtin_add_overflow(last, steps, &last))
            goto too_far;
    }
    if (numel && (__builtin_add_overflow(last, 1, &last) ||
                  __builtin_mul_overflow(last, (int64_t)size, &bytes)))
        goto too_far;
    *reach = (size_t)bytes;
    return 0;
too_far:
    return refuse(
        "the strides exceed the address space; ask the capsule's producer for "
        "a valid one");
}

DT_PUBLIC(capsule_facts, "_capsule_facts(capsule: Any)")
{
    opened o;
    if (open_capsule(args->slots[0], &o) < 0)
        return NULL;
    return Py_BuildValue("iiN", o.array->device_type, o.array->device_id,
                         PyBool_FromLong((o.flags & DL_COPIED) != 0));
}

DT_PUBLIC(from_capsule, "_from_capsule(capsule: Any, device: Device)")
{
    opened o;
    size_t bytes = 0;
    if (open_capsule(args->slots[0], &o) < 0)
        return NULL;
    dt_tensor_object *object = dt_tensor_object_new();
    if (!object)
        return NULL;
    if (read_geometry(o.array, &object->tensor, &bytes) < 0)
        goto fail;
    char *data = bytes ? (char *)o.array->data + o.array->byte_offset : NULL;
    if (bytes && !o.array->data) {
        refuse("the capsule has no memory for its elements; ask its producer for a "
               "valid one");
        goto fail;
    }
    if ((uintptr_t)data & (dt_dtype_size((dt_dtype)object->tensor.dtype) - 1)) {
        refuse("the elements are not aligned in memory; copy the array first");
        goto fail;
    }
    PyObject *made =
        dt_tensor_object_over(object, v[1].device, data, bytes,
                              (o.flags & DL_READ_ONLY) != 0, o.release, o.contents);
    if (made)
        PyCapsule_SetName(args->slots[0], o.used);
    return made;
fail:
    Py_DECREF((PyObject *)object);
    return NULL;
}

static const dt_function rows[] = {
    DT_FUNCTION(to_capsule, "_to_capsule", "A DLPack capsule of the tensor's memory.",
                "", ""),
    DT_FUNCTION(capsule_facts, "_capsule_facts",
                "A capsule's device type and number, and whether it has a copy.", "",
                ""),
    DT_FUNCTION(from_capsule, "_from_capsule",
                "A Tensor over the memory of a capsule, which is consumed.", "", ""),
};

int dt_setup_dlpack(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
