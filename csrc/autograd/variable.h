/* The history of a tensor: what it was made by, or that it is a leaf which gathers
 * gradients. Several tensors may share one (the object in the program, and aliases of
 * it). */
#ifndef DT_AUTOGRAD_VARIABLE_H
#define DT_AUTOGRAD_VARIABLE_H

#include "autograd/mode.h"
#include "autograd/node.h"

/* The gradient that a tensor keeps though it is no leaf. The node that computes it has
 * a hook which puts it here; were it put into the variable, that and the node would
 * keep each other alive. */
typedef struct dt_kept {
    dt_history head; /* for references alone: no tensor has it */
    dt_tensor grad;
    void *object; /* as a variable's */
} dt_kept;

typedef struct dt_variable {
    dt_history head;
    bool requires_grad;   /* of a leaf */
    dt_kept *kept;        /* of one that is none, after retain_grad; else NULL */
    dt_edge made;         /* the node that made it, and as which result; NULL: a leaf */
    dt_node *accumulator; /* of a leaf: the node in graphs that stands for it; lent */
    dt_tensor grad;       /* holds nothing: there is none */
    dt_hook *hooks;       /* of a leaf; else they are the node's */
    struct dt_variable *base; /* of a view: of what it looks into, which is no view; one
                                 reference; or NULL */
    unsigned version;         /* of a view: of the storage when `made` was true */
    dt_tensor *geometry; /* of a base: shape and strides it has; it holds nothing */
    void *object; /* of the program, which stands for grad; lent by the binding, which
                     takes it away in time; or NULL */
} dt_variable;

static inline dt_variable *dt_variable_of(const dt_tensor *t)
{
    return (dt_variable *)t->history;
}

static inline bool dt_variable_requires_grad(const dt_variable *v)
{
    return v->requires_grad || v->made.node;
}

/* Whether gradients for t are wanted. */
static inline bool dt_requires_grad(const dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    return v && (dt_variable_requires_grad(v) ||
                 (v->base && dt_variable_requires_grad(v->base)));
}

/* Whether an operation on t is to be recorded now. */
static inline bool dt_recording(const dt_tensor *t)
{
    return __builtin_expect(t->history != NULL, 0) && dt_grad_enabled &&
           dt_requires_grad(t);
}

/* What t is like, without what it holds. */
static inline void dt_variable_set_geometry(dt_tensor *out, const dt_tensor *t)
{
    *out = *t;
    out->storage = NULL;
    out->history = NULL;
}

/* A leaf that wants no gradient yet. NULL after dt_fail. */
dt_variable *dt_variable_new(void);

/* t's variable, made where it has none; lent. NULL after dt_fail. */
dt_variable *dt_variable_ensure(dt_tensor *t);

/* Gives a view whose base was written since a history that leads to the base. -1 after
 * dt_fail. */
int dt_variable_refresh(const dt_tensor *t);

/* Whether a recorded operation made t, which is no leaf then. Refreshes. */
static inline int dt_variable_is_made(const dt_tensor *t, bool *out)
{
    int status = dt_variable_refresh(t);
    *out = !status && t->history && dt_variable_of(t)->made.node;
    return status;
}

/* Where gradients for t go: a new reference, or an edge to nowhere. Refreshes. -1 after
 * dt_fail. */
int dt_variable_edge(const dt_tensor *t, dt_edge *out);

/* Where gradients for the base of v go, which is that of a view of storage. */
int dt_variable_base_edge(const dt_variable *v, dt_storage *storage, dt_edge *out);

/* A second tensor over the same storage with the same history. */
void dt_variable_alias(dt_tensor *out, const dt_tensor *t);

/* Makes t the result number `index` of node. -1 after dt_fail. */
int dt_variable_set_made(dt_tensor *t, dt_node *node, int index);

/* Says that view looks into t, so that writing to either in place reaches the history
 * of the other. -1 after dt_fail. */
int dt_variable_set_view(dt_tensor *view, const dt_tensor *t);

/* The same for one that is written at once. */
int dt_variable_set_part(dt_tensor *part, const dt_tensor *whole);

/* The same for a view that was not recorded because t wants no gradient; that may
 * change. What is made under no_grad() of a tensor without history stays alone. On
 * failure view is cleared. */
int dt_variable_follow_slowly(dt_tensor *view, const dt_tensor *t);
static inline int dt_variable_follow(dt_tensor *view, const dt_tensor *t)
{
    return dt_dtype_is_float((dt_dtype)t->dtype) && (dt_grad_enabled || t->history) &&
                   view->storage == t->storage
               ? dt_variable_follow_slowly(view, t)
               : 0;
}

/* Makes a leaf want gradients, or not. */
int dt_variable_require(dt_tensor *t, bool wanted);

/* Adds gradient to a leaf's; `recorded`: so that the sum has a history. */
int dt_variable_accumulate(dt_variable *v, dt_tensor *gradient, bool recorded);

/* Where the object that stands for the gradient of v's tensor is kept, and what has to
 * live as long as that place is used. */
static inline void **dt_variable_grad_object(dt_variable *v, dt_history **keeper)
{
    *keeper = v->kept ? &v->kept->head : &v->head;
    return v->kept ? &v->kept->object : &v->object;
}

/* Makes t, which is no leaf, keep its gradient. -1 after dt_fail. */
int dt_variable_retain_grad(const dt_tensor *t);

/* Where the gradient of v's tensor is; it may hold nothing. */
static inline dt_tensor *dt_variable_grad(dt_variable *v)
{
    return v->kept ? &v->kept->grad : &v->grad;
}

extern const dt_node_type dt_accumulator;
/* The leaf that an accumulator stands for. */
static inline dt_variable *dt_accumulator_leaf(const dt_node *node)
{
    return *(dt_variable **)node->data;
}

#endif
