/* The device table: maps device numbers to physical GPUs. */
#ifndef DT_CUDA_RUNTIME_DEVICE_H
#define DT_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/check.h"
#include "device/backend.h"

/* Sets how many virtual devices share the first GPU (0: none). Call once, at the
 * start. */
void device_table_configure(int virtual_devices);

int device_count(void);
const char *device_why_unavailable(void);
int device_properties(int device, dt_device_properties *out);
bool device_can_access_peer(int device, int peer);
int device_synchronize(int device);

/* Makes the GPU behind the device current in the calling thread. -1 after dt_fail if
 * there is no such device, or if the process was forked after CUDA was used. */
int device_use(int device);

/* The CUDA ordinal of the GPU behind a device. */
int device_ordinal(int device);

/* Number of devices that share the device's GPU: 1 unless it is virtual. */
int device_sharing(int device);

/* Enables peer access of one GPU's kernels and copies to the other's memory, if
 * possible. Never fails. */
void device_enable_peer(int device, int peer);

/* Compute capabilities of the built kernels as 10 * major + minor, terminated by 0. */
extern const int device_architectures[];

#endif
