/* Memory that processes share: the driver's handles of whole allocations. */
#include "cuda/runtime/backend.h"
#include "cuda/runtime/mapping.h"

#include <string.h>

int dt_cuda_ipc_export(int device, void *data, char *out_handle, size_t *out_offset)
{
    char *segment = (char *)heap_segment(device, data);
    cudaIpcMemHandle_t made;
    static_assert(sizeof made == DT_IPC_HANDLE, "the handle's size");
    if (!segment)
        return dt_fail(DT_ERROR_RUNTIME,
                       "the memory is not of this process's allocator; clone() the "
                       "tensor before it is sent");
    if (heap_grows(device, data))
        return dt_fail(DT_ERROR_RUNTIME,
                       "memory of an expandable segment cannot be sent to another "
                       "process; make the tensor, or a clone() of it, after "
                       "torch._C._accelerator_setAllocatorSettings("
                       "'expandable_segments:False')");
    if (device_use(device))
        return -1;
    CUDA_TRY("making a handle of memory for other processes",
             cudaIpcGetMemHandle(&made, segment));
    memcpy(out_handle, &made, sizeof made);
    *out_offset = (size_t)((char *)data - segment);
    return 0;
}

/* CUDA counts how often a process has opened a handle, and gives the same address. */
int dt_cuda_ipc_open(int device, const char *handle, void **out)
{
    cudaIpcMemHandle_t given;
    memcpy(&given, handle, sizeof given);
    if (device_use(device))
        return -1;
    CUDA_TRY("opening memory of another process",
             cudaIpcOpenMemHandle(out, given, cudaIpcMemLazyEnablePeerAccess));
    return 0;
}

void dt_cuda_ipc_close(int device, void *opened)
{
    if (device_use(device))
        dt_error_clear();
    else
        cuda_succeeds(cudaIpcCloseMemHandle(opened));
}
