/* The device table: which cards there are, and how numbers of ours map to them. */
#ifndef DT_CUDA_RUNTIME_DEVICE_H
#define DT_CUDA_RUNTIME_DEVICE_H

#include "cuda/runtime/check.h"
#include "device/backend.h"

/* Remembers how many virtual devices share the first card (0: none do). Once, at the
 * start. */
void device_table_configure(int virtual_devices);

int device_count(void);
const char *device_why_unavailable(void);
int device_properties(int device, dt_device_properties *out);
bool device_can_access_peer(int device, int peer);
int device_wait(int device);

/* Makes the card behind the device current for the calling thread. -1 after dt_fail:
 * there is no such device, or the process is a fork of one that used CUDA. */
int device_use(int device);

/* The card behind a device. */
int device_card(int device);

/* How many devices share the card of a device: 1 unless it is a virtual one. */
int device_sharing(int device);

/* Lets kernels and copies of one card reach the other's memory, where they can. Never
 * fails. */
void device_enable_peer(int device, int peer);

/* Compute capabilities that kernels were built for, as 10 * major + minor, ending with
 * 0. */
extern const int device_architectures[];

#endif
