/* The shared memory of a group, and waiting in it: csrc/cpu/runtime/group*.c alone. */
#ifndef DT_CPU_RUNTIME_GROUP_BLOCK_H
#define DT_CPU_RUNTIME_GROUP_BLOCK_H

#include <pthread.h>
#include <sys/types.h>

#include "base/error.h"
#include "cpu/runtime/group.h"

/* Bytes of half a staging area: so few that those of several ranks stay in a core's cache. */
#define DT_GROUP_PIECE (128 << 10)
/* Bytes from which on more than two ranks combine a share each. */
#define DT_GROUP_SHARED (32 << 10)
#define DT_GROUP_PACKET (128 << 10) /* bytes of half a channel */

/* A counter, and how many ranks sleep until it grows. A cache line begins with it. */
typedef struct dt_group_count {
    uint32_t value;
    uint32_t sleepers;
} dt_group_count;

typedef struct dt_group_text {
    char key[DT_GROUP_KEY], line[DT_GROUP_LINE];
} dt_group_text;

/* The first cache line has all that the others read in each step. */
typedef struct dt_group_slot {
    _Alignas(64) dt_group_count
        steps;      /* that this rank has arrived at; the bell has the sleepers */
    uint32_t state; /* a dt_group_state */
    struct {
        uint64_t key;    /* of the call's text, equal where the text is */
        int64_t largest; /* bytes of its largest segment */
    } half[2];
    _Alignas(64) dt_group_text call[2]; /* by half */
    /* For messages of the others: what the rank called last, and how it has left. */
    dt_group_text last;
    char why[DT_GROUP_NEWS];
} dt_group_slot;

typedef enum dt_group_state {
    DT_GROUP_ABSENT,
    DT_GROUP_HERE,
    DT_GROUP_LEFT,   /* by dt_group_leave */
    DT_GROUP_FAILED, /* it has given up an exchange in the middle */
} dt_group_state;

/* From one rank to another. A packet is a message, or a part of it. */
typedef struct dt_group_channel {
    _Alignas(64) dt_group_count sent; /* packets */
    _Alignas(64) dt_group_count taken;
    struct {
        dt_group_text call;
        int64_t tag, bytes; /* of the message */
    } half[2];
    _Alignas(64) char data[2][DT_GROUP_PACKET];
} dt_group_channel;

/* A message that was received before the one with the tag that was asked for. */
typedef struct dt_group_stash {
    struct dt_group_stash *next;
    dt_group_text call;
    int64_t tag, bytes;
    char data[];
} dt_group_stash;

struct dt_group {
    int rank, size, descriptor;
    pid_t process;
    unsigned forks;       /* dt_forks() of that process, and not of a fork of it */
    bool crowded;         /* there are more ranks than cores */
    dt_group_count *bell; /* counts when the last rank has arrived, if others sleep */
    dt_group_slot *slots;
    int64_t *counts; /* [half][rank][segment]: bytes */
    char *staging;   /* [rank][what is given, a share of results][half] */
    dt_group_channel *channels;
    size_t bytes;
    pthread_mutex_t *inboxes; /* by the rank that sends: hold it to take a packet */
    dt_group_stash **stashes;
};

static inline int64_t dt_group_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
/* The word between a call and its line in a message: " at ", or "" without a line. */
static inline const char *dt_group_at(const char *line)
{
    return *line ? " at " : "";
}
static inline int dt_group_name(const dt_group_call *call, int rank)
{
    return call->names ? call->names[rank] : rank;
}
static inline char *dt_group_piece(const dt_group *group, int rank, int half)
{
    return group->staging + ((size_t)rank * 4 + (size_t)half) * DT_GROUP_PIECE;
}
static inline char *dt_group_share(const dt_group *group, int rank, int half)
{
    return dt_group_piece(group, rank, half) + 2 * DT_GROUP_PIECE;
}
static inline dt_group_channel *dt_group_way(const dt_group *group, int from, int to)
{
    return &group->channels[(size_t)from * (size_t)group->size + (size_t)to];
}

/* Fails if this process may not use the group. Notes the call for the others. */
int dt_group_begin(dt_group *group, const dt_group_call *call);

/* Fails if this process has left. */
int dt_group_check_left(const dt_group *group);

void dt_group_text_set(dt_group_text *text, const dt_group_call *call);

/* Whether the process of another rank has not ended. */
bool dt_group_lives(const dt_group *group, int rank);

/* Sets this rank's state, and wakes all that wait for it. */
void dt_group_state_set(dt_group *group, dt_group_state state);

/* Adds 1, and wakes who waits for it. */
void dt_group_count_up(dt_group_count *count);

/* Waits until the count of a rank has reached target. -1 after dt_fail if the rank dies,
 * leaves, fails or takes longer than the call waits, or this thread is interrupted. */
int dt_group_await(dt_group *group, const dt_group_call *call, int rank,
                   dt_group_count *count, uint32_t target);

/* Arrives at the next step, and waits for all others, as dt_group_await does. One that has
 * arrived may have given up since: that fails, too. */
int dt_group_meet(dt_group *group, const dt_group_call *call);

/* One poll of a wait for any other rank. Messages name `rank`. *start is 0 in the first poll
 * of the wait. */
int dt_group_look(dt_group *group, const dt_group_call *call, int rank, double *start);

#endif
