/* Puts backends that report their calls in the place of the real ones, and back. */
#ifndef DT_DEVICE_WORKS_H
#define DT_DEVICE_WORKS_H

/* Call with the GIL. A call that runs on another thread may still report itself after
 * dt_works_restore. */
void dt_works_observe(void);
void dt_works_restore(void);

#endif
