/* Elements chosen by index tensors; the contract is dt_backend's. */
#ifndef DT_CUDA_SELECT_H
#define DT_CUDA_SELECT_H

#include "device/backend.h"

int select_run(dt_queue queue, dt_select_op op, const dt_selection *selection);

#endif
