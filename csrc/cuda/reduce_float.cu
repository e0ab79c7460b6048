/* The reductions of floats: one file for each group of types, so that they are compiled
 * side by side. */
#include "cuda/reduce_kernels.h"

#define ROW_TYPE float
#define ROW_KIND KIND_FLOAT
const reduce_table reduce_FLOAT32 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE double
#define ROW_KIND KIND_FLOAT
const reduce_table reduce_FLOAT64 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE Bits16
#define ROW_KIND KIND_FLOAT
const reduce_table reduce_half = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
