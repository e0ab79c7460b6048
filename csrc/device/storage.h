/* Storage: a reference-counted piece of one device's memory, which tensors look into.
 */
#ifndef DT_DEVICE_STORAGE_H
#define DT_DEVICE_STORAGE_H

#include "device/device.h"

/* Data of up to this many bytes on the CPU lives inside the storage itself: one
 * allocation instead of two for the tiny tensors that programs make by the thousand. */
#define DT_INLINE_BYTES 64

typedef struct dt_storage {
    void *data; /* NULL when bytes is 0 */
    size_t bytes;
    int references;
    unsigned version; /* how often it was written in place (csrc/autograd asks) */
    dt_device device;
    bool borrowed; /* the memory is a stranger's, given back through release */
    bool read_only;
    bool pinned;  /* page-locked: GPUs copy from it by themselves */
    void *stream; /* the backend's handle of the stream that it was allocated for */
    /* Of borrowed memory: what to call, with what, when the last reference goes. */
    void (*release)(void *owner);
    void *owner;
    /* Storages of a GPU are linked, so that an error can name the largest. */
    struct dt_storage *previous, *next;
    union {
        _Alignas(16) unsigned char inline_data[DT_INLINE_BYTES];
        /* Of a GPU: the tensor that asked for the memory, for messages. */
        struct {
            unsigned char dtype, ndim;
            int64_t shape[DT_INLINE_BYTES / 8 - 1];
        } asked;
    };
} dt_storage;

/* New memory for the queue that is current on the device (device/stream.h), contents
 * undefined; bytes may be 0. The caller owns one reference. NULL after dt_fail, which
 * for a GPU lists what takes up its memory. */
dt_storage *dt_storage_new(dt_device device, size_t bytes);

/* A storage over memory of someone else's on the device; release(owner) is called when
 * the last reference goes, from whichever thread that is, and may come while a GPU's
 * work on the memory is still queued. NULL after dt_fail (release is not called). */
dt_storage *dt_storage_new_borrowed(dt_device device, void *data, size_t bytes,
                                    bool read_only, void (*release)(void *owner),
                                    void *owner);

/* Memory on the CPU that is page-locked by the driver of GPU number `device`, contents
 * undefined; bytes may be 0. The caller owns one reference. NULL after dt_fail. */
dt_storage *dt_storage_new_pinned(int device, size_t bytes);

/* Notes what tensor a GPU's storage was made for, so that an error can name it. One
 * of more dimensions than there is room for is not named. */
void dt_storage_asked_for(dt_storage *storage, dt_dtype dtype, int ndim,
                          const int64_t *shape);

static inline dt_storage *dt_storage_retain(dt_storage *storage)
{
    __atomic_fetch_add(&storage->references, 1, __ATOMIC_RELAXED);
    return storage;
}

/* Gives one reference back. NULL is allowed. Never waits for a device. */
void dt_storage_release(dt_storage *storage);

/* Says that work on the device's current stream uses the storage, so that its memory is
 * not handed out again before that work is done. */
int dt_storage_use(dt_storage *storage);

/* How many storages are alive on the device, for leak checks. */
int64_t dt_storage_count(dt_device device);

#endif
