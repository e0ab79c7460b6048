/* Puts backends that report their calls in the place of the real ones, and back. */
#ifndef DT_DEVICE_WORKS_H
#define DT_DEVICE_WORKS_H

#include "device/registry.h"

/* Call with the GIL. A call that runs on another thread may still report itself after
 * dt_works_restore. */
void dt_works_observe(void);
void dt_works_restore(void);

/* The backend that is observed, or would be; and another one in its place. */
const dt_backend *dt_works_real(dt_device_type type);
void dt_works_replace(dt_device_type type, const dt_backend *backend);

#endif
