/* Elements chosen by index tensors; the contract is dt_backend's. */
#ifndef DT_CPU_KERNELS_INDEX_H
#define DT_CPU_KERNELS_INDEX_H

#include "device/backend.h"

/* Several values for one place are taken in row-major order, the last one staying: the
 * result is the same each time. */
int dt_cpu_index(dt_stream stream, dt_index_op op, const dt_index_call *selection);

#endif
