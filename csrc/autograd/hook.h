/* Hooks: functions that are called with a gradient, in a list of a node or a leaf. */
#ifndef DT_AUTOGRAD_HOOK_H
#define DT_AUTOGRAD_HOOK_H

#include "tensor/tensor.h"

struct dt_node;
struct dt_scope;

/* The binding's object of a gradient. All hooks of a result are called with the same
 * object. object is NULL before the first hook makes it. */
typedef struct dt_shown {
    void *object;
    void (*free)(void *object);
} dt_shown;
/* Called with the gradient of a result, which it may replace (clear, then fill). 0,
 * or -1 after dt_fail. */
typedef int (*dt_hook_fn)(void *context, dt_tensor *gradient, dt_shown *shown);
/* The same of a whole node: before it runs with the gradients of its results, which it
 * may replace; after it has run also with those of its inputs (NULL: none), which it may
 * replace by tensors of scope. */
typedef int (*dt_node_hook_fn)(void *context, const struct dt_node *node,
                               struct dt_scope *scope, dt_tensor *results,
                               dt_tensor **inputs);
typedef struct dt_hook {
    struct dt_hook *next;
    struct dt_hook **list; /* that it is in; NULL once it is removed */
    int64_t id;
    int references; /* the list's, handles', and those of passes that are calling it */
    int uses;       /* the same without handles; at 0 the context is freed */
    bool last;      /* called after those that are not */
    int index;      /* of the result */
    dt_hook_fn call;
    dt_node_hook_fn call_node; /* of a whole node's; NULL: it only keeps its context */
    void (*free)(void *context);
    void *context;
} dt_hook;

/* Adds a hook to a list, which keeps it; it takes over context. NULL after dt_fail. */
dt_hook *dt_hooks_add(dt_hook **list, int index, bool last, dt_hook_fn call,
                      void (*free)(void *), void *context);
/* Puts a hook into another list. */
void dt_hook_move(dt_hook *hook, dt_hook **list, int index);
/* Takes a hook out of its list. A handle of it, which holds a reference, may do so at any
 * time. */
void dt_hook_remove(dt_hook *hook);
void dt_hook_release(dt_hook *hook);

/* Calls the hooks, each with the gradient of its result if there is one. They may
 * remove each other and themselves. -1 after dt_fail. */
int dt_hooks_run(dt_hook *hooks, dt_tensor *gradients, int nresults);
/* The same of a whole node's hooks. */
int dt_node_hooks_run(dt_hook *hooks, const struct dt_node *node,
                      struct dt_scope *scope, dt_tensor *results, dt_tensor **inputs);
void dt_hooks_free_all(dt_hook **hooks);
static inline void dt_hooks_free(dt_hook **hooks)
{
    if (*hooks) /* nearly all lists are empty */
        dt_hooks_free_all(hooks);
}

#endif
