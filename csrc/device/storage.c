#include "device/storage.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/stream.h"

/* --- storage structs: a free list per thread --- */

#define KEPT 64
typedef struct storage_cache {
    int count;
    dt_storage *kept[KEPT];
} storage_cache;

static _Thread_local storage_cache *cache;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static int64_t alive[DT_NDEVICE_TYPES][DT_MAX_DEVICES];

static struct {
    pthread_mutex_t lock;
    dt_storage *first[DT_MAX_DEVICES];
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* An out-of-memory error lists this many storages, with shapes of this many
 * dimensions. */
#define LISTED        5
#define ASKED_NDIM    ((int)(sizeof((dt_storage *)0)->asked.shape / sizeof(int64_t)))
#define ASKED_NOTHING 255

static void forget(void *kept)
{
    storage_cache *mine = kept;
    cache = NULL;
    while (mine->count)
        free(mine->kept[--mine->count]);
    free(mine);
}

static void make_key(void)
{
    pthread_key_create(&key, forget);
}

static dt_storage *take(void)
{
    if (cache && cache->count)
        return cache->kept[--cache->count];
    void *memory = NULL;
    if (posix_memalign(&memory, _Alignof(dt_storage), sizeof(dt_storage))) {
        dt_fail(DT_ERROR_HOST_MEMORY,
                "no memory for a tensor's %zu bytes of bookkeeping; free "
                "some tensors first",
                sizeof(dt_storage));
        return NULL;
    }
    return memory;
}

static void put_back(dt_storage *storage)
{
    if (!cache) {
        pthread_once(&key_once, make_key);
        cache = calloc(1, sizeof *cache);
        if (cache)
            pthread_setspecific(key, cache);
    }
    if (cache && cache->count < KEPT)
        cache->kept[cache->count++] = storage;
    else
        free(storage);
}

static void link_up(dt_storage *storage)
{
    dt_storage **first = &gpu.first[(int)storage->device.index];
    storage->asked.ndim = ASKED_NOTHING;
    pthread_mutex_lock(&gpu.lock);
    storage->previous = NULL;
    storage->next = *first;
    if (*first)
        (*first)->previous = storage;
    *first = storage;
    pthread_mutex_unlock(&gpu.lock);
}

static void unlink_from(dt_storage *storage)
{
    pthread_mutex_lock(&gpu.lock);
    if (storage->previous)
        storage->previous->next = storage->next;
    else
        gpu.first[(int)storage->device.index] = storage->next;
    if (storage->next)
        storage->next->previous = storage->previous;
    pthread_mutex_unlock(&gpu.lock);
}

static void count(dt_device device, int64_t change)
{
    __atomic_fetch_add(&alive[(int)device.type][(int)device.index], change,
                       __ATOMIC_RELAXED);
}

int64_t dt_storage_count(dt_device device)
{
    return __atomic_load_n(&alive[(int)device.type][(int)device.index],
                           __ATOMIC_RELAXED);
}

/* --- out of memory --- */

void dt_storage_asked_for(dt_storage *storage, dt_dtype dtype, int ndim,
                          const int64_t *shape)
{
    if (ndim > ASKED_NDIM)
        return;
    pthread_mutex_lock(&gpu.lock);
    storage->asked.dtype = (unsigned char)dtype;
    storage->asked.ndim = (unsigned char)ndim;
    memcpy(storage->asked.shape, shape, (size_t)ndim * sizeof *shape);
    pthread_mutex_unlock(&gpu.lock);
}

/* Inserts the storage into the list, largest first, if it is one of the largest. */
static void insert(dt_storage *list, const dt_storage *storage)
{
    int at = LISTED;
    while (at && storage->bytes > list[at - 1].bytes)
        at--;
    if (at == LISTED)
        return;
    memmove(&list[at + 1], &list[at], (size_t)(LISTED - 1 - at) * sizeof *list);
    list[at] = *storage;
}

/* Appends the largest live storages of the device to the pending error. */
static void append_largest(dt_device device)
{
    dt_storage largest[LISTED]; /* copies, because the lock is released before they
                                   are printed */
    int64_t live = 0;
    memset(largest, 0, sizeof largest);
    pthread_mutex_lock(&gpu.lock);
    for (dt_storage *s = gpu.first[(int)device.index]; s; s = s->next) {
        live++;
        insert(largest, s);
    }
    pthread_mutex_unlock(&gpu.lock);
    char text[DT_DEVICE_TEXT], shape[DT_SHAPE_TEXT];
    dt_fail_append(" %" PRId64 " tensor%s alive on %s", live,
                   live == 1 ? "'s memory is" : "s' memories are",
                   dt_device_text(device, text));
    for (int i = 0; i < LISTED && largest[i].bytes; i++) {
        const dt_storage *s = &largest[i];
        dt_fail_append("%s%.2f MiB",
                       i ? ", " : "; the largest: ", (double)s->bytes / (1 << 20));
        if (s->asked.ndim != ASKED_NOTHING)
            dt_fail_append(
                " (%s %s)", dt_dtype_name((dt_dtype)s->asked.dtype),
                dt_shape_text(s->asked.ndim, s->asked.shape, shape, sizeof shape));
    }
    dt_fail_append(
        ". Free some (del x), use smaller batches, or move tensors to the CPU.");
}

/* --- allocation and release --- */

static void start(dt_storage *storage, dt_device device, size_t bytes)
{
    storage->data = NULL;
    storage->bytes = bytes;
    storage->references = 1;
    storage->version = 0;
    storage->device = device;
    storage->borrowed = false;
    storage->read_only = false;
    storage->pinned = false;
    storage->stream = NULL;
}

dt_storage *dt_storage_new(dt_device device, size_t bytes)
{
    dt_storage *storage = take();
    if (!storage)
        return NULL;
    start(storage, device, bytes);
    if (dt_device_is_cpu(device) && bytes <= DT_INLINE_BYTES) {
        storage->data = storage->inline_data;
    } else if (bytes) {
        dt_stream stream = dt_stream_current(device);
        storage->stream = stream.handle;
        if (dt_backend_of(device)->allocate(stream, bytes, &storage->data)) {
            put_back(storage);
            if (dt_error_slot()->code == DT_ERROR_DEVICE_MEMORY)
                append_largest(device);
            return NULL;
        }
    }
    if (!dt_device_is_cpu(device))
        link_up(storage);
    count(device, 1);
    return storage;
}

dt_storage *dt_storage_new_borrowed(dt_device device, void *data, size_t bytes,
                                    bool read_only, void (*release)(void *owner),
                                    void *owner)
{
    dt_storage *storage = take();
    if (!storage)
        return NULL;
    start(storage, device, bytes);
    storage->data = data;
    storage->borrowed = true;
    storage->read_only = read_only;
    storage->release = release;
    storage->owner = owner;
    if (!dt_device_is_cpu(device))
        link_up(storage);
    count(device, 1);
    return storage;
}

static void release_pinned(void *data)
{
    dt_backends[DT_CUDA]->pinned_release(data);
}

dt_storage *dt_storage_new_pinned(int device, size_t bytes)
{
    const dt_backend *backend = dt_backend_get(DT_CUDA);
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

void dt_storage_release(dt_storage *storage)
{
    if (!storage || __atomic_sub_fetch(&storage->references, 1, __ATOMIC_ACQ_REL))
        return;
    count(storage->device, -1);
    if (!dt_device_is_cpu(storage->device))
        unlink_from(storage);
    if (storage->borrowed)
        storage->release(storage->owner);
    else if (storage->data && storage->data != storage->inline_data)
        dt_backend_of(storage->device)
            ->release(storage->device.index, storage->data, storage->bytes);
    put_back(storage);
}

int dt_storage_use(dt_storage *storage)
{
    /* External memory does not come from the allocator. */
    if (dt_device_is_cpu(storage->device) || !storage->data || storage->borrowed)
        return 0;
    dt_stream stream = dt_stream_current(storage->device);
    if (stream.handle == storage->stream)
        return 0;
    return dt_backend_of(storage->device)->record_use(stream, storage->data);
}
