/* The table of the operations of ops/nn.def that each instruction set exports. */
#ifndef DT_CPU_KERNELS_NN_KERNELS_H
#define DT_CPU_KERNELS_NN_KERNELS_H

#include "cpu/kernels/kernels.h"
#include "device/nn.h"

/* Kinds of operands. */
enum {
    DT_ROW_NONE,
    DT_ROW_OUT,
    DT_ROW_OUT_ONE,
    DT_ROW_OUT_SHARED,
    DT_ROW_ROW,
    DT_ROW_ONE,
    DT_ROW_INDEX,
    DT_ROW_SHARED,
    DT_ROW_SINGLE,
    DT_ROW_MASK
};
extern const unsigned char dt_row_kinds[DT_NNN][DT_ROW_OPERANDS];

/* One row: the addresses of its elements, which lie next to each other, or of the one
 * that an operand has for it. */
typedef struct dt_cpu_row {
    int64_t n;
    char *at[DT_ROW_OPERANDS];
    int64_t ignored;
    double parameter, factor;
    int step; /* of CHANNELS: 1 where SHARED operands go on with the elements, 0 where
                 the row is a run of one channel */
} dt_cpu_row;
typedef void dt_cpu_row_kernel(const dt_cpu_row *row);

/* Some rows of some columns, or one run of one column: what COLUMNS adds to its sums.
 */
typedef struct dt_cpu_columns {
    int64_t rows, columns;
    int64_t row; /* elements from a row to the next */
    const char *at[DT_ROW_OPERANDS];
    double *sums[2]; /* of each column, or one; the second NULL: not wanted */
} dt_cpu_columns;
typedef void dt_cpu_columns_kernel(const dt_cpu_columns *columns);

typedef struct dt_nn_kernels {
    dt_cpu_row_kernel *float32[DT_NNN], *float64[DT_NNN];
    /* [op][0]: of columns, [op][1]: of a run */
    dt_cpu_columns_kernel *columns_float32[DT_NNN][2], *columns_float64[DT_NNN][2];
} dt_nn_kernels;

#endif
