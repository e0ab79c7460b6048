/* Collective calls of GPUs, by NCCL: what a backend is asked to do. */
#ifndef DT_DEVICE_COLLECTIVE_H
#define DT_DEVICE_COLLECTIVE_H

#include "device/group.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of what ranks meet by: one makes it, and gives it to the others. */
#define DT_COMMUNICATOR_ID 128

/* COLLECTIVE(name): `send` and `receive` have `count` elements, but one of them for each
 * rank: what an all_gather receives, and what a reduce_scatter sends. */
#define DT_COLLECTIVES(COLLECTIVE)                                                     \
    COLLECTIVE(all_reduce)                                                             \
    COLLECTIVE(broadcast) /* the root's, which `peer` is */                            \
    COLLECTIVE(reduce)    /* to the root */                                            \
    COLLECTIVE(all_gather)                                                             \
    COLLECTIVE(reduce_scatter)                                                         \
    COLLECTIVE(send) /* to `peer` */                                                   \
    COLLECTIVE(receive)

typedef enum dt_collective_op {
#define COLLECTIVE(name) DT_COLLECTIVE_##name,
    DT_COLLECTIVES(COLLECTIVE)
#undef COLLECTIVE
        DT_NCOLLECTIVES
} dt_collective_op;

/* As NCCL numbers them. */
typedef enum dt_collective_reduction {
    DT_COLLECTIVE_SUM,
    DT_COLLECTIVE_PRODUCT,
    DT_COLLECTIVE_MAX,
    DT_COLLECTIVE_MIN,
    DT_COLLECTIVE_AVERAGE,
} dt_collective_reduction;

typedef struct dt_collective {
    dt_collective_op op;
    dt_collective_reduction reduction;
    dt_dtype dtype; /* no bool, int16 or complex numbers: NCCL has none */
    int peer;
    int64_t count;
    const void *send;
    void *receive; /* may be `send` where both have as many elements */
} dt_collective;

/* Calls that start together, of one communicator. */
typedef struct dt_collective_call {
    void *communicator;
    int ranks, count;
    const dt_collective *items;
    dt_group_call call; /* for messages; seconds: of a simulated GPU alone */
} dt_collective_call;

static inline int64_t dt_collective_sent(const dt_collective *c, int ranks)
{
    const bool all = c->op == DT_COLLECTIVE_reduce_scatter;
    return c->send ? c->count * (all ? ranks : 1) : 0;
}
static inline int64_t dt_collective_received(const dt_collective *c, int ranks)
{
    const bool all = c->op == DT_COLLECTIVE_all_gather;
    return c->receive ? c->count * (all ? ranks : 1) : 0;
}

#ifdef __cplusplus
}
#endif
#endif
