/* Random numbers of a GPU: Philox, an element from its own counter, so that the same
 * seed gives the same numbers on every GPU and on simulated ones. */
#ifndef DT_CUDA_KERNELS_RANDOM_H
#define DT_CUDA_KERNELS_RANDOM_H

#include "device/backend.h"

int random_run(dt_stream stream, struct dt_generator *generator,
               const dt_random_call *call);

#endif
