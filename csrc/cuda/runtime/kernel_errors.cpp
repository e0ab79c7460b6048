#include "cuda/runtime/kernel_errors.h"

#include <inttypes.h>
#include <string.h>

#include "cuda/runtime/backend.h"
#include "cuda/runtime/graph.h"

/* NULL until the first launch of a kernel that reports. */
static KernelReport *reports[DT_MAX_DEVICES];

KernelReport *report_of(int device)
{
    KernelReport *report = __atomic_load_n(&reports[device], __ATOMIC_ACQUIRE);
    if (report)
        return report;
    dt_locked guard(DT_LOCK_REPORTS);
    if (!reports[device]) {
        Relaxed mode;
        cudaError_t error = cudaHostAlloc(&report, sizeof(KernelReport),
                                          cudaHostAllocPortable | cudaHostAllocMapped);
        if (error != cudaSuccess) {
            cuda_fail(error, "allocating pinned memory");
            return nullptr;
        }
        memset(report, 0, sizeof(KernelReport));
        __atomic_store_n(&reports[device], report, __ATOMIC_RELEASE);
    }
    return reports[device];
}

int report_take(int device)
{
    KernelReport *report = __atomic_load_n(&reports[device], __ATOMIC_ACQUIRE);
    if (!report || !__atomic_load_n(&report->filled, __ATOMIC_ACQUIRE))
        return 0;
    dt_locked guard(DT_LOCK_REPORTS);
    if (!__atomic_load_n(&report->filled, __ATOMIC_ACQUIRE))
        return 0;
    KernelReport found = *report;
    __atomic_store_n(&report->filled, 0u, __ATOMIC_RELEASE);
    __atomic_store_n(&report->claimed, 0u, __ATOMIC_RELEASE);
    return dt_fail(DT_ERROR_ACCELERATOR,
                   "%s: index %" PRId64
                   " is out of range for dimension %d of size %" PRId64
                   "; give indices from %" PRId64 " to %" PRId64
                   ". cuda:%d found it in work queued before this call: discard the "
                   "results; the device remains usable",
                   found.what, found.value, found.dim, found.size, found.low,
                   found.size - 1, device);
}
