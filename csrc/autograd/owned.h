/* Which part of a graph one tensor alone keeps alive. For the garbage collector of the
 * program, which has to see what hooks refer to. */
#ifndef DT_AUTOGRAD_OWNED_H
#define DT_AUTOGRAD_OWNED_H

#include "autograd/variable.h"

/* Stops the walk by giving something other than 0. */
typedef int (*dt_owned_fn)(void *context, const dt_node *node);

/* Calls visit for the nodes of t's history that go when t goes, and gives what it gave
 * last. Nodes that calls_back is not set for, and what lies behind them, are left out.
 * Allocates nothing. No other thread may use a history meanwhile. */
int dt_owned_visit(const dt_tensor *t, dt_owned_fn visit, void *context);

#endif
