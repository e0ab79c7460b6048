/* Elements chosen by index tensors; the contract is dt_backend's. */
#ifndef DT_CPU_SELECT_H
#define DT_CPU_SELECT_H

#include "device/backend.h"

/* Several values for one place are taken in row-major order, the last one staying: the
 * result is the same each time. */
int dt_cpu_select(dt_queue queue, dt_select_op op, const dt_selection *selection);

#endif
