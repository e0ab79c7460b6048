/* Order: sorted rows, the greatest few, what is there how often, and where in it. */
#ifndef DT_TENSOR_OPS_SORT_H
#define DT_TENSOR_OPS_SORT_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* The first k elements along dim in order (k -1: all of them), and where they were. A
 * stable sort, a NaN greater than all others. values may be NULL. */
int dt_sort(const char *what, dt_tensor *values, dt_tensor *indices, const dt_tensor *x,
            int64_t k, int64_t dim, bool descending);

/* Where each value goes in a sequence of one dimension, or in the one of its row along
 * the last dimension, so that the order holds: int64 of the shape of values. sorter, of
 * the sequence's shape, or NULL: the places of the sequence's elements in order. */
int dt_search_in(const char *what, dt_tensor *out, const dt_tensor *sequence,
                 const dt_tensor *values, const dt_tensor *sorter, bool right);

/* The elements of x that differ, of all of x (has_dim false) or the parts along dim,
 * where `consecutive` each from the one before, else in order. inverse: where each
 * element of x is among them; counts: how often each is there; both int64, or NULL.
 * Waits for a GPU, since the result's size depends on x. */
int dt_unique(const char *what, dt_tensor *out, dt_tensor *inverse, dt_tensor *counts,
              const dt_tensor *x, bool has_dim, int64_t dim, bool consecutive);

#endif
