/* The table of the operations of ops/rowwise.def that each instruction set exports. */
#ifndef DT_CPU_ROWWISE_KERNELS_H
#define DT_CPU_ROWWISE_KERNELS_H

#include "cpu/kernels.h"
#include "device/rowwise.h"

/* One row: the addresses of its elements, which lie next to each other, or of the one
 * that an operand has for it. */
typedef struct dt_cpu_row {
    int64_t n;
    char *at[DT_ROW_OPERANDS];
    int64_t ignored;
    double parameter, factor;
} dt_cpu_row;
typedef void dt_cpu_row_kernel(const dt_cpu_row *row);

typedef struct dt_rowwise_kernels {
    dt_cpu_row_kernel *float32[DT_NROWWISE], *float64[DT_NROWWISE];
} dt_rowwise_kernels;

#endif
