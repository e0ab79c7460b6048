/* The ends of a chain (device/chain.h) take elements tile by tile. */
#ifndef DT_CPU_KERNELS_CHAIN_END_H
#define DT_CPU_KERNELS_CHAIN_END_H

#include "cpu/kernels/reduce.h"
#include "device/chain.h"

/* Bytes of the longest row of an operation on rows. */
#define DT_CHAIN_ROW 65536
/* Elements of a row that are reduced apart: a power of two of leaves. */
#define DT_CHAIN_BLOCK (32 * DT_REDUCE_LEAF)

/* A reduction, and how its elements are cut: `blocks` parts of a row, of `block` elements
 * each but for the last. */
typedef struct dt_chain_sum {
    const dt_chain_end *end;
    const dt_reduce_kernel *kernel;
    dt_dtype input, compute; /* of the elements, and what the kernel takes */
    int64_t row, block, blocks;
    double parameter;
} dt_chain_sum;

/* A block, as far as one thread has taken it. */
typedef struct dt_chain_part {
    dt_reduce_tree tree;
    _Alignas(8) char levels[DT_REDUCE_LEVELS * DT_REDUCE_PARTIAL];
} dt_chain_part;

dt_chain_sum dt_chain_sum_of(const dt_chain_end *end, int64_t row, int64_t block);
/* n elements from number `begin` of all on: the first of a block, or what follows those
 * that the part has. They end at the end of a leaf or of a row. */
void dt_chain_sum_take(const dt_chain_sum *sum, dt_chain_part *part, int64_t begin,
                       int64_t n, const char *x);
/* The results, after all blocks. */
void dt_chain_sum_finish(const dt_chain_sum *sum);

/* Whether the operation takes one row after the other, and its operand is a row. writes:
 * the operands that it writes. */
bool dt_cpu_nn_takes_rows(const dt_nn_call *call, int operand, unsigned *writes);
/* Rows begin to end-1, on the calling thread; those of the operand are at x. */
void dt_cpu_nn_rows(const dt_nn_call *call, int operand, const void *x, int64_t begin,
                    int64_t end);

#endif
