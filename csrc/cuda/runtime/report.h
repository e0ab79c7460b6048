/* What a kernel finds wrong with the values it is given, such as an index out of range.
 * It notes the first such value of a device in memory of the host's and goes on; the
 * next wait for the device fails with it, and the device works on. */
#ifndef DT_CUDA_RUNTIME_REPORT_H
#define DT_CUDA_RUNTIME_REPORT_H

#include <cuda_runtime.h>
#include <stdint.h>

struct Report {
    unsigned claimed; /* by the thread that fills it */
    unsigned filled;
    const char *what; /* the operation: a literal of the host's, not followed here */
    int64_t value, low, size;
    int dim;
};

/* The device's report, lent; NULL after dt_fail. device_use has been called. */
Report *report_of(int device);

/* After a wait: -1 after dt_fail where something was reported, which is then forgotten.
 */
int report_take(int device);

#ifdef __CUDACC__
#define REPORT_DEVICE static __device__ __forceinline__
#elif defined(SIM_CUDA)
#define REPORT_DEVICE static inline
#endif

#ifdef REPORT_DEVICE
/* Notes that value, an index of dimension dim, is not in low to size-1. */
REPORT_DEVICE void report_range(Report *report, const char *what, int64_t value,
                                int64_t low, int64_t size, int dim)
{
    if (atomicCAS(&report->claimed, 0u, 1u))
        return;
    report->what = what;
    report->value = value;
    report->low = low;
    report->size = size;
    report->dim = dim;
    __threadfence_system();
    atomicExch(&report->filled, 1u);
}
#endif

#endif
