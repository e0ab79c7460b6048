/* The part of the graph that one tensor alone keeps alive: the garbage collector
 * must see what its hooks refer to. */
#ifndef DT_AUTOGRAD_OWNED_H
#define DT_AUTOGRAD_OWNED_H

#include "autograd/variable.h"

/* A non-zero return value stops the walk. */
typedef int (*dt_owned_fn)(void *context, const dt_node *node);

/* Calls visit for the nodes that are freed with t, and returns visit's last value.
 * Skips nodes without calls_back, and everything behind them. Allocates nothing. No
 * other thread may use autograd metadata meanwhile. */
int dt_owned_visit(const dt_tensor *t, dt_owned_fn visit, void *context);

#endif
