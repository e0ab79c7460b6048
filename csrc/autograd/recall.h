/* Recalls: a storage whose contents can be had again, such as a parameter that each rank
 * has a part of. Saved tensors do not keep it, they ask for it in the backward pass. */
#ifndef DT_AUTOGRAD_RECALL_H
#define DT_AUTOGRAD_RECALL_H

#include "tensor/tensor.h"

/* A storage of the contents, of which the caller owns a reference. NULL after dt_fail. */
typedef dt_storage *(*dt_recall_fn)(void *context);
typedef struct dt_recall {
    struct dt_recall *next; /* those of the thread that began before */
    int references;
    const dt_storage *storage; /* with the contents now; not kept */
    size_t bytes;
    dt_storage *stand_in; /* without memory, instead of it in saved tensors */
    dt_recall_fn bring;
    void (*free)(void *context);
    void *context;
} dt_recall;

/* Those that the calling thread has begun, the last one first. */
extern _Thread_local dt_recall *dt_recalls;

/* Lets operations of this thread save t's storage by asking bring(context) for it, until
 * dt_recall_end. t has to live until then. Takes over context. -1 after dt_fail. */
int dt_recall_begin(const dt_tensor *t, dt_recall_fn bring, void (*free)(void *),
                    void *context);
/* Ends the last one, which saved tensors may still use. */
void dt_recall_end(void);

/* Lets a saved tensor, which keeps storage, have the recall of it, if there is one: a
 * reference, or NULL. */
dt_recall *dt_recall_instead(dt_tensor *saved);
/* Gives an alias of a saved tensor its contents. -1 after dt_fail. */
int dt_recall_bring(const dt_recall *recall, dt_tensor *alias);
/* NULL is allowed. */
void dt_recall_release(dt_recall *recall);

#endif
