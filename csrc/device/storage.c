#include "device/storage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gil.h"
#include "base/lock.h"
#include "device/fusion.h"
#include "device/ipc.h"
#include "device/memory_history.h"
#include "device/released.h"
#include "device/stream.h"

static dt_free_list freed;
static int64_t alive[DT_DEVICE_SLOTS];

/* The first of each device whose memory is not the host's. */
static dt_storage *listed[DT_DEVICE_SLOTS];

/* An out-of-memory error lists shapes of this many dimensions. */
#define ASKED_NDIM ((int)(sizeof((dt_storage *)0)->asked.shape / sizeof(int64_t)))

static void link_up(dt_storage *storage)
{
    dt_storage **first = &listed[dt_device_slot(storage->device)];
    storage->asked.ndim = DT_ASKED_NOTHING;
    storage->line = -1;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    storage->previous = NULL;
    storage->next = *first;
    if (*first)
        (*first)->previous = storage;
    *first = storage;
    dt_unlock(lock);
}

static void unlink_from(dt_storage *storage)
{
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    if (storage->previous)
        storage->previous->next = storage->next;
    else
        listed[dt_device_slot(dt_device_home(storage->device))] = storage->next;
    if (storage->next)
        storage->next->previous = storage->previous;
    dt_unlock(lock);
}

static void count(dt_device device, int64_t change)
{
    (void)DT_COUNT_ADD(&alive[dt_device_slot(device)], change);
}

int64_t dt_storage_count(dt_device device)
{
    return __atomic_load_n(&alive[dt_device_slot(device)], __ATOMIC_RELAXED);
}

/* --- for messages --- */

void dt_storage_asked_for(dt_storage *storage, dt_dtype dtype, int ndim,
                          const int64_t *shape)
{
    if (ndim > ASKED_NDIM)
        return;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    storage->asked.dtype = (unsigned char)dtype;
    storage->asked.ndim = (unsigned char)ndim;
    memcpy(storage->asked.shape, shape, (size_t)ndim * sizeof *shape);
    dt_unlock(lock);
}

void dt_storages_visit(dt_device device,
                       void (*visit)(void *context, const dt_storage *storage),
                       void *context)
{
    int64_t room = 0, count = 0;
    dt_storage *copies = NULL;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    for (dt_storage *s = listed[dt_device_slot(device)]; s; s = s->next)
        room++;
    copies = calloc((size_t)room + 1, sizeof *copies);
    for (dt_storage *s = listed[dt_device_slot(device)]; s && copies; s = s->next)
        copies[count++] = *s;
    dt_unlock(lock);
    for (int64_t i = 0; i < count; i++) /* it may allocate and free */
        visit(context, &copies[i]);
    free(copies);
}

/* --- allocation and release --- */

/* A storage without memory. NULL after dt_fail. */
static dt_storage *start_storage(dt_device device, size_t bytes)
{
    if (bytes && dt_device_check_memory(device))
        return NULL;
    device = dt_device_home(device);
    dt_storage *storage =
        dt_struct_new(&freed, _Alignof(dt_storage), sizeof(dt_storage));
    if (!storage) {
        dt_fail(DT_ERROR_HOST_MEMORY,
                "no memory for a tensor's %zu bytes of bookkeeping; free "
                "some tensors first",
                sizeof(dt_storage));
        return NULL;
    }
    storage->data = NULL;
    storage->bytes = bytes;
    storage->references = 1;
    storage->version = 0;
    storage->device = device;
    storage->borrowed = false;
    storage->read_only = false;
    storage->exported = false;
    storage->pinned = false;
    storage->resized = false;
    storage->lent = 0;
    storage->stream = NULL;
    if (!dt_device_is_host(device))
        link_up(storage);
    count(device, 1);
    return storage;
}

/* Ends a storage whose memory is released. */
static void end(dt_storage *storage)
{
    const dt_device home = dt_device_home(storage->device);
    if (!dt_device_is_host(home))
        unlink_from(storage);
    count(home, -1);
    dt_struct_free(&freed, storage);
}

/* Operations that wait, and other processes, held memory that the program let go of: if
 * there is too little, it is taken back first. */
int dt_storage_allocate(dt_device device, dt_stream stream, size_t bytes, void **out)
{
    const dt_backend *backend = dt_backend_of(device);
    const int status = backend->allocate(stream, bytes, out);
    if (!status || (dt_fusion_bound <= 1 && !dt_ipc_collect(NULL)))
        return status;
    dt_error_clear();
    return dt_fusion_run("want of memory") ? -1 : backend->allocate(stream, bytes, out);
}

dt_storage *dt_storage_new(dt_device device, size_t bytes)
{
    dt_storage *storage = start_storage(device, bytes);
    if (!storage)
        return NULL;
    device = storage->device;
    if (dt_device_is_host(device) && bytes <= DT_INLINE_BYTES) {
        storage->data = storage->inline_data;
    } else if (bytes) {
        dt_stream stream = dt_stream_current(device);
        storage->stream = stream.handle;
        if (dt_storage_allocate(device, stream, bytes, &storage->data)) {
            end(storage);
            if (dt_error_slot()->code == DT_ERROR_DEVICE_MEMORY)
                dt_storages_append_largest(device, &listed[dt_device_slot(device)]);
            return NULL;
        }
        storage->line = dt_memory_history_line();
    }
    return storage;
}

dt_storage *dt_storage_new_borrowed(dt_device device, void *data, size_t bytes,
                                    bool read_only, void (*release)(void *owner),
                                    void *owner)
{
    dt_storage *storage = start_storage(device, bytes);
    if (!storage)
        return NULL;
    storage->data = data;
    storage->borrowed = true;
    storage->read_only = read_only;
    storage->release = release;
    storage->owner = owner;
    return storage;
}

static void release_pinned(void *data)
{
    dt_backends[DT_ACCELERATOR]->pinned_release(data);
}

dt_storage *dt_storage_new_pinned(int device, size_t bytes)
{
    const dt_backend *backend = dt_backend_get(DT_ACCELERATOR);
    void *data = NULL;
    if (!backend || backend->pinned_allocate(device, bytes ? bytes : 1, &data))
        return NULL;
    dt_storage *storage = dt_storage_new_borrowed(dt_device_make(DT_CPU, 0), data,
                                                  bytes, false, release_pinned, data);
    if (storage)
        storage->pinned = true;
    else
        backend->pinned_release(data);
    return storage;
}

static __attribute__((noinline)) void return_borrowed(const dt_storage *storage)
{
    bool yielded = dt_gil_yield(false); /* the owner may be a Python object */
    storage->release(storage->owner);
    dt_gil_yield(yielded);
}

void dt_storage_release(dt_storage *storage)
{
    if (!storage || !dt_count_down(&storage->references))
        return;
    if (storage->borrowed)
        return_borrowed(storage);
    else if (storage->resized)
        dt_storage_free_resized(storage);
    else if (storage->data && storage->data != storage->inline_data)
        dt_backend_of(storage->device)
            ->release(storage->device.index, storage->data, storage->bytes);
    end(storage);
}

int dt_storage_use(dt_storage *storage)
{
    /* External memory does not come from the allocator. */
    if (!dt_device_has_streams(storage->device) || !storage->data || storage->borrowed)
        return 0;
    dt_stream stream = dt_stream_current(storage->device);
    if (stream.handle == storage->stream)
        return 0;
    const dt_backend *backend = dt_backend_of(storage->device);
    return backend->program_records ? 0 : backend->record_use(stream, storage->data);
}

int dt_storage_use_pinned(dt_storage *storage, dt_device gpu)
{
    return dt_backend_of(gpu)->record_use(dt_stream_current(gpu), storage->owner);
}
