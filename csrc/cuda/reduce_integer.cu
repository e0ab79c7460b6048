/* The reductions of integers: one file for each group of types, so that they are
 * compiled side by side. */
#include "cuda/reduce_kernels.h"

#define ROW_TYPE int64_t
#define ROW_KIND KIND_INTEGER
const reduce_table reduce_INT64 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE int32_t
#define ROW_KIND KIND_INTEGER
const reduce_table reduce_INT32 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE int16_t
#define ROW_KIND KIND_INTEGER
const reduce_table reduce_INT16 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
