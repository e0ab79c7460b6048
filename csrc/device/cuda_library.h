/* The row of CUDA devices: real GPUs, virtual ones and simulated ones, whose backends are
 * in two libraries of one interface. */
#ifndef DT_DEVICE_CUDA_LIBRARY_H
#define DT_DEVICE_CUDA_LIBRARY_H

#include "device/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_MAX_SIMULATED 32 /* simulated or virtual devices that a program may choose */

extern const dt_device_row dt_cuda_row;

/* Overrides PYDEVTENSOR_SIM_GPUS (simulated) or PYDEVTENSOR_VIRTUAL_GPUS (virtual GPUs
 * that share the first GPU) by a number from 0 to DT_MAX_SIMULATED, as text. `where` says
 * in messages who gave it. Fails after the first use of a CUDA device. */
int dt_cuda_choose(bool simulated, const char *where, const char *text);

#ifdef __cplusplus
}
#endif
#endif
