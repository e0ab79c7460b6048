/* Storage: a reference-counted block of memory on one device, which tensors view. */
#ifndef DT_DEVICE_STORAGE_H
#define DT_DEVICE_STORAGE_H

#include "base/count.h"
#include "device/device.h"

/* CPU data of up to this many bytes is stored inline: one allocation per tiny tensor
 * instead of two. */
#define DT_INLINE_BYTES 64

#define DT_ASKED_NOTHING 255

typedef struct dt_storage {
    void *data; /* NULL when bytes is 0 */
    size_t bytes;
    int references;
    unsigned version; /* incremented by every in-line write (used by autograd) */
    dt_device device; /* dt_device_released where it has no memory */
    bool borrowed;    /* external memory, returned through release */
    bool read_only;
    bool exported; /* the program has its address */
    bool pinned;   /* page-locked: copies to and from GPUs are asynchronous */
    bool resized;  /* owner is the record of dt_storage_resize */
    int lent;      /* others that use the memory: NumPy's arrays, processes */
    int line;      /* of a GPU's: device/memory_history.h */
    void *stream;  /* handle of the stream that it was allocated on */
    /* Borrowed memory only: called when the last reference is dropped. */
    void (*release)(void *owner);
    void *owner;
    /* Storages that are not in the host's memory are linked by device, so that an error
     * can list the largest. */
    struct dt_storage *previous, *next;
    union {
        _Alignas(16) unsigned char inline_data[DT_INLINE_BYTES];
        /* Not in the host's memory: the tensor that it was allocated for, for messages;
         * ndim is DT_ASKED_NOTHING where that is unknown. */
        struct {
            unsigned char dtype, ndim;
            int64_t shape[DT_INLINE_BYTES / 8 - 1];
        } asked;
    };
} dt_storage;

/* Allocates memory on the device's current stream (device/stream.h), contents
 * undefined; bytes may be 0. The caller owns one reference. NULL after dt_fail,
 * which for a GPU lists the largest tensors. */
dt_storage *dt_storage_new(dt_device device, size_t bytes);

/* Wraps external memory on the device. release(owner) is called when the last
 * reference is dropped, from any thread, maybe while queued GPU work still uses the
 * memory. NULL after dt_fail (release is not called). */
dt_storage *dt_storage_new_borrowed(dt_device device, void *data, size_t bytes,
                                    bool read_only, void (*release)(void *owner),
                                    void *owner);

/* Allocates page-locked CPU memory through the driver of the accelerator number `device`,
 * contents undefined; bytes may be 0. The caller owns one reference. NULL after
 * dt_fail. */
dt_storage *dt_storage_new_pinned(int device, size_t bytes);

/* Records which tensor a storage was allocated for, for error messages. Not for memory of
 * the host. Ignored if the tensor has too many dimensions. */
void dt_storage_asked_for(dt_storage *storage, dt_dtype dtype, int ndim,
                          const int64_t *shape);

static inline dt_storage *dt_storage_retain(dt_storage *storage)
{
    dt_count_up(&storage->references);
    return storage;
}

/* Memory for a storage, whose other memory stays. -1 after dt_fail. */
int dt_storage_allocate(dt_device device, dt_stream stream, size_t bytes, void **out);

/* Gives the storage another size in bytes, in place; the bytes that both have stay.
 * Without any, its memory is released, and operations on its tensors fail until it has
 * some again. Then and when it shrinks it keeps room for the most that it ever had, so
 * that no tensor reaches beyond its memory. Bytes of before a release are undefined.
 * -1 after dt_fail, as for memory that others use. May copy, in stream order. */
int dt_storage_resize(dt_storage *storage, size_t bytes);

/* The most bytes that tensors on the storage may reach. */
size_t dt_storage_room(const dt_storage *storage);

/* Gives a storage of the CPU the memory of another one, of dt_storage_room at least, which
 * has a copy of its bytes. All tensors on the storage have it from then on; addresses of
 * the old memory stay until the storage ends. -1 after dt_fail. */
int dt_storage_take(dt_storage *storage, dt_storage *source);

/* Returns the memory of a storage that was resized. */
void dt_storage_free_resized(dt_storage *storage);

/* Drops one reference. NULL is allowed. Never synchronizes. */
void dt_storage_release(dt_storage *storage);

/* Records a use on the device's current stream, so that the memory is not reused
 * before the work queued there is done. Does nothing if the program records uses. */
int dt_storage_use(dt_storage *storage);

/* The same of pinned memory, on a GPU's current stream. */
int dt_storage_use_pinned(dt_storage *storage, dt_device gpu);

/* Calls visit with a copy of each live storage of a device whose memory is not the
 * host's. */
void dt_storages_visit(dt_device device,
                       void (*visit)(void *context, const dt_storage *storage),
                       void *context);

/* Appends the largest of a device's storages, which begin at *list, to the pending error. */
void dt_storages_append_largest(dt_device device, dt_storage *const *list);

/* Number of live storages on the device, for leak checks. */
int64_t dt_storage_count(dt_device device);

#endif
