/* Operations on rows; the contract is dt_backend's. */
#ifndef DT_CPU_ROWWISE_H
#define DT_CPU_ROWWISE_H

#include "device/backend.h"

int dt_cpu_rowwise(dt_queue queue, const struct dt_rowwise *call);

/* The part of it that sums over rows. */
int dt_cpu_columnwise(const struct dt_rowwise *call);

#endif
