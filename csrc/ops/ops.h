/* The enumerations of the op tables: one name a row, in the order of the rows. */
#ifndef DT_OPS_OPS_H
#define DT_OPS_OPS_H

typedef enum dt_unary_op {
#define UNARY(name, class, low, high, value, derivative, doc) DT_UNARY_##name,
#include "ops/unary.def"
#undef UNARY
    DT_NUNARY
} dt_unary_op;

typedef enum dt_binary_op {
#define BINARY(name, class, low, high, value, da, db, doc) DT_BINARY_##name,
#include "ops/kernels.def"
#undef BINARY
    DT_NBINARY
} dt_binary_op;

typedef enum dt_ternary_op {
#define TERNARY(name, class, low, high, value, da, db, dc, doc) DT_TERNARY_##name,
#include "ops/ternary.def"
#undef TERNARY
    DT_NTERNARY
} dt_ternary_op;

typedef enum dt_reduce_op {
#define REDUCE(name, class, identity, map, combine, finish, doc) DT_REDUCE_##name,
#include "ops/reduce.def"
#undef REDUCE
    DT_NREDUCE
} dt_reduce_op;

typedef enum dt_optim_op {
#define OPTIM(name, count, states, numbers, own_count, own, prepare, formula, doc)     \
    DT_UPDATE_##name,
#include "ops/optim.def"
#undef OPTIM
    DT_NOPTIM
} dt_optim_op;

/* The most that a row of ops/optim.def has. */
#define DT_OPTIM_STATES  3
#define DT_OPTIM_NUMBERS 7
#define DT_OPTIM_OWN     4
/* Takes the parentheses off a row's list of names. */
#define DT_OPTIM_NAMES(...) __VA_ARGS__

#endif
