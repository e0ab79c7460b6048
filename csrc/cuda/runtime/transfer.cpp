#include "cuda/runtime/transfer.h"

#include <pthread.h>
#include <string.h>

#include "cuda/runtime/device.h"
#include "cuda/runtime/report.h"

/* Small host-to-device copies are staged in pinned slots, so they are asynchronous
 * and the source may change at once. A slot is reused when its copy is done. */
#define SLOTS      64
#define SLOT_BYTES TRANSFER_STAGED_BYTES

namespace {
struct Ring {
    pthread_mutex_t lock;
    char *memory;
    cudaEvent_t events[SLOTS]; /* recorded after the slot's last copy; NULL: unused */
    unsigned next;
};
Ring rings[64];
pthread_once_t once = PTHREAD_ONCE_INIT;

void init_rings(void)
{
    for (Ring &ring : rings)
        pthread_mutex_init(&ring.lock, nullptr);
}

/* The device's ring is locked. */
int upload_slot(Ring *ring, cudaStream_t stream, void *target, const void *source,
                size_t bytes)
{
    unsigned slot = ring->next % SLOTS;
    if (!ring->memory) {
        void *memory = nullptr;
        CUDA_TRY("allocating pinned memory",
                 cudaHostAlloc(&memory, SLOTS * SLOT_BYTES, 0));
        ring->memory = (char *)memory;
    }
    if (ring->events[slot])
        CUDA_TRY("waiting for an earlier copy",
                 cudaEventSynchronize(ring->events[slot]));
    else
        CUDA_TRY("creating an event",
                 cudaEventCreateWithFlags(&ring->events[slot], cudaEventDisableTiming));
    char *staged = ring->memory + slot * SLOT_BYTES;
    memcpy(staged, source, bytes);
    CUDA_TRY("copying to a device",
             cudaMemcpyAsync(target, staged, bytes, cudaMemcpyHostToDevice, stream));
    ring->next++;
    cudaError_t error = cudaEventRecord(ring->events[slot], stream);
    if (error != cudaSuccess) {
        /* The slot must not change before the copy is done. */
        cudaStreamSynchronize(stream);
        return cuda_fail(error, "recording an event");
    }
    return 0;
}
} /* namespace */

int transfer_to_device(dt_stream stream, void *target, const void *source, size_t bytes)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    if (device_use(stream.device))
        return -1;
    if (bytes <= SLOT_BYTES) {
        pthread_once(&once, init_rings);
        Ring *ring = &rings[stream.device];
        pthread_mutex_lock(&ring->lock);
        int status = upload_slot(ring, handle, target, source, bytes);
        pthread_mutex_unlock(&ring->lock);
        return status;
    }
    /* The driver pipelines large copies from pageable memory through its own pinned
     * buffers. Synchronize, because the source may change on return. */
    CUDA_TRY("copying to a device",
             cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, handle));
    CUDA_TRY("waiting for a copy to a device", cudaStreamSynchronize(handle));
    return 0;
}

int transfer_to_device_staged(dt_stream stream, void *target, const void *source,
                              size_t bytes)
{
    for (size_t at = 0; at < bytes; at += TRANSFER_STAGED_BYTES) {
        size_t part = bytes - at;
        part = part < TRANSFER_STAGED_BYTES ? part : TRANSFER_STAGED_BYTES;
        if (transfer_to_device(stream, (char *)target + at, (const char *)source + at,
                               part))
            return -1;
    }
    return 0;
}

int transfer_to_host(dt_stream stream, void *target, const void *source, size_t bytes)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("copying from a device",
             cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, handle));
    CUDA_TRY("waiting for a copy from a device", cudaStreamSynchronize(handle));
    return report_take(stream.device);
}

/* Makes stream `waiting` wait for the work queued on `stream`; the host does not
 * wait. */
static int order(dt_stream stream, dt_stream waiting)
{
    cudaEvent_t event = nullptr;
    if (device_use(stream.device))
        return -1;
    CUDA_TRY("creating an event",
             cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t error = cudaEventRecord(event, (cudaStream_t)stream.handle);
    int status = error == cudaSuccess ? device_use(waiting.device) : 0;
    if (error == cudaSuccess && !status)
        error = cudaStreamWaitEvent((cudaStream_t)waiting.handle, event, 0);
    cudaEventDestroy(event); /* CUDA frees it once the wait is over */
    CUDA_TRY("ordering two streams", error);
    return status;
}

int transfer_peer(dt_stream target_stream, void *target, dt_stream source_stream,
                  const void *source, size_t bytes)
{
    int to = device_ordinal(target_stream.device),
        from = device_ordinal(source_stream.device);
    cudaStream_t stream = (cudaStream_t)target_stream.handle;
    device_enable_peer(target_stream.device, source_stream.device);
    if (order(source_stream, target_stream) || device_use(target_stream.device))
        return -1;
    if (to == from)
        CUDA_TRY(
            "copying on a device",
            cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
    else /* CUDA stages copies between GPUs without peer access */
        CUDA_TRY("copying between devices",
                 cudaMemcpyPeerAsync(target, to, source, from, bytes, stream));
    if (!order(target_stream, source_stream))
        return 0;
    /* The source must not be reused while the copy reads it. */
    if (cudaStreamSynchronize(stream) != cudaSuccess)
        cudaGetLastError();
    return -1;
}
