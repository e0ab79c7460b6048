/* Arithmetic progressions. */
#ifndef DT_CUDA_PROGRESSION_H
#define DT_CUDA_PROGRESSION_H

#include "device/backend.h"

int progression_run(dt_queue queue, const dt_progression *progression);

#endif
