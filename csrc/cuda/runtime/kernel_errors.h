/* Errors that kernels find in their operands' values, such as an index out of range.
 * A kernel stores the first one of a device in pinned host memory and carries on;
 * the next synchronization with the device fails with it, and the device remains
 * usable. */
#ifndef DT_CUDA_RUNTIME_KERNEL_ERRORS_H
#define DT_CUDA_RUNTIME_KERNEL_ERRORS_H

#include <cuda_runtime.h>
#include <stdint.h>

struct KernelReport {
    unsigned claimed; /* by the thread that fills it */
    unsigned filled;
    const char *what; /* operation name: a host literal, never dereferenced on the
                         device */
    int64_t value, low, size;
    int dim;
};

/* The device's report, borrowed; NULL after dt_fail. The caller has called
 * device_use. */
KernelReport *report_of(int device);

/* Call after a synchronization: -1 after dt_fail if there is a report, which it
 * clears. */
int report_take(int device);

#ifdef __CUDACC__
#define REPORT_DEVICE static __device__ __forceinline__
#elif defined(SIM_CUDA)
#define REPORT_DEVICE static inline
#endif

#ifdef REPORT_DEVICE
/* Reports that value, an index of dimension dim, is not in low to size-1. */
REPORT_DEVICE void report_range(KernelReport *report, const char *what, int64_t value,
                                int64_t low, int64_t size, int dim)
{
    if (atomicCAS_system(&report->claimed, 0u, 1u))
        return;
    report->what = what;
    report->value = value;
    report->low = low;
    report->size = size;
    report->dim = dim;
    __threadfence_system();
    atomicExch_system(&report->filled, 1u);
}
#endif

#endif
