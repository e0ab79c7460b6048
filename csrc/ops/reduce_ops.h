/* DT_REDUCE_sum, ...: the numbers of the rows of ops/reduce.def. */
#ifndef DT_OPS_REDUCE_OPS_H
#define DT_OPS_REDUCE_OPS_H

enum {
#define REDUCE(name, ...) DT_REDUCE_##name,
#include "ops/reduce.def"
#undef REDUCE
    DT_NREDUCE
};

#endif
