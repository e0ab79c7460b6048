/* Memory of a GPU that processes share.
 *
 * A storage that was sent stays until its receiver has let go of it, which it says by a
 * byte of a file that both have mapped: 1 while it may use the memory. Whoever sends,
 * or calls dt_ipc_collect, looks at the bytes of all that was sent. */
#ifndef DT_DEVICE_IPC_H
#define DT_DEVICE_IPC_H

#include "base/shared_file.h"
#include "device/storage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a storage is sent. */
typedef struct dt_ipc_memory {
    char memory[DT_IPC_HANDLE]; /* of the driver's allocation that has it */
    size_t offset;              /* there, in bytes */
    char event[DT_IPC_HANDLE];  /* reached when what was queued for it is done */
    bool ordered;               /* it has an event; else all is done */
    char file[DT_SHARED_FILE];
    uint64_t slot; /* its byte in the file */
} dt_ipc_memory;

/* Sends a storage of a GPU that has memory; it may synchronize if very many are out. -1
 * after dt_fail. */
int dt_ipc_send(dt_storage *storage, dt_ipc_memory *out);

/* The storage of `bytes` that was sent, on the GPU: the same one in the process that sent
 * it. The device's current stream waits for the event. NULL after dt_fail. */
dt_storage *dt_ipc_receive(dt_device device, const dt_ipc_memory *sent, size_t bytes);

/* Says that one that was sent will not be used. -1 after dt_fail. */
int dt_ipc_release(const char *file, uint64_t slot);

/* Lets go of what no receiver uses any more; returns how many those were. *left, unless it
 * is NULL: how many are still used. */
int64_t dt_ipc_collect(int64_t *left);

/* The same, of this process as one that receives: of what was released while a graph was
 * captured, when nothing may be waited for. */
void dt_ipc_settle(void);

#ifdef __cplusplus
}
#endif
#endif
