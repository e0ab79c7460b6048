/* The tree in which reductions and the ends of chains reduce elements.
 *
 * LEAF elements are reduced by one loop. Leaves are joined as a binary tree, which depends
 * on their number alone: a power of two of them, reduced as a tree of its own, is one of
 * its branches. So parts that begin at multiples of such a number are reduced apart, and
 * joined in order, with the same result, whatever the number. */
#ifndef DT_CPU_KERNELS_REDUCE_H
#define DT_CPU_KERNELS_REDUCE_H

#include "cpu/kernels/kernels.h"

#define DT_REDUCE_LEAF    512
#define DT_REDUCE_LEVELS  64
#define DT_REDUCE_PARTIAL sizeof(dt_moments) /* bytes of a partial result, at most */

/* Of `columns` partial results each, a stack of subtrees of the sizes of a binary
 * number's ones: each new leaf is joined with the subtrees of its own size. */
typedef struct dt_reduce_tree {
    const dt_reduce_kernel *kernel;
    int64_t columns, leaves;
    size_t bytes; /* of one level */
    char *levels;
    int depth;
} dt_reduce_tree;

static inline char *dt_reduce_tree_next(const dt_reduce_tree *t)
{
    return t->levels + (size_t)t->depth * t->bytes;
}

static inline void dt_reduce_tree_push(dt_reduce_tree *t)
{
    t->depth++;
    for (int64_t ones = t->leaves++; ones & 1; ones >>= 1) {
        t->depth--;
        t->kernel->join(t->columns, dt_reduce_tree_next(t) - t->bytes,
                        dt_reduce_tree_next(t));
    }
}

static inline char *dt_reduce_tree_finish(dt_reduce_tree *t)
{
    while (t->depth > 1) {
        t->depth--;
        t->kernel->join(t->columns, dt_reduce_tree_next(t) - t->bytes,
                        dt_reduce_tree_next(t));
    }
    return t->levels;
}

/* The kernel of a reduction, and the type that it takes; NULL: there is none. The result
 * has no 16 bits. */
const dt_reduce_kernel *dt_cpu_reduce_kernel(dt_reduce_op op, dt_dtype input,
                                             dt_dtype result, dt_dtype *compute);
/* Stores variances, and means unless mean is NULL; all: NULL: nothing is reduced. */
void dt_cpu_moments_store(const dt_reduction *r, void *mean, const dt_moments *all);

#endif
