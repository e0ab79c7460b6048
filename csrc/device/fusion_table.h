/* The functions of the queue (fusion.c) that the backends that collect call
 * (fusion_table.c). */
#ifndef DT_DEVICE_FUSION_TABLE_H
#define DT_DEVICE_FUSION_TABLE_H

#include "device/fusion.h"

/* The types of devices that the queue may be of. */
enum { DT_FUSION_TYPES = DT_CUDA + 1 };

/* Their backends, which run what does not wait. NULL: they do not collect yet. */
extern const dt_backend *dt_fusion_real[DT_FUSION_TYPES];

/* Puts the backends that collect in the place of those that are open. */
void dt_fusion_install(void);

/* Whether the operation of a call waits. */
typedef enum dt_fusion_fate {
    DT_FUSION_RUNS, /* the caller runs it */
    DT_FUSION_WAITS,
    DT_FUSION_FAILS
} dt_fusion_fate;

/* Each adds the operation to the chain; or runs the chain first if the operation depends on
 * it. */
dt_fusion_fate dt_fusion_collect(dt_device_type type, dt_stream on,
                                 dt_elementwise_op op, const dt_plan *plan);
dt_fusion_fate dt_fusion_collect_fill(dt_device_type type, dt_stream on,
                                      const dt_plan *plan);
/* For reduce, and moments with their mean. */
dt_fusion_fate dt_fusion_collect_reduction(dt_device_type type, dt_stream on,
                                           dt_work work, dt_reduce_op op, void *mean,
                                           const dt_reduction *c);
dt_fusion_fate dt_fusion_collect_rows(dt_device_type type, dt_stream on,
                                      const dt_nn_call *c);

/* Runs the queue if it is of the type, before other work; 0, or -1 after dt_fail. */
int dt_fusion_before(int type, const char *why);

#endif
