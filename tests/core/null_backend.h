/* A type of devices without hardware, for tests of what the core asks of any type. Its
 * kernels are the CPU's. Its memory is inaccessible but while they run, so host code that
 * touches it faults; it has no streams, so work is done when a call returns. */
#ifndef NULL_BACKEND_H
#define NULL_BACKEND_H

#include "device/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NULL_DEVICES = 2 };

extern const dt_device_row null_row;

#ifdef __cplusplus
}
#endif
#endif
