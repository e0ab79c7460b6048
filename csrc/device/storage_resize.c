/* Storages whose size or memory changes while tensors view them.
 *
 * A kernel has the address of its operands, and other threads may resize their storage
 * while it runs without the GIL. So memory of the host is not given back before the
 * storage ends: its addresses stay, and its pages go back to the system, as zeros if they
 * are read. A GPU's memory goes back to the allocator, in stream order, unless a thread is
 * in the middle of a call; then it stays with the storage as well. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/gil.h"
#include "device/fusion.h"
#include "device/graph.h"
#include "device/memory_history.h"
#include "device/released.h"
#include "device/storage.h"
#include "device/stream.h"
#include "device/transfer.h"

/* The pages of smaller memory are not worth the call. */
#define DROPPED ((size_t)1 << 16)

typedef struct block {
    void *data;
    size_t bytes;
    struct block *next;
} block;

/* The first block is the storage's memory, unless that is NULL or inside of the struct. The
 * other blocks are earlier memory, kept because a thread may still use it. */
typedef struct record {
    size_t room; /* the most bytes that it ever had: tensors may reach so far */
    block *blocks;
} record;

static record *record_of(dt_storage *storage)
{
    record *made = storage->resized ? storage->owner : calloc(1, sizeof *made);
    if (!made || storage->resized)
        return made;
    made->room = storage->bytes;
    if (storage->data && storage->data != storage->inline_data) {
        made->blocks = malloc(sizeof *made->blocks);
        if (!made->blocks) {
            free(made);
            return NULL;
        }
        *made->blocks = (block){storage->data, storage->bytes, NULL};
    }
    if (storage->data == storage->inline_data)
        made->room = DT_INLINE_BYTES;
    storage->owner = made;
    storage->resized = true;
    return made;
}

/* Gives the pages back, and keeps the addresses. */
static void drop_pages(const block *b)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)b->data + page - 1) & ~(page - 1),
                    end = ((uintptr_t)b->data + b->bytes) & ~(page - 1);
    if (b->bytes >= DROPPED)
        madvise((void *)first, end - first, MADV_DONTNEED); /* NOLINT */
}

/* Gives the storage's memory back, or only the pages of the host's. Keeps a GPU's memory that
 * a thread may be using, and else sets data to NULL. */
static void retire(dt_storage *storage, record *r, dt_device home)
{
    block *b = r->blocks;
    if (!b || b->data != storage->data)
        return;
    if (dt_device_is_host(home)) {
        drop_pages(b);
    } else if (!dt_gil_is_released()) {
        r->blocks = b->next;
        storage->data = NULL;
        dt_backend_of(home)->release(home.index, b->data, b->bytes);
        free(b);
    }
}

/* Gives the storage memory for at least so many bytes, with the first `kept` of those that
 * it has. */
static int enlarge(dt_storage *storage, record *r, dt_device home, size_t bytes,
                   size_t kept)
{
    const dt_stream stream = dt_stream_current(home);
    /* The old memory of the host stays: twice as much each time bounds it. */
    size_t room =
        dt_device_is_host(home) && kept && bytes < 2 * r->room ? 2 * r->room : bytes;
    block *b = malloc(sizeof *b);
    if (!b)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory to resize a storage");
    if (dt_storage_allocate(home, stream, room, &b->data)) {
        if (room == bytes || dt_storage_allocate(home, stream, room = bytes, &b->data))
            goto fail;
        dt_error_clear();
    }
    if (kept && dt_device_is_host(home)) {
        memcpy(b->data, storage->data, kept);
    } else if (kept && dt_device_has_data(home) &&
               (dt_storage_use(storage) ||
                dt_transfer(home, b->data, home, storage->data, kept, NULL))) {
        dt_backend_of(home)->release(home.index, b->data, room);
        goto fail;
    }
    retire(storage, r, home);
    b->bytes = r->room = room;
    b->next = r->blocks;
    r->blocks = b;
    storage->data = b->data;
    storage->stream = stream.handle;
    storage->line = dt_memory_history_line();
    return 0;
fail:
    free(b);
    return -1;
}

int dt_storage_resize(dt_storage *storage, size_t bytes)
{
    const dt_device home = dt_device_home(storage->device);
    if (bytes == storage->bytes)
        return 0;
    if (storage->borrowed || storage->lent)
        return dt_fail(DT_ERROR_RUNTIME,
                       "the storage is not resizable, since its memory is shared: with "
                       "NumPy, another library or process, or a file, or it is "
                       "page-locked; clone() the tensor and resize that");
    if (home.index == DT_MAX_DEVICES - 1 ||
        dt_graph_check("resizing a storage", home, NULL) ||
        (dt_fusion_bound > 1 && dt_fusion_run("resizing a storage")))
        return -1;
    record *r = record_of(storage);
    if (!r)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory to resize a storage");
    if (!bytes && dt_device_has_data(home)) {
        retire(storage, r, home);
        storage->device = dt_device_released(home);
    } else {
        const bool has_memory = storage->data && bytes <= r->room;
        const size_t needs = bytes > r->room ? bytes : r->room;
        const size_t kept = storage->data ? storage->bytes : 0;
        if (!has_memory && enlarge(storage, r, home, needs, kept))
            return -1;
        storage->device = home;
    }
    storage->bytes = bytes;
    return 0;
}

/* --- the memory of another storage --- */

typedef struct taken {
    dt_storage *before; /* has the old memory, whose addresses stay */
    dt_storage *source; /* has the new one */
} taken;

static void release_taken(void *owner)
{
    taken *t = owner;
    dt_storage_release(t->before);
    dt_storage_release(t->source);
    free(t);
}

size_t dt_storage_room(const dt_storage *storage)
{
    return storage->resized ? ((const record *)storage->owner)->room : storage->bytes;
}

int dt_storage_take(dt_storage *storage, dt_storage *source)
{
    const size_t room = dt_storage_room(storage), bytes = storage->bytes;
    if (!dt_device_is_host(storage->device) || !dt_device_is_host(source->device) ||
        source->bytes < room)
        return dt_fail(DT_ERROR_RUNTIME,
                       "a storage takes memory of the CPU, of %zu bytes or more", room);
    if (dt_fusion_bound > 1 && dt_fusion_run("moving a storage"))
        return -1;
    taken *t = malloc(sizeof *t);
    if (!t)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory to move a storage");
    dt_storage *before = dt_storage_new(storage->device, 0);
    if (!before) {
        free(t);
        return -1;
    }
    if (room > bytes)
        memcpy((char *)source->data + bytes, (char *)storage->data + bytes,
               room - bytes);
    *before = *storage;
    before->references = 1;
    if (storage->data == storage->inline_data)
        before->data = NULL; /* ends with the storage */
    else if (!storage->borrowed && !storage->lent && !dt_gil_is_released())
        drop_pages(&(block){storage->data, bytes, NULL});
    *t = (taken){before, dt_storage_retain(source)};
    storage->data = source->data;
    storage->borrowed = true;
    storage->read_only = source->read_only;
    storage->resized = storage->pinned = false;
    storage->release = release_taken;
    storage->owner = t;
    return 0;
}

void dt_storage_free_resized(dt_storage *storage)
{
    const dt_device home = dt_device_home(storage->device);
    record *r = storage->owner;
    while (r->blocks) {
        block *b = r->blocks;
        r->blocks = b->next;
        dt_backend_of(home)->release(home.index, b->data, b->bytes);
        free(b);
    }
    free(r);
}
