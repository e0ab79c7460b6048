/* The CPU backend's interface to the registry and the binding. */
#ifndef DT_CPU_RUNTIME_CPU_H
#define DT_CPU_RUNTIME_CPU_H

#include "device/backend.h"

/* The backend, borrowed, valid for the life of the process. Starts no thread and
 * opens no library. */
const dt_backend *dt_cpu_backend(void);

/* Directories of Python packages (colon-separated) that the first matrix product
 * searches for an OpenBLAS. The string is copied. No effect once a BLAS is loaded. */
void dt_cpu_blas_set_search(const char *directories);

/* Threads for large operations, the caller included. The default is
 * PYDEVTENSOR_NUM_THREADS or the number of cores. -1 after dt_fail if less than 1. */
int dt_cpu_set_num_threads(int threads);
int dt_cpu_get_num_threads(void);

#endif
