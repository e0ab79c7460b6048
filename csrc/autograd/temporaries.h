/* Temporary tensors of one backward function, and the primitives of ops/formula.h as
 * calls on them. */
#ifndef DT_AUTOGRAD_TEMPORARIES_H
#define DT_AUTOGRAD_TEMPORARIES_H

#include "tensor/ops/elementwise.h"

#define DT_SCOPE_SLOTS 6

typedef struct dt_scope {
    int count; /* slots used in this block */
    bool failed;
    struct dt_scope *more;
    dt_tensor slots[DT_SCOPE_SLOTS];
} dt_scope;

static inline void dt_scope_begin(dt_scope *scope)
{
    scope->count = 0;
    scope->failed = false;
    scope->more = NULL;
}
/* Clears every tensor of the scope. */
void dt_scope_end(dt_scope *scope);

/* An empty slot for a tensor. NULL after dt_fail. */
dt_tensor *dt_scope_slot(dt_scope *scope);

/* --- differentiable calls --- */

/* The results belong to the scope. After a failure, the scope has failed and every call
 * returns an empty operand, so a formula checks once, at its end. */
dt_arg dt_scope_elementwise(dt_scope *scope, dt_elementwise_op op, const dt_arg *args);

/* The tensor of an operand, NULL after a failure. A number becomes a tensor like
 * `like`. */
dt_tensor *dt_scope_tensor(dt_scope *scope, dt_arg value, const dt_tensor *like);

#endif
