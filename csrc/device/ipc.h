/* Memory of a GPU that processes share.
 *
 * The sender keeps a storage until the receiver has released it. For each storage that was
 * sent, a file that both processes map has a byte, its slot: 1 while the receiver may use the
 * memory, 0 afterwards. dt_ipc_send and dt_ipc_collect look at the bytes of all slots, and
 * release the storages whose byte is 0. */
#ifndef DT_DEVICE_IPC_H
#define DT_DEVICE_IPC_H

#include "base/shared_file.h"
#include "device/storage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a storage is sent. */
typedef struct dt_ipc_memory {
    char memory[DT_IPC_MEMORY]; /* handle of the driver's allocation that it is in */
    size_t offset;              /* of the storage in that, in bytes */
    char event[DT_IPC_HANDLE];  /* recorded after the work that was queued for it */
    bool ordered;               /* there is an event; else the work has ended */
    char file[DT_SHARED_FILE];
    uint64_t slot; /* its byte in the file */
} dt_ipc_memory;

/* Sends a storage of a GPU. May synchronize if very many are in use elsewhere. -1 after
 * dt_fail. */
int dt_ipc_send(dt_storage *storage, dt_ipc_memory *out);

/* The storage of `bytes` that was sent, on the GPU: the same one in the process that sent
 * it. The device's current stream waits for the event. NULL after dt_fail. */
dt_storage *dt_ipc_receive(dt_device device, const dt_ipc_memory *sent, size_t bytes);

/* Releases a storage that was sent and will not be received. -1 after dt_fail. */
int dt_ipc_release(const char *file, uint64_t slot);

/* Releases the storages that no receiver uses any more; returns their number. *left, unless it
 * is NULL, is the number of those in use. */
int64_t dt_ipc_collect(int64_t *left);

/* Releases what this process has received and let go of while a graph was captured, since
 * nothing may wait then. */
void dt_ipc_settle(void);

#ifdef __cplusplus
}
#endif
#endif
