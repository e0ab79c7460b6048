/* A tensor: a view of a storage. Floor 4, no Python: the binding's object embeds this
 * struct.
 *
 * Functions that make a tensor fill `out`, a struct that holds nothing yet, and the
 * caller then owns it: dt_tensor_clear releases it. After a failure `out` holds
 * nothing. Functions ending in
 * `_into` write into an existing tensor and leave its shape and type as they are.
 * Operations on GPUs are queued on the current stream of the tensor's device; only
 * functions whose comment says so wait. */
#ifndef DT_TENSOR_TENSOR_H
#define DT_TENSOR_TENSOR_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"
#include "device/storage.h"

/* What a tensor takes along for csrc/autograd, which alone looks inside. Here it is
 * only kept alive. */
typedef struct dt_history {
    int references;
    void (*free)(struct dt_history *history); /* when the last reference goes */
} dt_history;

typedef struct dt_tensor {
    dt_storage *storage; /* one reference; NULL: the struct holds nothing */
    dt_history *history; /* one reference, or NULL; functions of this floor give none */
    int64_t offset;      /* of element 0 in the storage, in elements */
    int64_t numel;
    unsigned char dtype; /* a dt_dtype */
    unsigned char ndim;
    bool contiguous;  /* row-major without gaps */
    bool unversioned; /* writing through it does not count: Tensor.data */
    int64_t shape[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM]; /* in elements; may be 0 (expanded), never negative */
} dt_tensor;

static inline dt_device dt_tensor_device(const dt_tensor *t)
{
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a whole tensor has one
    return t->storage->device;
}
static inline void *dt_tensor_data(const dt_tensor *t)
{
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a whole tensor has one
    return (char *)t->storage->data +
           t->offset * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
}

/* A new row-major tensor, contents undefined. `what` names the operation in errors. */
int dt_tensor_empty(const char *what, dt_tensor *out, dt_dtype dtype, int ndim,
                    const int64_t *shape, dt_device device);

/* The same with strides of the caller's, 0 or more; memory reaches to the last element.
 */
int dt_tensor_empty_strided(const char *what, dt_tensor *out, dt_dtype dtype, int ndim,
                            const int64_t *shape, const int64_t *strides,
                            dt_device device);

/* A second tensor over the same storage, without history. Cannot fail. */
void dt_tensor_alias(dt_tensor *out, const dt_tensor *t);

/* Gives the storage back; the struct then holds nothing. Allowed on one that holds
 * nothing. */
void dt_tensor_clear(dt_tensor *t);

/* Whether two elements share memory (stride 0 over more than one, or strides that
 * cross). May say yes for odd strides that do not. */
bool dt_tensor_overlaps_itself(const dt_tensor *t);

static inline dt_history *dt_history_retain(dt_history *history)
{
    if (history)
        __atomic_fetch_add(&history->references, 1, __ATOMIC_RELAXED);
    return history;
}
static inline void dt_history_release(dt_history *history)
{
    /* Who holds the only reference need not count it down. */
    if (history && (__atomic_load_n(&history->references, __ATOMIC_ACQUIRE) == 1 ||
                    __atomic_fetch_sub(&history->references, 1, __ATOMIC_ACQ_REL) == 1))
        history->free(history);
}

/* Counts a write in place. Every function that writes into a tensor it was given calls
 * this. */
static inline void dt_tensor_written(const dt_tensor *t)
{
    if (!t->unversioned)
        t->storage->version++;
}

/* Fills contiguous after shape and strides have been set by hand, and numel. */
void dt_tensor_update(dt_tensor *t);

#endif
