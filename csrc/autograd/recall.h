/* Recalls: saved tensors that are had again in the backward pass instead of being kept.
 * Either a storage whose contents can be had again, such as a parameter that each rank has
 * a part of; or hooks, which pack all that is saved, and give it again. */
#ifndef DT_AUTOGRAD_RECALL_H
#define DT_AUTOGRAD_RECALL_H

#include "tensor/tensor.h"

/* Makes found, which is empty, a tensor of the contents. -1 after dt_fail. */
typedef int (*dt_recall_fn)(void *context, dt_tensor *found);
/* Hooks: packs t; the context of its own recall. NULL after dt_fail. */
typedef void *(*dt_pack_fn)(void *context, const dt_tensor *t);
typedef struct dt_recall {
    struct dt_recall *next; /* those of the thread that began before */
    int references;
    const dt_storage *storage; /* with the contents now; not kept; NULL: hooks */
    size_t bytes;
    dt_storage *stand_in; /* without memory, instead of it in saved tensors */
    dt_pack_fn pack;      /* of hooks that have begun; or NULL */
    dt_recall_fn bring;
    void (*free)(void *context);
    void *context;
    dt_tensor found; /* of a tensor that hooks packed: kept while its node runs */
} dt_recall;

/* The recalls that the calling thread has begun, the last one first. */
extern _Thread_local dt_recall *dt_recalls;

/* Lets operations of this thread save t's storage by asking bring(context) for it, until
 * dt_recall_end. t has to live until then. Takes over context. -1 after dt_fail. */
int dt_recall_begin(const dt_tensor *t, dt_recall_fn bring, void (*free)(void *),
                    void *context);
/* Lets operations of this thread pack(context) each tensor that they save, until
 * dt_recall_end; bring and free get what pack gave. Takes over context, which `free` frees
 * too. -1 after dt_fail. */
int dt_recall_begin_hooks(dt_pack_fn pack, dt_recall_fn bring, void (*free)(void *),
                          void *context);
/* Ends the last one, which saved tensors may still use. */
void dt_recall_end(void);

/* Lets saved, an alias of t, have the recall of it, if there is one: a reference, or
 * NULL. -1 after dt_fail. */
int dt_recall_instead(dt_tensor *saved, const dt_tensor *t, dt_recall **recall);
/* Gives an alias of a saved tensor its contents. -1 after dt_fail. */
int dt_recall_bring(dt_recall *recall, dt_tensor *alias);
/* NULL is allowed. */
void dt_recall_release(dt_recall *recall);

#endif
