#include "cuda/runtime/backend.h"

#include <string.h>

#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/kernel_errors.h"

/* Copies to a device from pageable memory pass through pinned slots, a slot at a time,
 * so that the source may change at once and nobody waits for what the stream has to do
 * before. A slot is reused when its copy is done: a copy that is larger than all slots
 * waits for its own first pieces. Small copies have slots of their own and do not wait
 * for large ones. */
#define MAX_SLOTS  64
#define SMALL_SLOT ((size_t)64 << 10)
#define LARGE_SLOT ((size_t)1 << 20)

namespace {
struct Ring {
    size_t slot_bytes;
    unsigned slots;
    char *memory = nullptr;
    /* Recorded after the slot's last copy; NULL: unused. */
    cudaEvent_t events[MAX_SLOTS] = {};
    unsigned next = 0;
};
struct Rings {
    Ring small = {SMALL_SLOT, MAX_SLOTS};
    Ring large = {LARGE_SLOT, 8};
};
Rings rings[DT_MAX_DEVICES];

/* The device's rings are locked. bytes: at most a slot's. */
int upload_slot(Ring *ring, cudaStream_t stream, void *target, const void *source,
                size_t bytes)
{
    SIM_OWN_WAIT;
    Relaxed mode;
    unsigned slot = ring->next % ring->slots;
    if (!ring->memory)
        CUDA_TRY("allocating pinned memory",
                 cudaHostAlloc(&ring->memory, ring->slots * ring->slot_bytes, 0));
    if (ring->events[slot])
        CUDA_TRY("waiting for an earlier copy",
                 cudaEventSynchronize(ring->events[slot]));
    else
        CUDA_TRY("creating an event",
                 cudaEventCreateWithFlags(&ring->events[slot], cudaEventDisableTiming));
    char *staged = ring->memory + slot * ring->slot_bytes;
    memcpy(staged, source, bytes);
    SIM_STAGED(bytes);
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

int upload(dt_stream stream, char *target, const char *source, size_t bytes)
{
    Rings *own = &rings[stream.device];
    Ring *ring = bytes <= SMALL_SLOT ? &own->small : &own->large;
    for (size_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < ring->slot_bytes ? bytes - done : ring->slot_bytes;
        dt_locked guard(DT_LOCK_UPLOADS + stream.device % DT_LOCK_COPIES);
        if (upload_slot(ring, (cudaStream_t)stream.handle, target + done, source + done,
                        piece))
            return -1;
    }
    return 0;
}

/* Whether a device can copy from the memory itself. */
int is_pinned(const void *memory, bool *out)
{
    cudaPointerAttributes attributes;
    CUDA_TRY("asking what memory is", cudaPointerGetAttributes(&attributes, memory));
    *out = attributes.type == cudaMemoryTypeHost;
    return 0;
}
} /* namespace */

int dt_cuda_copy_to_device(dt_stream stream, void *target, const void *source,
                           size_t bytes)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    void *staged;
    if (graph_stage(stream, source, bytes, &staged))
        return -1;
    if (staged) {
        SIM_OWN_WAIT;
        CUDA_TRY(
            "copying to a device",
            cudaMemcpyAsync(target, staged, bytes, cudaMemcpyHostToDevice, handle));
        return 0;
    }
    bool pinned = false;
    if (bytes > SMALL_SLOT && is_pinned(source, &pinned))
        return -1;
    if (!pinned)
        return upload(stream, (char *)target, (const char *)source, bytes);
    /* The source may change on return. */
    CUDA_TRY("copying to a device",
             cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, handle));
    CUDA_TRY("waiting for a copy to a device", cudaStreamSynchronize(handle));
    return 0;
}

int dt_cuda_copy_to_host(dt_stream stream, void *target, const void *source,
                         size_t bytes)
{
    cudaStream_t handle = (cudaStream_t)stream.handle;
    void *staged = nullptr;
    Relaxed mode;
    /* Without pinned memory, CUDA stages the copy itself. */
    if (bytes <= SMALL_SLOT && dt_cuda_pinned_allocate(stream.device, bytes, &staged))
        dt_error_clear();
    cudaError_t error = cudaMemcpyAsync(staged ? staged : target, source, bytes,
                                        cudaMemcpyDeviceToHost, handle);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(handle);
    if (error == cudaSuccess && staged)
        memcpy(target, staged, bytes);
    if (staged)
        dt_cuda_pinned_release(staged);
    CUDA_TRY("copying from a device", error);
    return report_take(stream.device);
}

int dt_cuda_pinned_copy(dt_stream stream, void *target, const void *source,
                        size_t bytes, bool to_host)
{
    CUDA_TRY(to_host ? "copying from a device" : "copying to a device",
             cudaMemcpyAsync(target, source, bytes,
                             to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                             (cudaStream_t)stream.handle));
    return 0;
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

int dt_cuda_copy_peer(dt_stream target_stream, void *target, dt_stream source_stream,
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
    cuda_succeeds(cudaStreamSynchronize(stream));
    return -1;
}
