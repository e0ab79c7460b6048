/* A node of the autograd graph: the backward of one operation. */
#ifndef DT_AUTOGRAD_NODE_H
#define DT_AUTOGRAD_NODE_H

#include "autograd/hook.h"
#include "device/stream.h"
#include "tensor/tensor.h"

typedef struct dt_node dt_node;
struct dt_scope;
struct dt_variable;

/* The destination of a gradient: result `index` of node. node NULL: not needed. */
typedef struct dt_edge {
    dt_node *node; /* one reference */
    int index;
} dt_edge;

/* A tensor saved for the backward pass. */
typedef struct dt_saved {
    dt_tensor tensor; /* without autograd metadata; empty once a backward pass freed
                         it */
    dt_edge edge;     /* destination of its gradients, for higher derivatives */
    int output;       /* index if it is a result of the node itself; -1: an input */
    unsigned version; /* of its storage when it was saved */
    struct dt_recall *recall; /* gives the contents, which tensor lacks then; or NULL */
} dt_saved;

/* Metadata of a result, to check and convert the gradients that arrive. */
typedef struct dt_result {
    dt_dtype dtype;
    dt_device device;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
} dt_result;

typedef struct dt_node_type {
    /* Sets into[i] for every input i that needs a gradient (dt_node_wants) to a
     * tensor of scope or to one of gradients; NULL means zeros. gradients[i] is NULL
     * if result i got no gradient. Runs in the grad mode of the pass, so its calls
     * are differentiable if the user asked for that. */
    int (*apply)(dt_node *node, struct dt_scope *scope, dt_tensor *const *gradients,
                 dt_tensor **into);
    void (*free)(dt_node *node); /* frees the contents of `data`; or NULL */
    /* Writes PyTorch's name of saved tensor i; NULL: they have none. */
    void (*saved_name)(const dt_node *node, int i, char *text, size_t size);
} dt_node_type;

struct dt_node {
    int references;
    int nedges, nsaved, nresults;
    /* Higher than that of every node its edges lead to (dt_node_lead), so that running
     * the highest first completes the gradients of a node before it runs. 0:
     * AccumulateGrad. */
    uint64_t sequence;
    const dt_node_type *type;
    const char *name; /* as in <MulBackward0>; static, or freed with data */
    dt_edge *edges;
    dt_saved *saved;
    dt_result *results;
    void *data;     /* arguments of the backward function */
    dt_node *inner; /* whose backward function is a step of this one's; or NULL */
    void *stream;   /* current on the first result's device in the forward pass */
    bool fused; /* made, and so to be run, where operations wait (device/fusion.h) */
    bool used;  /* a backward pass has freed the saved tensors */
    bool packs; /* hooks have packed some of them (recall.h) */
    /* Whether the node, or one reachable from it, calls Python: set from the hooks
     * that exist when the node is created. */
    bool calls_back;
    int line;       /* where it was called, for observers (dt_activity_line); or -1 */
    dt_hook *hooks; /* of single results */
    dt_hook *before, *after; /* of the whole node, around its run */
    char *place;             /* the same as a text, in anomaly mode; or NULL */
    dt_node *pending;        /* list of nodes being freed */
    /* Used by the search of dt_owned_visit. */
    int inside;
    dt_node *next_met, *next_ready;
};

/* Allocates a node with empty parts of these sizes and data_bytes zeros. NULL after
 * dt_fail. */
dt_node *dt_node_new(const dt_node_type *type, const char *name, int nedges, int nsaved,
                     int nresults, size_t data_bytes);

static inline dt_node *dt_node_retain(dt_node *node)
{
    if (node)
        dt_count_up(&node->references);
    return node;
}
/* Drops a reference; frees chains of nodes in a loop. NULL is allowed. */
void dt_node_release(dt_node *node);

static inline bool dt_node_wants(const dt_node *node, int input)
{
    return node->edges[input].node != NULL;
}

/* Sets edge i of node, taking over its reference. All edges are set here: node, which no
 * other node leads to yet, gets a number above that of the edge's node, which may have been
 * made after it: a view gets a new one when it is looked at. */
void dt_node_lead(dt_node *node, int i, dt_edge to);

/* Records the metadata of result i. */
void dt_node_set_result(dt_node *node, int i, const dt_tensor *t);

/* Saves t, an input or result number `output`, for apply. -1 after dt_fail, where hooks
 * have failed. */
int dt_node_save(dt_node *node, int i, const dt_tensor *t, int output);

/* Saves a copy of t, an input that is about to be overwritten. -1 after dt_fail. */
int dt_node_save_copy(dt_node *node, int i, const dt_tensor *t);

/* The saved tensor i, in scope, with autograd metadata if the pass is
 * differentiable. NULL after dt_fail if it was freed or written since. */
dt_tensor *dt_node_saved(dt_node *node, int i, struct dt_scope *scope);
/* The same in `into`, which is empty; connected: with metadata in any case. -1 after
 * dt_fail. */
int dt_node_unpack(dt_node *node, int i, dt_tensor *into, bool connected);
/* After node has run: drops what hooks have unpacked for it. */
void dt_node_forget_unpacked(const dt_node *node);

/* Drops all saved tensors. */
void dt_node_free_saved(dt_node *node);

#endif
