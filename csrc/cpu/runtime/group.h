/* A group of processes of this machine, its ranks, which exchange data in shared memory.
 *
 * Every rank has a slot, which describes its current call, and a staging area, which the
 * others read. An exchange is a row of steps: write a piece, arrive, wait until all
 * have arrived, read the others' pieces. Slots and staging areas have two halves, used in
 * turn: a rank that has arrived at step k+1 has read all of step k, so that its half may
 * be written again for step k+2.
 *
 * Messages between two ranks have channels of their own, one for each direction.
 *
 * A rank that waits notices when another one dies, leaves, fails or does not come in
 * time. Its call fails then, and so do all later calls of the group. One thread at a time
 * may be in an exchange, and one for each channel and direction. */
#ifndef DT_CPU_RUNTIME_GROUP_H
#define DT_CPU_RUNTIME_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "ops/elementwise_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_GROUP_RANKS 1024 /* the most */
#define DT_GROUP_KEY   160
#define DT_GROUP_LINE  128

typedef struct dt_group dt_group;

/* A call, as messages show it: name, then key, which is equal on all ranks: "" and
 * "all_reduce(SUM) of 12 float32", "send of " and "12 float32". line: of the program, or
 * "". */
typedef struct dt_group_call {
    const char *name, *key, *line;
    double seconds; /* to wait for the other ranks */
} dt_group_call;

typedef struct dt_group_span {
    void *data; /* NULL: nothing */
    int64_t bytes;
} dt_group_span;

#define DT_GROUP_COPY (-1)

/* The memory that one rank gives and takes in an exchange. The staging area is one segment, which
 * every rank reads, or has one segment for each rank. */
typedef struct dt_group_exchange {
    int segments;            /* 1, or the number of ranks */
    const dt_group_span *in; /* by segment */
    const dt_group_span
        *out; /* by the rank that gives; with a reduction, out[0] alone */
    /* DT_OP_add and its kin: out[0] becomes ranks 0, 1, ... combined in this order, in
     * elements of dtype. Or DT_GROUP_COPY. */
    int combine;
    dt_dtype dtype;
} dt_group_exchange;

/* The descriptor of a new block of shared memory for `size` ranks, which the caller
 * closes. -1 after dt_fail. */
int dt_group_create(int size);

/* This process's end of a group, as one of its ranks. The descriptor is the group's from
 * now on, also after a failure. NULL after dt_fail. */
dt_group *dt_group_open(int descriptor, int rank, int size);

/* Tells the other ranks that this one has left. A call that waits in another thread fails
 * soon. */
void dt_group_leave(dt_group *group);
/* The same, and frees the group. No call of it may be under way. */
void dt_group_close(dt_group *group);

/* All ranks call it with the same key. -1 after dt_fail. */
int dt_group_run(dt_group *group, const dt_group_call *call,
                 const dt_group_exchange *exchange);

/* A message to rank `to`. Returns when the channel has taken all of it. */
int dt_group_send(dt_group *group, const dt_group_call *call, int to, int64_t tag,
                  dt_group_span data);

/* The first message of rank `from` with this tag, which has data.bytes and the call's
 * key. from -1: of any rank; *sender is the one that sent it. */
int dt_group_receive(dt_group *group, const dt_group_call *call, int from, int64_t tag,
                     dt_group_span data, int *sender);

#ifdef __cplusplus
}
#endif
#endif
