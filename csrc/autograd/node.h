/* One recorded operation: where the gradients of its results go, and what it takes to
 * compute those of its inputs. */
#ifndef DT_AUTOGRAD_NODE_H
#define DT_AUTOGRAD_NODE_H

#include "device/stream.h"
#include "tensor/tensor.h"

typedef struct dt_node dt_node;
struct dt_scope;
struct dt_variable;

/* A place that a gradient goes to: result number `index` of node. node NULL: nobody
 * wants it. */
typedef struct dt_edge {
    dt_node *node; /* one reference */
    int index;
} dt_edge;

/* A tensor kept for the backward pass. */
typedef struct dt_saved {
    dt_tensor tensor; /* without history; holds nothing once a backward pass freed it */
    dt_edge edge;     /* where gradients for it go, for derivatives of higher order */
    int output;       /* which result of the node itself it is; -1: an input */
    unsigned version; /* of its storage when it was kept */
} dt_saved;

/* What is known of a result, to check and fit the gradients that arrive for it. */
typedef struct dt_result {
    dt_dtype dtype;
    dt_device device;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
} dt_result;

/* Called with the gradient of a result, which it may replace (clear, then fill). 0, or
 * -1 after dt_fail. */
typedef int (*dt_hook_fn)(void *context, dt_tensor *gradient);
typedef struct dt_hook {
    struct dt_hook *next;
    int64_t id;
    int references; /* the list's, and those of passes that call it just now */
    bool removed;
    int index; /* of the result */
    dt_hook_fn call;
    void (*free)(void *context);
    void *context;
} dt_hook;

typedef struct dt_node_type {
    /* Sets into[i] for every input i that wants a gradient (dt_node_wants) to a tensor
     * of scope, to one of gradients, or leaves it NULL for a gradient of zeros.
     * gradients[i] is NULL where no gradient came for result i. Runs in the grad mode
     * of the pass: what it calls is recorded where the user asked for that. */
    int (*apply)(dt_node *node, struct dt_scope *scope, dt_tensor *const *gradients,
                 dt_tensor **into);
    void (*free)(dt_node *node); /* what `data` holds; or NULL */
} dt_node_type;

struct dt_node {
    int references;
    int nedges, nsaved, nresults;
    /* Greater than that of every node its edges lead to, so that going by it alone
     * brings all gradients of a node together before it runs. 0: an accumulator. */
    uint64_t sequence;
    const dt_node_type *type;
    const char *name; /* as in <MulBackward0>; static, or freed with data */
    dt_edge *edges;
    dt_saved *saved;
    dt_result *results;
    void *data;   /* of the type's own */
    void *stream; /* current on the first result's device when it was recorded */
    bool used;    /* a backward pass has freed what was saved */
    /* Whether it, or a node that its edges lead to, calls functions of the program: of
     * hooks that were there when the node was made. */
    bool calls_back;
    dt_hook *hooks;
    dt_node *pending; /* while nodes are being freed */
    /* While the part of a graph that a tensor owns is looked for (owned.h). */
    int inside;
    dt_node *next_met, *next_ready;
};

/* A node with room for that many, all empty, and data_bytes of zeros. NULL after
 * dt_fail. */
dt_node *dt_node_new(const dt_node_type *type, const char *name, int nedges, int nsaved,
                     int nresults, size_t data_bytes);

static inline dt_node *dt_node_retain(dt_node *node)
{
    if (node)
        __atomic_fetch_add(&node->references, 1, __ATOMIC_RELAXED);
    return node;
}
/* Frees chains of nodes in a loop, however long. NULL is allowed. */
void dt_node_release(dt_node *node);

static inline bool dt_node_wants(const dt_node *node, int input)
{
    return node->edges[input].node != NULL;
}

/* Notes what t is like as result i. */
void dt_node_set_result(dt_node *node, int i, const dt_tensor *t);

/* Keeps t, an input, or result number `output`, for apply. */
void dt_node_save(dt_node *node, int i, const dt_tensor *t, int output);

/* Keeps a copy of what t, an input that is about to be overwritten, holds. -1 after
 * dt_fail. */
int dt_node_save_copy(dt_node *node, int i, const dt_tensor *t);

/* The tensor kept at i, in scope, with a history where the pass is recorded. NULL after
 * dt_fail where it is gone or has been written since. */
dt_tensor *dt_node_saved(dt_node *node, int i, struct dt_scope *scope);

/* Lets go of everything that was kept. */
void dt_node_free_saved(dt_node *node);

/* Adds a hook (the node takes context over); returns its id. -1 after dt_fail. */
int64_t dt_hooks_add(dt_hook **hooks, int index, dt_hook_fn call, void (*free)(void *),
                     void *context);
void dt_hooks_remove(dt_hook **hooks, int64_t id);

/* Calls the hooks of a list, each with the gradient of its result where one came. They
 * may remove each other, and themselves. -1 after dt_fail. */
int dt_hooks_run(dt_hook *hooks, dt_tensor *gradients, int nresults);
void dt_hooks_free(dt_hook **hooks);

#endif
