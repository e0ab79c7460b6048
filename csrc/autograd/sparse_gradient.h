/* Gradients that are sparse tensors, whose entries the binding has. In a pass and in a leaf
 * one is a tensor of its shape and type on the device meta, which has no data, and its
 * metadata holds the binding's object. Nodes but AccumulateGrad are given a dense one. */
#ifndef DT_AUTOGRAD_SPARSE_GRADIENT_H
#define DT_AUTOGRAD_SPARSE_GRADIENT_H

#include "autograd/variable.h"

/* The work of the binding, set before there is a sparse gradient. */
typedef struct dt_sparse_functions {
    /* Adds to sum, at least one of both being sparse: in place if it is dense and
     * nothing is recorded. */
    int (*add)(dt_tensor *sum, const dt_tensor *gradient, bool recorded);
    int (*make_dense)(dt_tensor *gradient);
    void (*free)(void *object);
} dt_sparse_functions;
extern dt_sparse_functions dt_sparse;

static inline bool dt_gradient_is_sparse(const dt_tensor *t)
{
    return __builtin_expect(t->history != NULL, 0) && dt_variable_of(t)->sparse;
}

/* A sparse gradient that holds object, which it takes over. -1 after dt_fail, and object is
 * freed. */
int dt_sparse_gradient(dt_tensor *out, void *object, dt_dtype dtype, int ndim,
                       const int64_t *shape);

#endif
