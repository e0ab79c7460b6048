/* Numbers of operations: rows of the op tables, in the order of the rows. Whoever passes
 * them on needs no more; whoever names one includes the table's enumeration
 * (ops/elementwise_ops.h, ...), so that a new row compiles few files. */
#ifndef DT_OPS_OPS_H
#define DT_OPS_OPS_H

typedef unsigned dt_elementwise_op; /* ops/elementwise_ops.h */
typedef unsigned dt_reduce_op;      /* ops/reduce_ops.h */
typedef unsigned dt_optim_op;       /* ops/optim_ops.h */
typedef unsigned dt_nn_op;          /* device/nn_ops.h */
typedef unsigned dt_rnn_op;         /* device/rnn_ops.h */

/* The most that a row of ops/optim.def has. */
#define DT_OPTIM_STATES  3
#define DT_OPTIM_NUMBERS 8
#define DT_OPTIM_OWN     5
#define DT_OPTIM_KEPT    2
/* Takes the parentheses off a row's list of names. */
#define DT_OPTIM_NAMES(...) __VA_ARGS__

#endif
