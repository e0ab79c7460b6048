#include "cuda/runtime/report.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "cuda/runtime/check.h"
#include "device/device.h"

/* NULL until the first launch of a kernel that reports. */
static Report *reports[DT_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

Report *report_of(int device)
{
    pthread_mutex_lock(&lock);
    Report *report = reports[device];
    if (!report) {
        void *memory = nullptr;
        cudaError_t error = cudaHostAlloc(&memory, sizeof(Report),
                                          cudaHostAllocPortable | cudaHostAllocMapped);
        if (error != cudaSuccess) {
            cuda_fail(error, "allocating pinned memory");
        } else {
            memset(memory, 0, sizeof(Report));
            report = (Report *)memory;
            __atomic_store_n(&reports[device], report, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&lock);
    return report;
}

int report_take(int device)
{
    Report *report = __atomic_load_n(&reports[device], __ATOMIC_ACQUIRE);
    if (!report || !__atomic_load_n(&report->filled, __ATOMIC_ACQUIRE))
        return 0;
    pthread_mutex_lock(&lock);
    bool mine = __atomic_load_n(&report->filled, __ATOMIC_ACQUIRE) != 0;
    Report found = *report;
    if (mine) {
        __atomic_store_n(&report->filled, 0u, __ATOMIC_RELEASE);
        __atomic_store_n(&report->claimed, 0u, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (!mine)
        return 0;
    return dt_fail(DT_ERROR_ACCELERATOR,
                   "%s: index %" PRId64
                   " is out of range for dimension %d of size %" PRId64
                   "; give indices from %" PRId64 " to %" PRId64
                   ". cuda:%d found it in work queued before this call: discard the "
                   "results; the device remains usable",
                   found.what, found.value, found.dim, found.size, found.low,
                   found.size - 1, device);
}
