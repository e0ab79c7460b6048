/* The nodes that a tensor's graph alone keeps alive, for the garbage collector. */
#include "autograd/variable.h"

/* Linked through the nodes: all visited nodes, whose `inside` must be reset, and
 * those whose references were all found, still to be searched. */
typedef struct walk {
    dt_node *met, *ready;
} walk;

/* Counts one reference to node from the owned part. */
static void meet(walk *w, dt_node *node)
{
    if (!node || !node->calls_back)
        return;
    if (!node->inside++) {
        node->next_met = w->met;
        w->met = node;
    }
    if (node->inside == __atomic_load_n(&node->references, __ATOMIC_RELAXED)) {
        node->next_ready = w->ready;
        w->ready = node;
    }
}

int dt_owned_visit(const dt_tensor *t, int (*visit)(void *context, const dt_node *node),
                   void *context)
{
    dt_variable *v = t->storage ? dt_variable_of(t) : NULL;
    walk w = {NULL, NULL};
    int status = 0;
    if (!v || __atomic_load_n(&v->head.references, __ATOMIC_RELAXED) != 1)
        return 0;
    meet(&w, v->made.node);
    while (w.ready && !status) {
        dt_node *node = w.ready;
        w.ready = node->next_ready;
        status = visit(context, node);
        for (int i = 0; i < node->nedges; i++)
            meet(&w, node->edges[i].node);
        for (int i = 0; i < node->nsaved; i++)
            meet(&w, node->saved[i].edge.node);
        meet(&w, node->inner);
    }
    for (dt_node *node = w.met; node; node = node->next_met)
        node->inside = 0;
    return status;
}
