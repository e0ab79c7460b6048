/* The device of a storage that has no memory (dt_storage_resize): operations on its
 * tensors fail, with an error that says so, since the backend of this type has no other
 * functions. Programs see the device that it was on, dt_device_home. */
#ifndef DT_DEVICE_RELEASED_H
#define DT_DEVICE_RELEASED_H

#include "device/device.h"

extern const dt_device_row dt_released_row;
const dt_backend *dt_released_backend(void);

/* -1 after dt_fail where the device is one of a storage without memory. */
int dt_released_refuse(void);
static inline int dt_device_check_memory(dt_device device)
{
    return __builtin_expect(device.type == DT_RELEASED, 0) ? dt_released_refuse() : 0;
}

#endif
