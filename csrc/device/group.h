/* Exchanges of ranks of one machine in shared memory, and the functions that make them
 * (cpu/runtime/group.h): the CPU backend has them, and simulated NCCL uses them. */
#ifndef DT_DEVICE_GROUP_H
#define DT_DEVICE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_GROUP_RANKS 1024 /* the most */
#define DT_GROUP_KEY   160
#define DT_GROUP_LINE  128
#define DT_GROUP_NEWS  (DT_GROUP_KEY + DT_GROUP_LINE + 64)

struct dt_group;

/* A call, as messages show it: name, then key, which is equal on all ranks: "" and
 * "all_reduce(SUM) of 12 float32", "send of " and "12 float32". line: of the program, or
 * "". */
typedef struct dt_group_call {
    const char *name, *key, *line;
    double seconds;   /* to wait for the other ranks */
    const int *names; /* of ranks in messages; NULL: their numbers */
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
    bool whole; /* every rank gives in[0] and takes out[0], which have equal sizes */
} dt_group_exchange;

/* dt_group_NAME of cpu/runtime/group.h. */
typedef struct dt_group_functions {
    int (*create)(int size);
    struct dt_group *(*open)(int descriptor, int rank, int size);
    void (*leave)(struct dt_group *group, const char *why);
    void (*close)(struct dt_group *group);
    int (*run)(struct dt_group *group, const dt_group_call *call,
               const dt_group_exchange *exchange);
    int (*send)(struct dt_group *group, const dt_group_call *call, int to, int64_t tag,
                dt_group_span data);
    int (*receive)(struct dt_group *group, const dt_group_call *call, int from,
                   int64_t tag, dt_group_span data, int *sender);
} dt_group_functions;

#ifdef __cplusplus
}
#endif
#endif
