/* A tensor: a view of a storage. No Python here: the binding's object embeds this
 * struct.
 *
 * Functions that create a tensor fill `out`, an empty struct, which the caller owns and
 * clears with dt_tensor_clear, after a failure as well: it may hold something then. The
 * dispatcher does so for the results of a call, DT_LOCAL for a tensor of a function.
 * Functions ending in `_into` write to an existing tensor and keep its shape and dtype.
 * Work on GPUs is queued on the current stream of the tensor's device; only functions
 * documented to synchronize do so. */
#ifndef DT_TENSOR_TENSOR_H
#define DT_TENSOR_TENSOR_H

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"
#include "device/fusion.h"
#include "device/storage.h"

/* Autograd metadata of a tensor, which only csrc/autograd looks into; here it is
 * kept alive. */
typedef struct dt_history {
    int references;
    void (*free)(struct dt_history *history); /* called when the last reference is
                                                 dropped */
} dt_history;

typedef struct dt_tensor {
    dt_storage *storage; /* one reference; NULL: the struct is empty */
    dt_history *history; /* one reference, or NULL; functions in csrc/tensor set none */
    int64_t offset;      /* of element 0, in elements */
    int64_t numel;
    unsigned char dtype; /* a dt_dtype */
    unsigned char ndim;
    bool contiguous;  /* row-major without gaps */
    bool unversioned; /* in-place writes do not increment the version: Tensor.data */
    int64_t shape[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM]; /* in elements; 0 if expanded, never negative */
} dt_tensor;

static inline dt_device dt_tensor_device(const dt_tensor *t)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): not an empty struct */
    return t->storage->device;
}
/* The same for programs, also where the tensor's storage has no memory now. */
static inline dt_device dt_tensor_home(const dt_tensor *t)
{
    return dt_device_home(dt_tensor_device(t));
}
/* The address of the first element; NULL if there is none, since the offset of an empty
 * view may lead beyond its memory. For operands of elementwise plans, and to compare:
 * what is there may still wait (device/fusion.h). */
static inline void *dt_tensor_place(const dt_tensor *t)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): not an empty struct */
    if (__builtin_expect(!t->numel, 0))
        return NULL;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): not an empty struct */
    return (char *)t->storage->data +
           t->offset * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
}
/* The first element, to be read or written now; NULL where there is none. */
void *dt_tensor_settled(const dt_tensor *t);
static inline void *dt_tensor_data(const dt_tensor *t)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): not an empty struct */
    if (__builtin_expect(t->numel < dt_fusion_bound, 0))
        return dt_tensor_settled(t);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): not an empty struct */
    return (char *)t->storage->data +
           t->offset * (int64_t)dt_dtype_size((dt_dtype)t->dtype);
}
/* The same for others, who read and write it when they like. */
static inline void *dt_tensor_export(const dt_tensor *t)
{
    t->storage->exported = true;
    return dt_tensor_data(t);
}
/* The same for others that keep the address: the storage keeps its size from now on. */
static inline void *dt_tensor_lend(const dt_tensor *t)
{
    t->storage->lent++;
    return dt_tensor_export(t);
}

/* Creates a row-major tensor, contents undefined. `op_name` is for error messages. */
int dt_tensor_empty(const char *op_name, dt_tensor *out, dt_dtype dtype, int ndim,
                    const int64_t *shape, dt_device device);

/* The same in the shape of t, which is contiguous and of no larger elements. */
int dt_tensor_empty_like(const char *op_name, dt_tensor *out, dt_dtype dtype,
                         const dt_tensor *t);

/* The same with the given strides, which must not be negative; the memory ends after
 * the last element. */
int dt_tensor_empty_strided(const char *op_name, dt_tensor *out, dt_dtype dtype,
                            int ndim, const int64_t *shape, const int64_t *strides,
                            dt_device device);

/* Makes `out` a second view of t's storage, without autograd metadata. Cannot fail. */
void dt_tensor_alias(dt_tensor *out, const dt_tensor *t);

/* Releases the storage and leaves the struct empty. An empty struct is allowed. */
void dt_tensor_clear(dt_tensor *t);

/* Declares an empty tensor that is cleared at the end of the block. (An initializer would
 * set all of the struct, which is large.) */
#define DT_LOCAL(name)                                                                 \
    __attribute__((cleanup(dt_tensor_clear))) dt_tensor name;                          \
    (name).storage = NULL

/* Moves t, which is empty then, to out, whose contents are released. */
static inline void dt_tensor_move(dt_tensor *out, dt_tensor *t)
{
    /* Releasing may run Python code, which may look at out. */
    dt_tensor old;
    old.storage = out->storage;
    old.history = old.storage ? out->history : NULL;
    *out = *t;
    t->storage = NULL;
    dt_tensor_clear(&old);
}

/* Reports the use of t on its device's current stream; NULL and empty are allowed. */
static inline int dt_tensor_use(const dt_tensor *t)
{
    return t && t->storage ? dt_storage_use(t->storage) : 0;
}

/* Whether both show the same elements of the same memory in the same way. */
bool dt_tensor_is_same_view(const dt_tensor *a, const dt_tensor *b);

/* Whether two elements share memory (a stride of 0, or strides that interleave). May
 * report an overlap for unusual strides that have none. */
bool dt_tensor_overlaps_itself(const dt_tensor *t);

/* Fails where t cannot be written: its elements share memory, or that is read-only. */
int dt_tensor_check_writable(const char *op_name, const dt_tensor *t);

/* Whether the elements fill a range of memory in some order of dimensions. */
bool dt_tensor_is_non_overlapping_and_dense(const dt_tensor *t);

static inline dt_history *dt_history_retain(dt_history *history)
{
    if (history)
        dt_count_up(&history->references);
    return history;
}
static inline void dt_history_release(dt_history *history)
{
    if (history && dt_count_down(&history->references))
        history->free(history);
}

/* Counts an in-place write. Every function that writes to an existing tensor calls
 * this. */
static inline void dt_tensor_written(const dt_tensor *t)
{
    if (!t->unversioned)
        t->storage->version++;
}

/* Sets `contiguous` after the caller has set shape, strides and numel. */
void dt_tensor_update(dt_tensor *t);

#endif
