/* The reductions of the types of one byte: one file for each group of types, so that
 * they are compiled side by side. */
#include "cuda/reduce_kernels.h"

#define ROW_TYPE bool
#define ROW_KIND KIND_BOOL
const reduce_table reduce_BOOL = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE uint8_t
#define ROW_KIND KIND_INTEGER
const reduce_table reduce_UINT8 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE int8_t
#define ROW_KIND KIND_INTEGER
const reduce_table reduce_INT8 = {
#include "cuda/reduce_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
