/* Runs one kernel over a plan of any layout: order of dimensions, blocks, threads. */
#ifndef DT_CPU_KERNELS_LOOP_H
#define DT_CPU_KERNELS_LOOP_H

#include "cpu/kernels/kernels.h"
#include "device/plan.h"

/* `weight` is about how many elements a plain addition does in the time that the kernel
 * takes for one: it decides from which size on threads pay. widens: the kernel is
 * float32's for operands of 16 bits. -1 after dt_fail: it was interrupted. */
int dt_loop_run(dt_kernel *kernel, const dt_plan *plan, int weight, bool widens);

/* A kernel, and which operands (bits) are of 16 bits where the kernel has float32. */
typedef struct dt_loop_kernel {
    dt_kernel *kernel;
    int noperands;
    unsigned halves;
    dt_dtype half;
} dt_loop_kernel;

/* n elements on the calling thread; data and strides as of a dt_kernel. */
void dt_loop_call(const dt_loop_kernel *kernel, int64_t n, char *const *data,
                  const int64_t *strides);

/* Elements that one piece of parallel work has at least. */
#define DT_LOOP_GRAIN 16384

/* From this many bytes on, results bypass the caches: they would be evicted before they
 * are read. */
int64_t dt_loop_stream_bytes(void);

#endif
