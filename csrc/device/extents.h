/* The memory that a call of a backend reads and writes, operand by operand: what the
 * races of simulated GPUs are found by. */
#ifndef DT_DEVICE_EXTENTS_H
#define DT_DEVICE_EXTENTS_H

#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXTENT_NDIM (2 * DT_MAX_NDIM)

/* The elements of one operand. */
typedef struct dt_extent {
    const char *data; /* element 0 */
    int64_t item;     /* bytes of an element; 0: all from data to the block's end */
    int ndim;
    int64_t shape[DT_EXTENT_NDIM], strides[DT_EXTENT_NDIM]; /* in bytes */
    bool reads, writes;
} dt_extent;

typedef void (*dt_extent_visitor)(void *context, const dt_extent *extent);

/* The work that a call describes: a row of device/works.def, or a use by the host, whose call
 * is a dt_extent. */
typedef enum dt_work {
    DT_WORK_NONE,
    DT_WORK_HOST_USE,
    DT_WORK_CHAIN, /* whose call is a dt_chain */
#define WORK(member, ...) DT_WORK_##member,
#include "device/works.def"
} dt_work;

/* Calls visit for each operand of the call that has memory; `name` tells a call that reads
 * a table from one that writes it. It is meant for programs that are searched for mistakes:
 * nothing is faster because of it. */
void dt_extents(int work, const char *name, const void *call, dt_extent_visitor visit,
                void *context);

#ifdef __cplusplus
}
#endif
#endif
