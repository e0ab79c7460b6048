/* Updates of many tensors in place, by the rows of ops/update.def. */
#ifndef DT_CPU_UPDATE_H
#define DT_CPU_UPDATE_H

#include "device/backend.h"

int dt_cpu_update(dt_queue queue, const dt_update_call *call);

#endif
