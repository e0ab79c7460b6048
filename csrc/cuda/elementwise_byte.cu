/* The elementwise kernels of the types of one byte: one file for each group of types,
 * so that they are compiled side by side. */
#include "cuda/elementwise_kernels.h"

#define ROW_TYPE bool
#define ROW_KIND KIND_BOOL
const elementwise_table elementwise_BOOL = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE uint8_t
#define ROW_KIND KIND_INTEGER
const elementwise_table elementwise_UINT8 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND

#define ROW_TYPE int8_t
#define ROW_KIND KIND_INTEGER
const elementwise_table elementwise_INT8 = {
#include "cuda/elementwise_rows.inc"
};
#undef ROW_TYPE
#undef ROW_KIND
