/* Reductions, and where the extremes are. */
#ifndef DT_CUDA_REDUCE_H
#define DT_CUDA_REDUCE_H

#include "device/backend.h"

typedef int (*reduce_fn)(dt_queue queue, const dt_reduction *call);

/* The rows for one input type; NULL where a row's class does not take it. */
typedef struct reduce_table {
    reduce_fn rows[DT_NREDUCE];
} reduce_table;
#define DT_DTYPE(ID, name, alias, type, class) extern const reduce_table reduce_##ID;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
extern const reduce_table reduce_half; /* float16 and bfloat16 */

int reduce_run(dt_queue queue, dt_reduce_op op, const dt_reduction *call);
int reduce_arg(dt_queue queue, bool greatest, const dt_reduction *call);

#endif
