/* The elementwise kernels of int32 and int16: one file for each group of types, so that
 * they are compiled side by side. */
#include "cuda/elementwise_kernels.h"

#define ROW_TYPE int32_t
#define ROW_KIND KIND_INTEGER
const elementwise_table elementwise_INT32 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE int16_t
#define ROW_KIND KIND_INTEGER
const elementwise_table elementwise_INT16 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
