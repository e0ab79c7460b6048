/* The CPU's backend: what the registry and the binding need of it. */
#ifndef DT_CPU_RUNTIME_CPU_H
#define DT_CPU_RUNTIME_CPU_H

#include "device/backend.h"

/* The backend, lent, valid for ever. Starts no thread and opens no library. */
const dt_backend *dt_cpu_backend(void);

/* Where Python packages are (colon-separated): an OpenBLAS is looked for there at the
 * first matrix product. The string is copied. Has no effect once a BLAS has been
 * chosen. */
void dt_cpu_blas_set_search(const char *directories);

/* Threads that large operations may use, the caller's among them. At the start, as many
 * as the process has cores, or PYDEVTENSOR_NUM_THREADS. -1 after dt_fail for less
 * than 1. */
int dt_cpu_set_num_threads(int threads);
int dt_cpu_get_num_threads(void);

#endif
