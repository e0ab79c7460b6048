/* Elements chosen by index tensors: reading, writing, adding. */
#ifndef DT_TENSOR_OPS_INDEX_H
#define DT_TENSOR_OPS_INDEX_H

#include "device/plan.h"
#include "tensor/tensor.h"

typedef enum dt_indexing_form {
    /* x[..., i, j, ...]: indices of dimensions, broadcast against one another; their
     * dimensions stand in place of the indexed ones where those are neighbours, else in
     * front. */
    DT_INDEXING_ADVANCED,
    DT_INDEXING_GATHER, /* x[a, i[a, b, c], c]: gather; one index with x's dimensions */
    DT_INDEXING_TAKE    /* one index into x's elements in row-major order: take */
} dt_indexing_form;

/* Which elements of a tensor. The index tensors are lent; they are integers of any type
 * on the tensor's device, or on the CPU, from where they are copied. */
typedef struct dt_indexing {
    const char *what;   /* the operation; a literal */
    dt_error_code code; /* of an index out of range on the CPU. A GPU reports it at the
                           next wait, as DT_ERROR_ACCELERATOR */
    dt_indexing_form form;
    bool wraps; /* negative indices count from the end */
    int count;
    int dims
        [DT_MAX_NDIM]; /* ascending; of DT_INDEXING_ADVANCED and DT_INDEXING_GATHER */
    const dt_tensor *indices[DT_MAX_NDIM];
} dt_indexing;

/* The chosen elements of x, a copy. Does not wait, unless an index has to be copied. */
int dt_index_read(dt_tensor *out, const dt_tensor *x, const dt_indexing *indexing);

/* target[indexing] op= values, which broadcast to the shape of what is chosen (of
 * DT_INDEXING_GATHER: have at least the index's sizes) and have target's type. op is not
 * DT_INDEX_READ. Values of one place: on the CPU in row-major order, on a GPU in no
 * certain order, so sums of floats may differ in their last bits and which of several
 * values is written is open. */
int dt_index_write(dt_index_op op, dt_tensor *target, const dt_indexing *indexing,
                   const dt_tensor *values);

/* The positions of elements that are not 0 (or NaN, or true), row by row, int64 of
 * shape [n, x.ndim]. Waits for a GPU's count, which is the result's size. */
int dt_nonzero(dt_tensor *out, const dt_tensor *x);

#endif
