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

#include "device/group.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_group dt_group;

/* The descriptor of a new block of shared memory for `size` ranks, which the caller
 * closes; 0: for as many as those who open it say. -1 after dt_fail. */
int dt_group_create(int size);

/* This process's end of a group, as one of its ranks. The descriptor is the group's from
 * now on, also after a failure. NULL after dt_fail. */
dt_group *dt_group_open(int descriptor, int rank, int size);

/* Lets the other ranks see that this one has left, and why, as "the call at a line"; "": not
 * known. A call that waits in another thread fails soon. */
void dt_group_leave(dt_group *group, const char *why);
/* The same, and frees the group. No call of it may be under way. */
void dt_group_close(dt_group *group);

/* Writes why a rank will not come, or "" where it still may, and "was " its last call. */
void dt_group_tell(const dt_group *group, int rank, char problem[DT_GROUP_NEWS],
                   char last[DT_GROUP_NEWS]);

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

/* The functions above, for simulated NCCL. */
extern const dt_group_functions dt_group_of_cpu;

#ifdef __cplusplus
}
#endif
#endif
