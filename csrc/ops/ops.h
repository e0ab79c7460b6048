/* The enumerations of the op tables: one name a row, in the order of the rows. */
#ifndef DT_OPS_OPS_H
#define DT_OPS_OPS_H

typedef enum dt_elementwise_op {
#define KERNEL(name, ...) DT_OP_##name,
#include "ops/elementwise_kernels.def"
    DT_NELEMENTWISE
} dt_elementwise_op;

typedef enum dt_reduce_op {
#define REDUCE(name, class, identity, map, combine, finish, ...) DT_REDUCE_##name,
#include "ops/reduce.def"
#undef REDUCE
    DT_NREDUCE
} dt_reduce_op;

typedef enum dt_optim_op {
#define OPTIM(name, count, states, numbers, own, kept_count, kept, prepare, formula,   \
              doc)                                                                     \
    DT_UPDATE_##name,
#include "ops/optim.def"
#undef OPTIM
    DT_NOPTIM
} dt_optim_op;

/* The most that a row of ops/optim.def has. */
#define DT_OPTIM_STATES  3
#define DT_OPTIM_NUMBERS 8
#define DT_OPTIM_OWN     5
#define DT_OPTIM_KEPT    2
/* Takes the parentheses off a row's list of names. */
#define DT_OPTIM_NAMES(...) __VA_ARGS__

#endif
