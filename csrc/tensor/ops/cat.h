/* Tensors put together along a dimension. */
#ifndef DT_TENSOR_OPS_CAT_H
#define DT_TENSOR_OPS_CAT_H

#include "tensor/tensor.h"

/* What is joined, all of it lent. Set what, tensors, count (1 or more) and stack, then
 * measure. */
typedef struct dt_cat {
    const char *what; /* the operation, in messages */
    const dt_tensor *const *tensors;
    int64_t count;
    bool stack; /* along a new dimension, else along one that they have */
    /* What dt_cat_measure finds of the result: */
    dt_dtype dtype; /* the caller may choose another then */
    dt_device device;
    int dim, ndim;
    int64_t shape[DT_MAX_NDIM];
} dt_cat;

/* Checks the tensors, wraps dim, and finds what the result will be like. All are on one
 * device. A cat leaves out tensors of shape [0], whatever shape the others have. Fails
 * with the number of the tensor that does not fit. */
int dt_cat_measure(dt_cat *join, int64_t dim);

/* Whether the join leaves tensor i out. */
static inline bool dt_cat_skips(const dt_cat *join, int64_t i)
{
    const dt_tensor *t = join->tensors[i];
    return !join->stack && t->ndim == 1 && t->shape[0] == 0;
}

/* The result in new row-major memory: each tensor is copied, and converted, once, to
 * where it belongs. */
int dt_cat_new(dt_tensor *out, const dt_cat *join);

/* The same in memory of the caller's, of the result's shape. Fails where it shares
 * elements with a tensor; its type stays: DT_ERROR_TYPE where the result's does not
 * convert to it. */
int dt_cat_into(dt_tensor *target, const dt_cat *join);

#endif
