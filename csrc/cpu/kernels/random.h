/* Random numbers of the CPU's backend: those of PyTorch's CPU generator. */
#ifndef DT_CPU_KERNELS_RANDOM_H
#define DT_CPU_KERNELS_RANDOM_H

#include "device/backend.h"

/* As in dt_backend. */
int dt_cpu_random(dt_stream stream, struct dt_generator *generator,
                  const dt_random_call *call);
int dt_cpu_arange(dt_stream stream, const dt_arange_call *progression);

#endif
