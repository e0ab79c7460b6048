/* Sorting, distinct elements, binary search. */
#ifndef DT_TENSOR_OPS_SORT_H
#define DT_TENSOR_OPS_SORT_H

#include "device/plan.h"
#include "tensor/tensor.h"

/* The first k elements along dim in order (k -1: all of them), and where they were. A
 * stable sort, a NaN greater than all others. values may be NULL. */
int dt_sort(const char *what, dt_tensor *values, dt_tensor *indices, const dt_tensor *x,
            int64_t k, int64_t dim, bool descending);

/* The index at which to insert each value into a sorted sequence of one dimension, or
 * into that of its row: int64 of the shape of values. sorter, of the sequence's shape, or
 * NULL: the argsort of a sequence that is not sorted. */
int dt_search_in(const char *what, dt_tensor *out, const dt_tensor *sequence,
                 const dt_tensor *values, const dt_tensor *sorter, bool right);

/* The distinct elements of x (has_dim false) or slices along dim, sorted; if
 * `consecutive`, those that differ from the one before. inverse: the index of each element
 * of x among them; counts: the number of times each occurs; both int64, or NULL.
 * Synchronizes with a GPU: the result's size depends on x. */
int dt_unique(const char *what, dt_tensor *out, dt_tensor *inverse, dt_tensor *counts,
              const dt_tensor *x, bool has_dim, int64_t dim, bool consecutive);

#endif
