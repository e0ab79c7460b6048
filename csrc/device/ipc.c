#include "device/ipc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "device/activity.h"
#include "device/graph.h"
#include "device/stream.h"

/* Slots of a file, whose pages take memory from their first use on. */
#define SLOTS ((uint64_t)1 << 20)
/* The most events that this process keeps: a driver has some ten thousand for all. */
#define EVENTS 1000

/* --- the sender --- */

typedef struct sent {
    struct sent *next;
    dt_storage *storage;
    void *event; /* NULL: none */
    uint64_t slot;
} sent;

static struct {
    char file[DT_SHARED_FILE];
    unsigned char *slots; /* NULL: nothing was sent */
    unsigned forks;       /* dt_forks of the process that sent: its child did not */
    uint64_t last;
    int events;
    sent *first;
} out;

static bool is_used(const unsigned char *slot)
{
    return __atomic_load_n(slot, __ATOMIC_ACQUIRE) != 0;
}

static void let_go(unsigned char *slot)
{
    __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
}

static const dt_backend *backend_of(const dt_storage *storage)
{
    return dt_backend_unobserved((dt_device_type)storage->device.type);
}

static void drop(sent *each)
{
    if (each->event) {
        backend_of(each->storage)->event_free(each->event);
        out.events--;
    }
    dt_storage_release(each->storage);
    free(each);
}

int64_t dt_ipc_collect(int64_t *left)
{
    int64_t found = 0, used = 0;
    const bool may = out.forks == dt_forks() && !dt_graphs_capturing;
    for (sent **at = &out.first; may && *at;) {
        sent *each = *at;
        if (is_used(&out.slots[each->slot])) {
            at = &each->next;
            used++;
            continue;
        }
        *at = each->next;
        drop(each);
        found++;
    }
    if (left)
        *left = used;
    return found;
}

static unsigned char *map_slots(int descriptor)
{
    void *found = mmap(NULL, SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return found == MAP_FAILED ? NULL : found;
}

/* A free slot of the process's own file. -1 after dt_fail. */
static int take_slot(uint64_t *slot)
{
    if (!out.slots || out.forks != dt_forks()) {
        int descriptor = dt_shared_file_new("pydevtensor-ipc", SLOTS, out.file);
        out.first = NULL; /* a child has none of its parent's */
        out.events = 0;
        out.forks = dt_forks();
        out.slots = descriptor < 0 ? NULL : map_slots(descriptor);
        if (!out.slots) {
            if (descriptor >= 0)
                close(descriptor);
            return dt_fail(DT_ERROR_RUNTIME,
                           "no shared memory to send a GPU's tensor (%s); free memory "
                           "or file descriptors (ulimit -n)",
                           strerror(errno));
        }
    }
    for (uint64_t tried = 0; tried < SLOTS; tried++) {
        out.last = (out.last + 1) % SLOTS;
        if (!is_used(&out.slots[out.last])) {
            *slot = out.last;
            return 0;
        }
    }
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%d tensors of GPUs that were sent to other processes are still used "
        "there; send fewer at a time",
        (int)SLOTS);
}

/* Records an event after the work that is queued for the storage, or waits for that work. */
static int order(sent *each, dt_ipc_memory *to)
{
    const dt_device device = each->storage->device;
    const dt_backend *backend = backend_of(each->storage);
    const dt_stream stream = dt_stream_current(device);
    to->ordered = out.events < EVENTS;
    if (!to->ordered)
        return backend->stream_synchronize(stream);
    if (backend->event_new(device.index, DT_EVENT_INTERPROCESS, &each->event))
        return -1;
    out.events++;
    return backend->event_record(each->event, stream) ||
                   backend->event_export(each->event, to->event)
               ? -1
               : 0;
}

int dt_ipc_send(dt_storage *storage, dt_ipc_memory *to)
{
    const dt_backend *backend = dt_backend_of(storage->device);
    memset(to, 0, sizeof *to);
    if (storage->borrowed || !storage->data || !backend->ipc_export)
        return dt_fail(DT_ERROR_RUNTIME,
                       "only memory of a GPU that this process allocated can be sent; "
                       "clone() a tensor that another process or another library made");
    if (dt_graph_check("sending a tensor to another process", storage->device, NULL))
        return -1;
    dt_ipc_collect(NULL);
    if (take_slot(&to->slot) ||
        backend->ipc_export(storage->device.index, storage->data, to->memory,
                            &to->offset))
        return -1;
    sent *each = calloc(1, sizeof *each);
    if (!each)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory to send a tensor");
    each->storage = dt_storage_retain(storage);
    each->slot = to->slot;
    if (order(each, to)) {
        drop(each);
        return -1;
    }
    memcpy(to->file, out.file, sizeof out.file);
    each->next = out.first;
    out.first = each;
    out.slots[to->slot] = 1;
    return 0;
}

/* --- the receiver --- */

/* The files of senders. They stay mapped. */
typedef struct sender {
    struct sender *next;
    char file[DT_SHARED_FILE];
    unsigned char *slots;
} sender;
static sender *senders;

typedef struct received {
    struct received *next;
    dt_storage *storage;
    dt_device device;
    void *opened; /* the driver's allocation; NULL: it was not opened */
    size_t offset;
    unsigned char *slot;
} received;
static received *live; /* in use: their storages exist */
static received *held; /* released while a graph was captured: to be ended */

static unsigned char *slot_of(const char *file, uint64_t slot)
{
    if (slot >= SLOTS) {
        dt_fail(DT_ERROR_VALUE,
                "a tensor of another process has number %llu; it has "
                "to be below %d",
                (unsigned long long)slot, (int)SLOTS);
        return NULL;
    }
    if (out.slots && out.forks == dt_forks() && !strcmp(file, out.file))
        return out.slots + slot;
    for (const sender *each = senders; each; each = each->next)
        if (!strcmp(file, each->file))
            return each->slots + slot;
    sender *made = calloc(1, sizeof *made);
    int descriptor = made ? dt_shared_file_open(file) : -1;
    struct stat facts;
    if (descriptor >= 0 && !fstat(descriptor, &facts) && facts.st_size == SLOTS)
        made->slots = map_slots(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    if (!made || !made->slots) {
        free(made);
        dt_fail(DT_ERROR_RUNTIME,
                "a GPU's tensor was not received: its sender, process %d, has to run "
                "until then, and as the same user",
                dt_shared_file_maker(file));
        return NULL;
    }
    snprintf(made->file, sizeof made->file, "%s", file);
    made->next = senders;
    senders = made;
    return made->slots + slot;
}

/* Waits for all work of this process first: then the sender may write to the memory. */
static void end(received *each)
{
    const dt_backend *backend =
        dt_backend_unobserved((dt_device_type)each->device.type);
    if (each->opened) {
        if (backend->device_synchronize(each->device.index))
            dt_error_clear(); /* the device is lost: nothing runs on it any more */
        backend->ipc_close(each->device.index, each->opened);
    }
    let_go(each->slot);
    free(each);
}

void dt_ipc_settle(void)
{
    if (!__atomic_load_n(&held, __ATOMIC_RELAXED) || dt_graphs_capturing)
        return;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    received *first = held;
    held = NULL;
    dt_unlock(lock);
    while (first) {
        received *next = first->next;
        end(first);
        first = next;
    }
}

static void release(void *owner)
{
    received *each = owner;
    const bool waits = !dt_graphs_capturing;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    received **at = &live;
    while (*at != each)
        at = &(*at)->next;
    *at = each->next;
    each->next = held;
    if (!waits)
        held = each;
    dt_unlock(lock);
    if (waits)
        end(each);
}

/* Takes a reference to a storage. False if another thread is releasing it. */
static bool retain_if_alive(dt_storage *storage)
{
    int found = __atomic_load_n(&storage->references, __ATOMIC_RELAXED);
    while (found &&
           !__atomic_compare_exchange_n(&storage->references, &found, found + 1, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {}
    return found != 0;
}

/* A storage that is the same memory, received before and still in use; else a new one. */
static dt_storage *storage_of(received *made, size_t bytes)
{
    dt_storage *found = NULL;
    char *data = (char *)made->opened + made->offset;
    int lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    for (received *each = live; each && !found; each = each->next)
        if (each->storage->data == data && each->storage->bytes == bytes &&
            dt_device_equal(each->device, made->device) &&
            retain_if_alive(each->storage))
            found = each->storage;
    dt_unlock(lock);
    if (found) { /* its own slot keeps it */
        dt_backend_of(made->device)->ipc_close(made->device.index, made->opened);
        let_go(made->slot);
        free(made);
        return found;
    }
    found = dt_storage_new_borrowed(made->device, data, bytes, false, release, made);
    if (!found) {
        end(made);
        return NULL;
    }
    made->storage = found;
    lock = dt_lock_if_concurrent(DT_LOCK_STORAGES);
    made->next = live;
    live = made;
    dt_unlock(lock);
    return found;
}

/* The storage that this process itself sent. */
static dt_storage *take_back(uint64_t slot)
{
    for (sent **at = &out.first; *at; at = &(*at)->next)
        if ((*at)->slot == slot) {
            sent *each = *at;
            dt_storage *storage = dt_storage_retain(each->storage);
            let_go(&out.slots[slot]);
            *at = each->next;
            drop(each);
            return storage;
        }
    dt_fail(DT_ERROR_RUNTIME,
            "this process has received a tensor that it sent, and let "
            "go of it, before; send it again");
    return NULL;
}

static int wait_for_sender(dt_device device, const char *event)
{
    const dt_backend *backend = dt_backend_of(device);
    void *opened;
    if (backend->event_open(device.index, event, &opened))
        return -1;
    int status = backend->stream_wait_event(opened, dt_stream_current(device));
    backend->event_free(opened);
    return status;
}

dt_storage *dt_ipc_receive(dt_device device, const dt_ipc_memory *from, size_t bytes)
{
    const dt_backend *backend = dt_backend_of(device);
    unsigned char *slot = slot_of(from->file, from->slot);
    if (!slot)
        return NULL;
    if (out.slots && slot == out.slots + from->slot)
        return take_back(from->slot);
    if (dt_graph_check("receiving a tensor of another process", device, NULL))
        return NULL;
    dt_ipc_settle();
    received *made = calloc(1, sizeof *made);
    if (!made) {
        let_go(slot);
        dt_fail(DT_ERROR_HOST_MEMORY, "no memory to receive a tensor");
        return NULL;
    }
    made->device = device;
    made->slot = slot;
    made->offset = from->offset;
    if (backend->ipc_open(device.index, from->memory, &made->opened))
        made->opened = NULL;
    else if (!from->ordered || !wait_for_sender(device, from->event))
        return storage_of(made, bytes);
    end(made);
    return NULL;
}

int dt_ipc_release(const char *file, uint64_t slot)
{
    unsigned char *at = slot_of(file, slot);
    if (!at)
        return -1;
    let_go(at);
    return 0;
}
