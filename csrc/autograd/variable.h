/* Autograd metadata of a tensor: the node that produced it, or, for a leaf, its
 * accumulated gradient. Several tensors may share it (the program's object and
 * aliases of it). */
#ifndef DT_AUTOGRAD_VARIABLE_H
#define DT_AUTOGRAD_VARIABLE_H

#include "autograd/node.h"

/* Whether the calling thread records operations: grad mode. True at the start of every
 * thread. */
extern _Thread_local bool dt_grad_enabled;

/* The gradient of a non-leaf after retain_grad(). A hook of the node that produced
 * the tensor fills it; stored in the dt_variable itself, it would form a reference
 * cycle with that node. */
typedef struct dt_kept {
    dt_history head; /* reference count only: no tensor has this history */
    dt_hook *hook;   /* in the list of its node; NULL: none, or of a former node */
    dt_tensor grad;
    void *object; /* as in dt_variable */
} dt_kept;

typedef struct dt_variable {
    dt_history head;
    bool requires_grad;       /* leaf only */
    dt_kept *kept;            /* non-leaf only: set by retain_grad() */
    dt_edge made;             /* the node that produced it and which of its results;
                             NULL: a leaf */
    dt_node *accumulator;     /* leaf only: its AccumulateGrad node, borrowed */
    dt_tensor grad;           /* empty: none */
    dt_hook *hooks;           /* leaf only; a non-leaf's are in its node */
    dt_hook *after;           /* leaf only: called when a gradient has been added */
    struct dt_variable *base; /* view only: its base, which is not a view; one
                                 reference; or NULL */
    unsigned version;         /* view only: the storage's version when `made` was set */
    dt_tensor *geometry;      /* base only: its shape and strides, without storage */
    void *object; /* the Python object of grad, borrowed from the binding, which
                     clears it in time; or NULL */
    void *sparse; /* of a sparse gradient: autograd/sparse_gradient.h; else NULL */
} dt_variable;

static inline dt_variable *dt_variable_of(const dt_tensor *t)
{
    return (dt_variable *)t->history;
}

static inline bool dt_variable_requires_grad(const dt_variable *v)
{
    return v->requires_grad || v->made.node;
}

/* Whether t requires gradients. */
static inline bool dt_requires_grad(const dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    return v && (dt_variable_requires_grad(v) ||
                 (v->base && dt_variable_requires_grad(v->base)));
}

/* Whether an operation on t is differentiable now: gradients required and grad mode
 * on. */
static inline bool dt_recording(const dt_tensor *t)
{
    /* The thread's grad mode last: it is the slowest to read. */
    return __builtin_expect(t->history != NULL, 0) && dt_requires_grad(t) &&
           dt_grad_enabled;
}

/* Copies t's metadata without its storage. */
static inline void dt_variable_set_geometry(dt_tensor *out, const dt_tensor *t)
{
    *out = *t;
    out->storage = NULL;
    out->history = NULL;
}

/* A leaf that does not require gradients. NULL after dt_fail. */
dt_variable *dt_variable_new(void);
/* Fails for want of memory to record an operation. */
int dt_variable_no_memory(void);

/* t's variable, created if necessary; borrowed. NULL after dt_fail. */
dt_variable *dt_variable_ensure(dt_tensor *t);

/* Gives a view whose base was written since a new node that leads to the base. -1
 * after dt_fail. */
int dt_variable_refresh_slowly(const dt_tensor *t);
static inline int dt_variable_refresh(const dt_tensor *t)
{
    const dt_variable *v = dt_variable_of(t);
    return v && v->base && v->version != t->storage->version
               ? dt_variable_refresh_slowly(t)
               : 0;
}

/* Whether t is a non-leaf. Refreshes. */
static inline int dt_variable_is_made(const dt_tensor *t, bool *out)
{
    int status = dt_variable_refresh(t);
    *out = !status && t->history && dt_variable_of(t)->made.node;
    return status;
}

/* The destination of t's gradients: a new reference, or an edge to nowhere.
 * Refreshes. -1 after dt_fail. */
int dt_variable_edge(const dt_tensor *t, dt_edge *out);

/* The destination of gradients of v's base, whose storage is that of the view. */
int dt_variable_base_edge(const dt_variable *v, dt_storage *storage, dt_edge *out);

/* A second tensor over the same storage with the same autograd metadata. */
void dt_variable_alias(dt_tensor *out, const dt_tensor *t);

/* Makes v's tensor result `index` of node, whose hooks then keep its gradient. */
void dt_variable_become(dt_variable *v, dt_node *node, int index);

/* The same for t, which may have no metadata yet. -1 after dt_fail. */
int dt_variable_set_made(dt_tensor *t, dt_node *node, int index);

/* The same after t's shape has changed in place: a retained gradient keeps the old
 * shape, as in PyTorch. */
int dt_variable_reshape(dt_tensor *t, dt_node *node, int index);

/* Makes view a view of t, so that in-place writes to either update the other's
 * metadata. -1 after dt_fail. */
int dt_variable_set_view(dt_tensor *view, const dt_tensor *t);

/* The same for a view that is about to be written. */
int dt_variable_set_part(dt_tensor *part, const dt_tensor *whole);

/* The same for a view of a tensor that does not require gradients yet. Views made
 * under no_grad() of a tensor without metadata stay independent. On failure view is
 * cleared. */
int dt_variable_follow_slowly(dt_tensor *view, const dt_tensor *t);
static inline int dt_variable_follow(dt_tensor *view, const dt_tensor *t)
{
    return dt_dtype_is_differentiable((dt_dtype)t->dtype) &&
                   (t->history || dt_grad_enabled) && view->storage == t->storage
               ? dt_variable_follow_slowly(view, t)
               : 0;
}

/* Makes t, which is not a view, a leaf that does not require gradients; a base stays the
 * base of its views. */
void dt_variable_detach(dt_tensor *t);

/* Sets requires_grad of a leaf. */
int dt_variable_require(dt_tensor *t, bool wanted);

/* Adds to grad, which may be empty. Keeps the GIL, so that sums of several threads are
 * complete, and nobody takes the gradient away. */
int dt_gradient_add(dt_tensor *grad, dt_tensor *gradient, bool recorded);
/* Replaces sum by a new tensor, the recorded sum of both. */
int dt_variable_add(dt_tensor *sum, const dt_tensor *gradient);

/* The pointer to the Python object of the gradient of v's tensor, and what keeps
 * that pointer alive. */
static inline void **dt_variable_grad_object(dt_variable *v, dt_history **keeper)
{
    *keeper = v->kept ? &v->kept->head : &v->head;
    return v->kept ? &v->kept->object : &v->object;
}

/* Makes t keep its gradient, which a leaf does anyway. -1 after dt_fail. */
int dt_variable_retain_grad(const dt_tensor *t);

/* The gradient of v's tensor; may be empty. */
static inline dt_tensor *dt_variable_grad(dt_variable *v)
{
    return v->kept ? &v->kept->grad : &v->grad;
}

/* Calls visit for the nodes that are freed with t, whose hooks the garbage collector must
 * see, until it returns another value than 0, and returns that. Skips nodes without
 * calls_back, and everything behind them. Allocates nothing. No other thread may use
 * autograd metadata meanwhile. */
int dt_owned_visit(const dt_tensor *t, int (*visit)(void *context, const dt_node *node),
                   void *context);

extern const dt_node_type dt_accumulator;
/* A reference to the AccumulateGrad node of the leaf t, or NULL after dt_fail. */
dt_node *dt_accumulator_of(dt_variable *v, const dt_tensor *t);
/* The leaf of an AccumulateGrad node. */
static inline dt_variable *dt_accumulator_leaf(const dt_node *node)
{
    return *(dt_variable **)node->data;
}

#endif
