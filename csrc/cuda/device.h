/* The table of devices: cards as the driver numbers them, or virtual devices that share one. */
#ifndef DT_CUDA_DEVICE_H
#define DT_CUDA_DEVICE_H

#include <cuda_runtime.h>

#include "device/backend.h"

#define DT_CUDA_MAX_DEVICES 64

typedef struct dt_cuda_device {
    int ordinal;  /* the card, as the CUDA runtime numbers it */
    size_t limit; /* bytes that a virtual device may take from its card; 0: no limit */
    bool virtual_device;
    /* Where work of the NULL stream goes: CUDA's own default stream, but for virtual devices
     * each its own, so that they run beside each other. */
    cudaStream_t default_stream;
    bool ready;
} dt_cuda_device;

/* Keeps what the core gave. Called once, before everything else. */
void dt_cuda_devices_start(const dt_host *host);
const dt_host *dt_cuda_host(void);

/* The functions of dt_backend with these names. */
int dt_cuda_device_count(void);
const char *dt_cuda_why_unavailable(void);
int dt_cuda_device_properties(int device, dt_device_properties *out);
bool dt_cuda_can_access_peer(int device, int peer);
int dt_cuda_device_wait(int device);

/* Makes the device's card current in the calling thread. Fails when there is no such device
 * and in a forked child of a process that had used CUDA. Every other function that touches
 * CUDA calls it first. */
int dt_cuda_use(int device);

/* Whether this process is a forked child of one that had used CUDA: nothing may be touched. */
bool dt_cuda_is_orphan(void);

/* The device's row, lent; it exists. */
const dt_cuda_device *dt_cuda_device_get(int device);

/* The CUDA stream behind a queue whose device has been used. */
static inline cudaStream_t dt_cuda_stream(dt_queue queue)
{
    return queue.stream ? (cudaStream_t)queue.stream
                        : dt_cuda_device_get(queue.device)->default_stream;
}

/* Lets `device` read and write the memory of `peer`, another card, where it can; once. */
int dt_cuda_enable_peer(int device, int peer);

/* Compute capabilities, times a hundred and ascending, that this build has machine code for, and of
 * the last one portable code too. 0 when unknown. */
int dt_cuda_architectures(const int **out);

#endif
