/* The table of the operations of ops/nn.def that each instruction set exports. */
#ifndef DT_CPU_KERNELS_NN_KERNELS_H
#define DT_CPU_KERNELS_NN_KERNELS_H

#include "cpu/kernels/kernels.h"
#include "device/nn.h"

/* What ops/nn.def says of an operand. */
typedef enum dt_nn_kind {
    DT_NN_NONE,
    DT_NN_OUT,
    DT_NN_INOUT,
    DT_NN_OUT_PER_ROW,
    DT_NN_OUT_SHARED,
    DT_NN_ROW,
    DT_NN_PER_ROW,
    DT_NN_INDEX,
    DT_NN_SHARED,
    DT_NN_SINGLE,
    DT_NN_MASK
} dt_nn_kind;
extern const unsigned char dt_nn_kinds[DT_NNN][DT_NN_OPERANDS];

/* One row: the addresses of its elements, which are next to each other, or of the one
 * that an operand has for it. */
typedef struct dt_nn_row {
    int64_t n;
    const dt_nn_params *params;
    void *at[DT_NN_OPERANDS];
} dt_nn_row;

/* Some rows of some columns, or one run of one column, that COLUMNS adds to its sums. */
typedef struct dt_nn_columns {
    int64_t rows, columns;
    int64_t row; /* elements from a row to the next */
    void *at[DT_NN_OPERANDS];
    double *sums[2]; /* of each column, or one; the second NULL: not wanted */
} dt_nn_columns;

/* NULL where an operation has no such form. */
typedef struct dt_nn_kernel {
    void (*row)(const dt_nn_row *row);
    void (*channel)(const dt_nn_row *row); /* CHANNELS: a run of one channel */
    void (*columns)(const dt_nn_columns *columns);
    void (*run)(const dt_nn_columns *columns);
} dt_nn_kernel;

typedef struct dt_nn_kernels {
    dt_nn_kernel float32[DT_NNN], float64[DT_NNN];
} dt_nn_kernels;

#endif
